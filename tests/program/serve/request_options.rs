//! Headers, tokens, client certificates and proxies of a mapping: how they reach the source, and that nobody else gets
//! them.

use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{self, Reply, Source, page_of};
use crate::fixtures::tunnel::Tunnels;
use oaimend::config::{Config, Flags};
use oaimend_test_support::{files_below, root};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::path::{Path, PathBuf};

const KEY: &str = "k3y-of-the-source";
const TOKEN: &str = "t0ken-of-the-source";

/// A folder with a mapping `x` for that base URL.
fn folder(base_url: &str, keys: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!("base_url = \"{base_url}\"\n{keys}\n");
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    folder
}

fn proxy(folder: &tempfile::TempDir) -> Proxy {
    let flags = Flags { mappings: Some(folder.path().join("mappings")), ..Flags::default() };
    let loaded = Config::load(&flags).unwrap_or_else(|error| panic!("{error}"));
    Proxy::with(|config| config.repositories = loaded.repositories)
}

/// A file of tests/program/fixtures/tls.
fn pem(name: &str) -> PathBuf {
    root().join("tests/program/fixtures/tls").join(name)
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(pem(name)).expect("the file holds a certificate")
}

/// A source that redirects its first request to the same port of localhost, which is another host.
fn leading_away(number: usize, scheme: &str, received: &source::ReceivedRequest) -> Reply {
    let port = received.headers["host"].rsplit(':').next().unwrap_or_default();
    match number {
        0 => Reply::redirect(302, &format!("{scheme}://localhost:{port}/away")),
        _ => Reply::xml(page_of(1)),
    }
}

#[test]
fn headers_and_token_reach_the_source_only() {
    let source = Source::start(|number, received| leading_away(number, "http", received));
    let keys = format!(
        "bearer_token_file = \"../token\"\nredirect_hosts = [\"localhost\"]\n\
         [headers]\nX-Api-Key = \"{KEY}\"\naccept = \"text/xml\"\n"
    );
    let folder = folder(&source.base_url(), &keys);
    std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).expect("a writable folder");
    let proxy = proxy(&folder);
    assert_eq!(proxy.get(LIST).status, 200);
    let [direct, away] = &source.requests()[..] else { panic!("{:?}", source.requests()) };
    let sent = |received: &source::ReceivedRequest, name: &str| received.headers.get(name).cloned();
    assert_eq!(sent(direct, "authorization"), Some(format!("Bearer {TOKEN}")));
    assert_eq!(
        (sent(direct, "x-api-key"), sent(direct, "accept")),
        (Some(KEY.into()), Some("text/xml".into()))
    );
    assert_eq!((sent(away, "authorization"), sent(away, "x-api-key")), (None, None), "{away:?}");
    assert_eq!(away.target, "/away");
}

#[test]
fn new_token_is_in_the_next_request() {
    let source = Source::page(page_of(1));
    let folder = folder(&source.base_url(), "bearer_token_file = \"../token\"");
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).expect("a writable folder");
    let proxy = proxy(&folder);
    let sent = || {
        assert_eq!(proxy.get(LIST).status, 200);
        source.requests().last().expect("it was asked").headers["authorization"].clone()
    };
    assert_eq!(sent(), format!("Bearer {TOKEN}"));
    // Of the same length and perhaps within the same tick of the file system.
    let renewed = TOKEN.to_uppercase();
    std::fs::write(&token, &renewed).expect("a writable folder");
    assert_eq!(sent(), format!("Bearer {renewed}"));
    // A program that replaces the token may empty or remove the file first.
    std::fs::write(&token, "").expect("a writable folder");
    assert_eq!(sent(), format!("Bearer {renewed}"));
    std::fs::remove_file(&token).expect("it is there");
    assert_eq!(sent(), format!("Bearer {renewed}"));
    std::fs::write(&token, TOKEN).expect("a writable folder");
    assert_eq!(sent(), format!("Bearer {TOKEN}"));
}

