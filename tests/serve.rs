//! The promises of `oaimend serve`, kept towards a source that keeps none.

#[path = "support/source.rs"]
mod source;

use oaimend::config::Config;
use oaimend::proxy::Running;
use source::{Got, Harvester, Reply, Source, fetch, fetch_with, page_of};
use std::net::SocketAddr;

/// A proxy in front of one source, with the id `x`.
struct Proxy {
    running: Running,
    _data: tempfile::TempDir,
}

impl Proxy {
    fn of(source: &Source) -> Self {
        Self::with(|config| config.map("x", &source.base_url()).expect("a legal mapping"))
    }

    fn with(configure: impl FnOnce(&mut Config)) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder");
        let mut config = Config::on_loopback(data.path());
        configure(&mut config);
        Self { running: Running::start(config).expect("loopback has free ports"), _data: data }
    }

    fn address(&self) -> SocketAddr {
        self.running.public_addr
    }

    fn get(&self, path: &str) -> Got {
        fetch(self.address(), path)
    }
}

const LIST: &str = "/x?verb=ListRecords&metadataPrefix=oai_dc";

/// The records of a page, as they stand in it.
fn records(page: &str) -> &str {
    let start = page.find("<ListRecords>").unwrap_or(page.len());
    let end = page.find("</ListRecords>").unwrap_or(page.len());
    &page[start..end]
}

#[test]
fn a_page_of_the_source_arrives_with_the_headers_of_the_proxy() {
    let source = Source::start(|_, _| {
        Reply::whole(200, "Content-Type: application/xml\nETag: \"x\"\nSet-Cookie: a=b", page_of(3))
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true));
    assert_eq!(records(&got.text()), records(&page_of(3)));
    assert_eq!(got.header("content-type"), "text/xml; charset=UTF-8");
    assert_eq!(got.header("cache-status"), "oaimend; fwd=bypass; fwd-status=200");
    assert!(got.header("via").starts_with("1.1 oaimend-"), "{got:?}");
    for absent in ["etag", "set-cookie", "content-length", "proxy-status"] {
        assert_eq!(got.header(absent), "", "{absent}");
    }
    let asked = source.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].target, "/oai?verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(asked[0].headers["user-agent"], concat!("oaimend/", env!("CARGO_PKG_VERSION")));
    assert!(asked[0].headers["via"].starts_with("1.1 oaimend-"));
}
