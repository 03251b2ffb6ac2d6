//! Credentials of a mapping: only the source receives them, whatever it redirects to and whatever
//! fails.

use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source;
use crate::fixtures::source::{Harvester, Reply, Source, page_of};
use oaimend::config::{Config, Flags};

const PASSWORD: &str = "open-sesame-7f3a";
/// `harvester:open-sesame-7f3a`
const BASIC: &str = "Basic aGFydmVzdGVyOm9wZW4tc2VzYW1lLTdmM2E=";

/// A folder with a mapping `x` for that base URL, with credentials.
fn folder(base_url: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!(
        "base_url = \"{base_url}\"\nuser = \"harvester\"\npassword_file = \"../password\"\n\
             redirect_hosts = [\"127.0.0.1\", \"localhost\"]\n"
    );
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    std::fs::write(folder.path().join("password"), format!("{PASSWORD}\n")).expect("a writable folder");
    folder
}

fn proxy(folder: &tempfile::TempDir) -> Proxy {
    let flags = Flags { mappings: Some(folder.path().join("mappings")), ..Flags::default() };
    let loaded = Config::load(&flags).expect("no faults");
    Proxy::with(|config| config.repositories = loaded.repositories)
}

#[test]
fn sent_to_the_source_and_not_to_redirect_targets() {
    let elsewhere = Source::page(page_of(1));
    // 127.0.0.1 under another name, then another port, then back.
    let target = elsewhere.base_url();
    let source = Source::start(move |number, received| match number {
        0 => Reply::redirect(302, &format!("http://{}/within", received.headers["host"])),
        1 => Reply::redirect(
            302,
            &format!(
                "http://localhost:{}/name",
                received.headers["host"].rsplit(':').next().unwrap_or_default()
            ),
        ),
        2 => Reply::redirect(
            302,
            &format!("http://{}/back", received.headers["host"].replace("localhost", "127.0.0.1")),
        ),
        _ => Reply::redirect(302, &target.replace("http://", "http://me:myself@")),
    });
    let folder = folder(&source.base_url());
    let proxy = proxy(&folder);
    let got = proxy.get(LIST);
    assert_eq!(got.status, 200, "{}", got.text());
    let shown = |source: &Source| -> Vec<Option<String>> {
        source.requests().iter().map(|received| received.headers.get("authorization").cloned()).collect()
    };
    let ours = Some(BASIC.to_owned());
    assert_eq!(shown(&source), [ours.clone(), ours.clone(), None, ours], "the host has the same name only");
    assert_eq!(shown(&elsewhere), [None]);
}

#[test]
fn authorization_of_harvesters_is_not_forwarded() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    let request = format!(
        "GET {LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic bWU6bWU=\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(Harvester::ask(proxy.address(), &request).rest().status, 200);
    assert!(!source.requests()[0].headers.contains_key("authorization"));
}

#[test]
fn password_is_in_no_log_and_no_response() {
    let source =
        Source::start(|_, _| Reply::whole(401, "WWW-Authenticate: Basic realm=\"x\"", "<html>no</html>"));
    let folder = folder(&source.base_url());
    let program =
        Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]).env("OAIMEND_LOG", "trace"));
    let (public, admin) = (program.address(), program.admin());
    let got = source::fetch(public, LIST);
    assert_eq!(got.status, 502);
    let mut pages = format!("{got:?}{}", got.text());
    for path in ["/-/repositories", "/-/repositories/x", "/-/metrics"] {
        pages.push_str(&source::fetch(admin, path).text());
    }
    pages.push_str(&source::fetch(public, "/").text());
    program.killer().kill();
    let said = program.whole_log();
    assert_eq!(source.requests()[0].headers["authorization"], BASIC);
    for secret in [PASSWORD, "b3Blbi1zZXNhbWU", "aGFydmVzdGVyOm9"] {
        assert!(!pages.contains(secret), "{pages}");
        assert!(!said.contains(secret), "the log shows {secret}");
    }
}