#[test]
fn echoed_headers_tokens_and_proxy_passwords_are_masked() {
    const PASSWORD: &str = "pr0xy-password";
    // The source echoes what it gets, in a page that is kept as evidence and in an error.
    let source = Source::start(|number, received| {
        let sent = |name: &str| received.headers[name].clone();
        let echo =
            format!("{} key={} {}", sent("authorization"), sent("x-api-key"), sent("proxy-authorization"));
        if number == 0 {
            let page = page_of(2).replace("</ListRecords>", &format!("<record><!-- {echo} -->"));
            return Reply::new(200, "Content-Length: 100000").send(page);
        }
        Reply::whole(404, "", format!("{echo} <html>no</html>"))
    });
    let keys = format!(
        "bearer_token_file = \"../token\"\nproxy = \"http://me:{PASSWORD}@{}\"\n[headers]\nX-Api-Key = \"{KEY}\"\n",
        source.address
    );
    let folder = folder("http://source.test/oai", &keys);
    std::fs::write(folder.path().join("token"), TOKEN).expect("a writable folder");
    let program =
        Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]).env("OAIMEND_LOG", "trace"));
    let (public, admin) = (program.address(), program.admin());
    source::fetch(public, LIST);
    let got = source::fetch(public, "/x?verb=GetRecord&identifier=oai%3Ax%3A9&metadataPrefix=oai_dc");
    let mut seen = format!("{got:?}{}", got.text());
    for path in ["/-/repositories", "/-/repositories/x", "/-/status", "/", "/x", "/x/", "/-/metrics"] {
        seen.push_str(&source::fetch(admin, path).text());
    }
    // The log is complete after an orderly end.
    program.signal("-TERM");
    assert!(program.ended().success());
    let log = program.whole_log();
    let mut kept = String::new();
    for path in files_below(&folder.path().join("data/broken")) {
        kept.push_str(&String::from_utf8_lossy(&std::fs::read(path).expect("a readable file")));
    }
    assert_eq!(source.requests()[0].headers["x-api-key"], KEY, "the source gets it");
    assert_eq!(source.requests()[0].headers["proxy-authorization"], "Basic bWU6cHIweHktcGFzc3dvcmQ=");
    assert!(kept.contains("Bearer ***") && kept.contains("key=***"), "{kept}");
    assert!(log.contains("Bearer ***"), "{log}");
    assert!(seen.contains("x-api-key = &quot;***&quot;"), "the operator sees the names: {seen}");
    for secret in [KEY, TOKEN, PASSWORD, "bWU6cHIweHkt"] {
        for (place, text) in [("responses", &seen), ("log", &log), ("kept pages", &kept)] {
            assert!(!text.contains(secret), "{place} contain {secret}: {text}");
        }
    }
}

/// The keys of a mapping for a TLS source, with a client certificate beside it.
fn with_certificate() -> String {
    let ca = pem("ca.pem");
    format!(
        "redirect_hosts = [\"localhost\"]\n[tls]\nca_file = \"{}\"\nclient_certificate = \"../client.pem\"\n\
         client_key = \"../client-key.pem\"\n",
        ca.display()
    )
}

/// Puts a certificate of the fixtures and its key into place.
fn install(folder: &Path, name: &str) {
    for (from, to) in [("", "client.pem"), ("-key", "client-key.pem")] {
        std::fs::copy(pem(&format!("{name}{from}.pem")), folder.join(to)).expect("a writable folder");
    }
}

#[test]
fn client_certificate_reaches_the_source_only() {
    let source = Source::start_mutual_tls(false, |number, received| leading_away(number, "https", received));
    let folder = folder(&source.base_url(), &with_certificate());
    install(folder.path(), "client");
    let proxy = proxy(&folder);
    let got = proxy.get(LIST);
    assert_eq!(got.status, 200, "{}", got.text());
    let sent: Vec<_> = source.requests().into_iter().map(|received| received.certificate).collect();
    assert_eq!(sent, [Some(certificate("client.pem")), None], "the other host gets none");
    // Each connection of this source is for one request.
    install(folder.path(), "other");
    assert_eq!(proxy.get(LIST).status, 200);
    assert_eq!(source.requests()[2].certificate, Some(certificate("other.pem")));
    // The key of another certificate: the last pair stays in effect.
    std::fs::copy(pem("client-key.pem"), folder.path().join("client-key.pem")).expect("a writable folder");
    assert_eq!(proxy.get(LIST).status, 200);
    assert_eq!(source.requests()[3].certificate, Some(certificate("other.pem")));
}

#[test]
fn missing_client_certificate_is_named() {
    let source = Source::start_mutual_tls(true, |_, _| Reply::xml(page_of(1)));
    let ca = pem("ca.pem");
    let folder = folder(&source.base_url(), &format!("[tls]\nca_file = \"{}\"", ca.display()));
    let got = proxy(&folder).get(LIST);
    assert_eq!((got.status, source.requests().len()), (502, 0), "{}", got.text());
    assert!(got.text().contains("check tls.client_certificate"), "{}", got.text());
}

