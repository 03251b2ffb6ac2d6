//! The keys of a mapping about access to its source, and those about the listener with TLS.

use crate::config::{check, folder, run};
use oaimend::config::{Config, Flags};

#[test]
fn keys_of_access_can_be_set_and_are_shown_without_secrets() {
    let mapping = r#"
base_url = "https://x/"
bearer_token_file = "token"
proxy = "http://me:pr0xy@proxy.example:3128"
[headers]
X-Api-Key = "k3y-of-x"
"X-Odd!" = "'"
[tls]
client_certificate = "client.pem"
client_key = "key.pem"
"#;
    let folder = folder(&[
        ("mappings/x.toml", mapping),
        ("mappings/token", "t0ken\n"),
        ("mappings/client.pem", include_str!("fixtures/tls/client.pem")),
        ("mappings/key.pem", include_str!("fixtures/tls/client-key.pem")),
    ]);
    let flags = Flags { mappings: Some(folder.path().join("mappings")), ..Flags::default() };
    let config = Config::load(&flags).expect("no faults");
    let mapping = config.repositories.find("x").expect("it was read");
    let shown = mapping.to_toml("https://x/");
    for part in [
        "x-api-key = \"***\"",
        "proxy = \"http://proxy.example:3128\"",
        "mappings/token\"",
        "mappings/client.pem\"",
        "mappings/key.pem\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for secret in ["k3y-of-x", "pr0xy", "t0ken"] {
        assert!(!shown.contains(secret), "{shown}");
        assert!(!format!("{mapping:?}").contains(secret), "{mapping:?}");
    }
}

#[test]
fn headers_tokens_and_proxies_have_lines_and_no_secrets() {
    let base_url = "base_url = \"http://x/\"\n";
    let headers = format!(
        "{base_url}[headers]\nX-Key = \"a secret\\u000a\"\nHost = \"y\"\nTransfer-Encoding = \"chunked\"\n\
         Content-Length = \"3\"\n\"a b\" = \"secret\"\nUser-Agent = \"a\"\nx-key = \" secret\"\nX-List = [\"secret\"]\n\
         Accept = \"a\"\naccept = \"secret\"\nRange = \"bytes=0-1\"\n"
    );
    let both = format!(
        "{base_url}user = \"me\"\npassword_file = \"password\"\nbearer_token_file = \"empty\"\n\
         [headers]\nauthorization = \"secret\"\n"
    );
    let worded = format!("{base_url}bearer_token_file = \"worded\"\nproxy = \"socks5://me:secret@h\"\n");
    let path = format!("{base_url}bearer_token_file = \"missing\"\nproxy = \"http://h/path\"\n");
    check(
        &[
            ("mappings/a.toml", &headers),
            ("mappings/b.toml", &both),
            ("mappings/c.toml", &worded),
            ("mappings/d.toml", &path),
            ("mappings/password", "secret\n"),
            ("mappings/empty", "\n"),
            ("mappings/worded", "Bearer secret\n"),
        ],
        &[],
        78,
        r#"
mappings/a.toml:3: the value of headers.X-Key is not allowed in an HTTP header; expected printable ASCII without spaces at its ends
mappings/a.toml:4: headers.Host is not allowed: it is the host of base_url; change base_url
mappings/a.toml:5: headers.Transfer-Encoding is not allowed: it is about one connection, not about the request; remove it
mappings/a.toml:6: headers.Content-Length is not allowed: oaimend sets it for each request; remove it
mappings/a.toml:7: headers.a b is not the name of a header; expected one such as "X-Api-Key"
mappings/a.toml:8: headers.User-Agent is not allowed: use the key user_agent
mappings/a.toml:9: the value of headers.x-key is not allowed in an HTTP header; expected printable ASCII without spaces at its ends
mappings/a.toml:10: headers.X-List is an array; expected a string
mappings/a.toml:12: headers.accept is set twice; expected each name once, in any case
mappings/a.toml:13: headers.Range is not allowed: oaimend needs the complete response; remove it
mappings/b.toml:1: user and bearer_token_file are both set; expected one of them, because both set Authorization
mappings/b.toml:4: bearer_token_file = "empty" contains no token; expected a file with the token in its only line, of visible ASCII characters
mappings/b.toml:6: headers.authorization is not allowed beside user, which sets it; expected one of the two
mappings/c.toml:2: bearer_token_file = "worded" contains the word "Bearer"; expected a file with the token in its only line, without this word
mappings/c.toml:3: proxy = "socks5://***@h" is not an HTTP proxy; expected "environment", "off" or a URL such as "http://proxy.example:3128" (http only; TLS with the source goes through the proxy unchanged)
mappings/d.toml:2: bearer_token_file = "missing" cannot be read: No such file or directory (os error 2); expected a file with the token in its only line
mappings/d.toml:3: proxy = "http://h/path" is not an HTTP proxy; expected "environment", "off" or a URL such as "http://proxy.example:3128" (without a path)
"#,
    );
}

