//! `oaimend serve` as the HTTP proxy of a harvester: `http_proxy` in its environment is enough, and
//! unmapped URLs are refused.

use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source::{Got, Harvester, Reply, Source, page_of};
use oaimend::config::Mapping;
use oaimend_upstream::settings::Limits;
use std::path::Path;
use std::process::Command;

const QUERY: &str = "verb=ListRecords&metadataPrefix=oai_dc";

/// Requests a URL as a client of an HTTP proxy does.
fn ask(proxy: &Proxy, url: &str) -> Got {
    let host = url.split('/').nth(2).expect("an absolute URL");
    let request = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    Harvester::ask(proxy.address(), &request).rest()
}

fn mapped(bases: &[(&str, String)]) -> Proxy {
    Proxy::with(|config| {
        for (id, base) in bases {
            config.map(id, base).expect("a legal mapping");
        }
    })
}

#[test]
fn https_sources_are_requested_by_https() {
    let source = Source::start_tls(|_, _| Reply::xml(page_of(2)));
    let ca = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/fixtures/tls/ca.pem");
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().access.tls.ca_file = Some(ca));
    let plain = source.base_url().replace("https://", "http://");
    let got = ask(&proxy, &format!("{plain}?{QUERY}"));
    assert_eq!((got.status, records(&got.text())), (200, records(&page_of(2))), "{}", got.text());
    assert!(got.text().contains(&format!(">{plain}</request>")), "as it was asked: {}", got.text());
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn base_urls_are_normalised() {
    let source = Source::page(page_of(1));
    let address = source.address;
    let proxy = mapped(&[("x", format!("http://{address}/~me/oai"))]);
    for same in [
        format!("http://{address}/~me/oai?{QUERY}"),
        format!("HTTP://{address}/%7Eme/oai/?{QUERY}"),
        format!("https://{address}/~me/./oai?{QUERY}"),
    ] {
        let got = ask(&proxy, &same);
        assert_eq!((got.status, records(&got.text())), (200, records(&page_of(1))), "{same}");
    }
    for other in [format!("http://{address}/~me/OAI?{QUERY}"), format!("http://{address}/?{QUERY}")] {
        let got = ask(&proxy, &other);
        assert_eq!(got.status, 403, "{other}");
        assert!(got.text().contains("for the known repositories"), "{}", got.text());
    }
    assert!(source.requests().iter().all(|received| received.target == format!("/~me/oai?{QUERY}")));
}

#[test]
fn base_url_query_is_matched() {
    let source = Source::page(page_of(1));
    let base = source.base_url();
    let proxy = mapped(&[
        ("one", format!("{base}?repo=1")),
        ("both", format!("{base}?repo=1&page=oai")),
        ("none", base.clone()),
    ]);
    for (received, target) in [
        (format!("{base}?repo=1&{QUERY}"), format!("/oai?repo=1&{QUERY}")),
        (format!("{base}?{QUERY}&repo=1"), format!("/oai?repo=1&{QUERY}")),
        (format!("{base}?page=oai&repo=1&{QUERY}"), format!("/oai?repo=1&page=oai&{QUERY}")),
        (format!("{base}?{QUERY}"), format!("/oai?{QUERY}")),
    ] {
        let got = ask(&proxy, &received);
        assert_eq!(got.status, 200, "{received}");
        assert_eq!(
            source.requests().last().map(|received| received.target.clone()),
            Some(target),
            "{received}"
        );
    }
    let got = ask(&proxy, &format!("{base}?repo=1&{QUERY}"));
    assert!(got.text().contains(&format!(">{base}?repo=1</request>")), "{}", got.text());
    assert!(ask(&proxy, &format!("{base}?repo=2&{QUERY}")).text().contains("badArgument"));
    let form = format!(
        "POST {base}?repo=1 HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{QUERY}",
        source.address,
        QUERY.len()
    );
    assert_eq!(Harvester::ask(proxy.address(), &form).rest().status, 200);
}