#[test]
fn http_sources_are_requested_from_the_proxy_in_absolute_form() {
    let gateway = Source::page(page_of(1));
    // The name cannot be resolved here: the proxy does that.
    let keys = format!("proxy = \"http://me:p%40ss@{}\"", gateway.address);
    let folder = folder("http://source.test:8123/oai", &keys);
    let got = proxy(&folder).get(LIST);
    assert_eq!(got.status, 200, "{}", got.text());
    let [received] = &gateway.requests()[..] else { panic!("{:?}", gateway.requests()) };
    assert_eq!(received.target, "http://source.test:8123/oai?verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(received.headers["host"], "source.test:8123");
    assert_eq!(received.headers["proxy-authorization"], "Basic bWU6cEBzcw==");
}

#[test]
fn https_sources_are_requested_through_a_tunnel() {
    let source = Source::start_mutual_tls(false, |_, _| Reply::xml(page_of(1)));
    let gateway = Tunnels::start(200, source.address);
    let keys = format!("proxy = \"http://me:pass@{}\"\n{}", gateway.address, with_certificate());
    // Nothing listens on this port: the tunnel leads elsewhere. The certificate is for localhost.
    let folder = folder("https://localhost:1/oai", &keys);
    install(folder.path(), "client");
    let got = proxy(&folder).get(LIST);
    assert_eq!(got.status, 200, "{}", got.text());
    let [head] = &gateway.heads()[..] else { panic!("{:?}", gateway.heads()) };
    assert!(head.starts_with("CONNECT localhost:1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6cGFzcw==\r\n"), "{head}");
    let [received] = &source.requests()[..] else { panic!("{:?}", source.requests()) };
    assert_eq!(received.target, "/oai?verb=ListRecords&metadataPrefix=oai_dc");
    assert!(!received.headers.contains_key("proxy-authorization"), "{received:?}");
    assert_eq!(received.certificate, Some(certificate("client.pem")));
}

#[test]
fn failure_of_the_proxy_names_the_proxy() {
    let source = Source::page(page_of(1));
    for (status, remedy) in [(407, "set user and password in the URL of the proxy"), (403, "check proxy in")]
    {
        let gateway = Tunnels::start(status, source.address);
        let folder = folder("https://source.test/oai", &format!("proxy = \"http://{}\"", gateway.address));
        let proxy = proxy(&folder);
        let got = proxy.get(LIST);
        let shown = format!("{}{}", got.header("proxy-status"), got.text());
        assert!(
            shown.contains("its proxy makes no connection to its server; ") && shown.contains(remedy),
            "{shown}"
        );
        for address in ["source.test".to_owned(), gateway.address.to_string()] {
            assert!(!shown.contains(&address), "{shown}");
        }
        let details = proxy.wait_for_requests("x", 1)["last_failure"]["details"].clone();
        let expected = format!("the proxy {} makes no connection to source.test (", gateway.address);
        assert!(details.as_str().is_some_and(|details| details.contains(&expected)), "{details}");
    }
}

#[test]
fn redirect_to_a_private_name_is_not_followed_through_a_proxy() {
    let gateway = Source::start(|_, _| Reply::redirect(302, "http://vault.internal/secret"));
    let folder = folder("http://source.example/oai", &format!("proxy = \"http://{}\"", gateway.address));
    let proxy = proxy(&folder);
    let got = proxy.get(LIST);
    assert_eq!((got.status, gateway.requests().len()), (502, 1), "{}", got.text());
    assert!(got.text().contains("redirects to a name in a private network"), "{}", got.text());
    assert!(!got.text().contains("vault.internal"), "{}", got.text());
    let details = proxy.wait_for_requests("x", 1)["last_failure"]["details"].clone();
    let expected = "vault.internal, a name in a private network";
    assert!(details.as_str().is_some_and(|details| details.contains(expected)), "{details}");
}

/// The response to a list with a source on loopback, by a program whose environment names a proxy.
fn fetch_with_environment(folder: &Path, variables: &[(&str, String)]) -> source::Got {
    let mut command = serve(folder);
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.args(["--admin", "off"]).envs(variables.iter().map(|(name, value)| (name, value)));
    let program = Program::run(&mut command);
    source::fetch(program.address(), LIST)
}

#[test]
fn proxy_of_the_environment_is_used_only_on_request() {
    let source = Source::page(page_of(1));
    let gateway = Source::page(page_of(2));
    let url = format!("http://{}", gateway.address);
    let records = |keys: &str, variables: &[(&str, String)]| {
        let folder = folder(&source.base_url(), keys);
        let got = fetch_with_environment(folder.path(), variables);
        got.text().matches("<record>").count()
    };
    let set = [("http_proxy", url.clone())];
    assert_eq!(records("", &set), 1, "the default is a direct connection");
    assert_eq!(records("proxy = \"off\"", &set), 1);
    assert_eq!(records("proxy = \"environment\"", &set), 2);
    assert_eq!(records("proxy = \"environment\"", &[]), 1);
    let excluded = [("HTTP_PROXY", url), ("no_proxy", "example.org, 127.0.0.0/8".to_owned())];
    assert_eq!(records("proxy = \"environment\"", &excluded), 1);
    let folder = folder(&source.base_url(), "proxy = \"environment\"");
    let socks = [("all_proxy", "socks5://127.0.0.1:1".to_owned())];
    let got = fetch_with_environment(folder.path(), &socks);
    assert_eq!(got.status, 502);
    assert!(got.text().contains("its proxy cannot be used"), "{}", got.text());
    assert!(!got.text().contains("socks5"), "{}", got.text());
}