#[test]
fn client_certificates_are_checked() {
    let with = |certificate: &str, key: &str| {
        format!(
            "base_url = \"https://x/\"\n[tls]\nclient_certificate = \"{certificate}\"\nclient_key = \"{key}\"\n"
        )
    };
    let alone = "base_url = \"https://x/\"\n[tls]\nclient_key = \"key.pem\"\n";
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let expired = format!("issued by a test\n{}", include_str!("fixtures/tls/expired.pem"));
    let files = [
        ("mappings/client.pem", include_str!("fixtures/tls/client.pem")),
        ("mappings/key.pem", include_str!("fixtures/tls/client-key.pem")),
        ("mappings/other-key.pem", include_str!("fixtures/tls/other-key.pem")),
        ("mappings/encrypted.pem", encrypted),
        ("mappings/expired.pem", &expired),
        ("mappings/expired-key.pem", include_str!("fixtures/tls/expired-key.pem")),
    ];
    let faulty = [
        ("mappings/a.toml", with("missing.pem", "key.pem")),
        ("mappings/b.toml", with("client.pem", "other-key.pem")),
        ("mappings/c.toml", with("key.pem", "key.pem")),
        ("mappings/d.toml", with("client.pem", "encrypted.pem")),
        ("mappings/e.toml", with("client.pem", "client.pem")),
        ("mappings/f.toml", alone.to_owned()),
        ("mappings/good.toml", with("client.pem", "key.pem")),
    ];
    let faulty = faulty.iter().map(|(name, text)| (*name, text.as_str()));
    check(
        &faulty.chain(files).collect::<Vec<_>>(),
        &[],
        78,
        r#"
mappings/a.toml:3: tls.client_certificate = "missing.pem" cannot be read: No such file or directory (os error 2); expected a file with PEM certificates, that of this program first
mappings/b.toml:4: tls.client_key = "other-key.pem" does not belong to the certificate; expected the key of the first certificate in mappings/client.pem
mappings/c.toml:3: tls.client_certificate = "key.pem" contains no certificate; expected a file with PEM certificates, that of this program first
mappings/d.toml:4: tls.client_key = "encrypted.pem" contains an encrypted private key; expected a file with a private key in PEM, without a passphrase
mappings/e.toml:4: tls.client_key = "client.pem" contains no private key; expected a file with a private key in PEM, without a passphrase
mappings/f.toml:2: tls.client_key is set without tls.client_certificate; expected both
"#,
    );
    // An expired certificate is no fault: the server would not start again after the end of a certificate.
    let old = with("expired.pem", "expired-key.pem");
    let folder = folder(&[&[("mappings/x.toml", old.as_str())], &files[..]].concat());
    let output = run(folder.path(), &["validate"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let expected = "mappings/expired.pem:2: warning: the certificate has expired at 2021-02-03T04:05:06Z; replace it by a new one\n";
    assert!(text.ends_with(expected) && text.lines().count() == 1, "{text}");
}

#[test]
fn listener_with_tls() {
    let files = [
        ("server.pem", include_str!("fixtures/tls/cert.pem")),
        ("server-key.pem", include_str!("fixtures/tls/key.pem")),
        ("other-key.pem", include_str!("fixtures/tls/other-key.pem")),
        ("expired.pem", include_str!("fixtures/tls/expired.pem")),
        ("expired-key.pem", include_str!("fixtures/tls/expired-key.pem")),
    ];
    let with = |address: &str, certificate: &str, key: &str| {
        format!("[listen_tls]\naddress = \"{address}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
    };
    for (main, said) in [
        (
            with("8443", "server.pem", "other-key.pem"),
            "oaimend.toml:2: listen_tls.address = \"8443\" is not an address; expected an IP address and a port such as \
             \"127.0.0.1:8080\"\noaimend.toml:4: listen_tls.key = \"other-key.pem\" does not belong to the certificate; \
             expected the key of the first certificate in server.pem",
        ),
        (
            "[listen_tls]\n".to_owned(),
            "oaimend.toml:1: listen_tls.address is missing; expected an address such as \"0.0.0.0:8443\"\n\
             oaimend.toml:1: listen_tls.certificate is missing; expected a PEM file\n\
             oaimend.toml:1: listen_tls.key is missing; expected a PEM file",
        ),
        (
            "[listen_tls]\naddress = \"[::]:8443\"\nkey = \"server-key.pem\"\ncertificat = \"server.pem\"\n"
                .to_owned(),
            "oaimend.toml:1: listen_tls.key is set without listen_tls.certificate; expected both\n\
             oaimend.toml:4: unknown key listen_tls.certificat; did you mean certificate?",
        ),
    ] {
        check(&[&[("oaimend.toml", main.as_str())], &files[..]].concat(), &[], 78, said);
    }
    let main = with("0.0.0.0:8443", "server.pem", "server-key.pem");
    let good = folder(&[&[("oaimend.toml", main.as_str())], &files[..]].concat());
    let flags = Flags { config: Some(good.path().join("oaimend.toml")), ..Flags::default() };
    let listen_tls = Config::load(&flags).expect("no faults").listen_tls.expect("it was read");
    assert_eq!(listen_tls.address.to_string(), "0.0.0.0:8443");
    assert_eq!(listen_tls.files.certificate, good.path().join("server.pem"));
    let old = with("0.0.0.0:8443", "expired.pem", "expired-key.pem");
    let old = folder(&[&[("oaimend.toml", old.as_str())], &files[..]].concat());
    let output = run(old.path(), &["validate"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && text.contains("expired.pem:1: warning: the certificate has expired"),
        "{text}"
    );
}