#[test]
fn host_header_is_ignored_with_absolute_target() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    let base = source.base_url();
    let received = |fields: &str| {
        let request = format!("GET {base}?{QUERY} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n");
        Harvester::ask(proxy.address(), &request).rest().status
    };
    for fields in ["", "Host: other.example\r\n", "host: OTHER.example:80\r\n", "Host:\r\n"] {
        assert_eq!(received(fields), 200, "{fields:?}");
    }
    assert_eq!(received("Host: a\r\nHost: b\r\n"), 400, "RFC 9112, 3.2");
    let with_user = base.replace("http://", "http://me:secret@");
    assert_eq!(ask(&proxy, &format!("{with_user}?{QUERY}")).status, 400, "RFC 9110, 4.2.4");
}

#[test]
fn own_host_is_origin_form() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    let port = proxy.address().port();
    for target in [
        format!("http://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        format!("http://LOCALHOST:{port}"),
    ] {
        let got = ask(&proxy, &format!("{target}{LIST}"));
        assert_eq!((got.status, records(&got.text())), (200, records(&page_of(1))), "{target}");
        assert_eq!(ask(&proxy, &format!("{target}/-/livez")).status, 200);
    }
    for other in
        [format!("http://localhost.example:{port}"), "http://localhost:1".into(), "ftp://127.0.0.1".into()]
    {
        assert_eq!(ask(&proxy, &format!("{other}{LIST}")).status, 403, "{other}");
    }
}

#[test]
fn source_on_own_host_takes_precedence() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| {
        config.map("x", &source.base_url()).expect("a legal mapping");
        config.public_url = Some(format!("http://{}/mended", source.address));
    });
    let got = ask(&proxy, &format!("{}?{QUERY}", source.base_url()));
    assert_eq!((got.status, records(&got.text())), (200, records(&page_of(1))), "{}", got.text());
}

#[test]
fn connect_is_refused_with_advice() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    for target in ["source.example:443", "source.example", "http://source.example/"] {
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        let got = Harvester::ask(proxy.address(), &request).rest();
        assert_eq!((got.status, got.header("allow")), (405, "GET, HEAD, POST"), "{target}");
        let text = got.text();
        assert!(text.contains("set http_proxy and give the harvester http://"), "{text}");
    }
    assert_eq!(source.requests().len(), 0);
    assert_eq!(proxy.get(LIST).status, 200);
}

/// An Identify page.
fn identify(base: &str) -> String {
    page_of(0)
        .replace("<request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">", "<request verb=\"Identify\">")
        .replace(
            "<ListRecords>\n</ListRecords>",
            &format!(
                "<Identify><repositoryName>A</repositoryName><baseURL>{base}</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>a@example.org</adminEmail>\
             <earliestDatestamp>2020-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>\
             <granularity>YYYY-MM-DD</granularity></Identify>"
            ),
        )
}

#[test]
fn http_proxy_variable_is_sufficient() {
    let source = Source::start(|_, received| {
        if received.target.contains("verb=Identify") {
            Reply::xml(identify("https://elsewhere.example/oai"))
        } else {
            Reply::xml(page_of(2))
        }
    });
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping));
    let run = |program: &str, arguments: &[&str], url: &str| {
        let mut command = Command::new(program);
        command.args(arguments).arg(url).env("http_proxy", format!("http://{}", proxy.address()));
        for name in ["no_proxy", "NO_PROXY", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        let output = command.output().expect("it is on every machine that runs the tests");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let base = source.base_url();
    let urllib = "import sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1]).read())";
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    let programs: [(&str, &[&str]); 2] = [("python3", &["-c", urllib]), ("curl", &["-sSf"])];
    for (program, arguments) in programs.into_iter().filter(|(name, _)| *name != "curl" || has_curl) {
        let list = run(program, arguments, &format!("{base}?{QUERY}"));
        assert_eq!(records(&list), records(&page_of(2)), "{program}");
        assert!(list.contains(&format!(">{base}</request>")), "{program}: {list}");
        let said = run(program, arguments, &format!("{base}?verb=Identify"));
        assert!(said.contains(&format!("<baseURL>{base}</baseURL>")), "{program}: {said}");
    }
    assert!(
        source.requests().iter().all(|received| received.headers["via"].contains("oaimend-")),
        "all came by us"
    );
}