#[test]
fn echoed_secrets_are_masked_everywhere() {
    const KEY: &str = "s3cret-key";
    // The first page breaks off inside a record, so that it is kept as evidence. All later responses are errors.
    let coded = |mark: &str, end: &str| -> String {
        KEY.bytes().map(|byte| format!("{mark}{byte:02x}{end}")).collect()
    };
    let forms = [coded("%", ""), coded("&#x", ";"), coded("\\u00", ""), coded("%25", "")];
    let echoed = forms.join(" ");
    let source = Source::start(move |number, received| {
        let echo = format!("{} {} {echoed}", received.headers["authorization"], received.target);
        if number == 0 {
            let page = page_of(2).replace("</ListRecords>", &format!("<record><!-- {echo} -->"));
            // Text before the document is a repair, which the admin listener shows.
            let page = format!("{echo}\n{page}");
            return Reply::new(200, "Content-Length: 100000").send(page);
        }
        Reply::whole(404, "", format!("{echo} <html>no</html>"))
    });
    let folder = folder(&format!("{}?apikey={KEY}", source.base_url()));
    let program =
        Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]).env("OAIMEND_LOG", "debug"));
    let (public, admin) = (program.address(), program.admin());
    source::fetch(public, LIST);
    let identifier = "/x?verb=GetRecord&identifier=oai%3Ax%3A9&metadataPrefix=oai_dc";
    let got = source::fetch(public, identifier);
    let mut seen = format!("{got:?}{}", got.text());
    for path in ["/-/repositories/x", "/-/repositories/x/repairs", "/-/status", "/", "/x/"] {
        seen.push_str(&source::fetch(admin, path).text());
    }
    // The log is complete after an orderly end.
    program.signal("-TERM");
    assert!(program.ended().success());
    let log = program.whole_log();
    let mut kept = Vec::new();
    for path in oaimend_test_support::files_below(&folder.path().join("data/broken")) {
        kept.extend(std::fs::read(path).expect("a readable file"));
    }
    let kept = String::from_utf8_lossy(&kept).into_owned();
    assert!(source.requests()[0].target.contains(KEY), "the source gets it");
    assert!(kept.contains("apikey=***") && kept.contains("Basic ***"), "{kept}");
    assert!(log.contains("Basic ***"), "{log}");
    assert!(seen.contains("junk-before-root"), "{seen}");
    let plain = [PASSWORD, "aGFydmVzdGVyOm9", KEY].map(str::to_owned);
    // In JSON the backslash is written twice.
    for secret in plain.iter().chain(&forms).chain([&coded("\\\\u00", "")]) {
        assert!(!seen.contains(secret), "{seen}");
        assert!(!log.contains(secret), "{log}");
        assert!(!kept.contains(secret), "{kept}");
    }
    assert!(!got.text().contains("began") && !got.text().contains("<html>"), "{}", got.text());
}

#[test]
fn tokens_of_clients_are_in_no_log() {
    const TOKEN: &str = "token-of-a-client-7f3a";
    let source = Source::page(page_of(1));
    let folder = folder(&source.base_url());
    let program = Program::run(serve(folder.path()).args(["--admin", "off"]).env("OAIMEND_LOG", "trace"));
    let got = source::fetch_with(program.address(), LIST, &format!("Authorization: Bearer {TOKEN}\r\n"));
    assert_eq!(got.status, 200);
    program.signal("-TERM");
    assert!(program.ended().success());
    let log = program.whole_log();
    assert!(log.contains("\"level\":\"TRACE\""), "the filter is in use");
    assert!(!log.contains(TOKEN), "the log shows the token");
}

#[test]
fn files_in_the_data_folder_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let source = Source::page(page_of(2).replacen("<record>", "<record><record>", 1));
    let folder = folder(&source.base_url());
    let program = Program::start(folder.path(), &[]);
    assert_eq!(source::fetch(program.address(), LIST).status, 200);
    program.signal("-TERM");
    assert!(program.ended().success());
    let data = folder.path().join("data");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    let files = oaimend_test_support::files_below(&data);
    assert!(files.len() > 3, "{files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().expect("a folder")), 0o700, "{}", file.display());
    }
}
