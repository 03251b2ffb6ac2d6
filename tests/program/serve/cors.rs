//! `gateway.cors_origins`: scripts of other sites may read responses.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Reply, Source, fetch_with, page_of};
use oaimend::config::CorsOrigins;

const SITE: &str = "https://search.example.org";

/// A page, a failure and a page of the server itself, requested by a script of `SITE`.
fn responses(origins: CorsOrigins) -> [Got; 3] {
    let source = Source::start(|_, received| {
        if received.target.contains("Identify") {
            Reply::whole(404, "Content-Type: text/plain", "gone")
        } else {
            Reply::xml(page_of(3))
        }
    });
    let proxy = Proxy::with(|config| {
        config.map("x", &source.base_url()).expect("a legal mapping");
        config.gateway.cors_origins = origins;
    });
    [LIST, "/x?verb=Identify", "/x?verb=Nonsense"]
        .map(|path| fetch_with(proxy.address(), path, &format!("Origin: {SITE}\r\n")))
}

#[test]
fn scripts_of_other_sites_read_nothing_by_default() {
    for got in responses(CorsOrigins::default()) {
        assert_eq!(got.header("access-control-allow-origin"), "", "{got:?}");
        assert!(!got.header("vary").contains("Origin"), "{got:?}");
    }
}

#[test]
fn scripts_of_listed_sites_read_responses_and_failures() {
    let [site, other] = [SITE, "https://other.example.org"].map(str::to_owned);
    for got in responses(CorsOrigins::Listed(vec![other.clone(), site])) {
        assert_eq!(got.header("access-control-allow-origin"), SITE, "{got:?}");
        assert_eq!(got.header("access-control-expose-headers"), "Cache-Status, Proxy-Status, Retry-After");
        assert!(got.header("vary").contains("Origin"), "{got:?}");
    }
    for got in responses(CorsOrigins::Listed(vec![other])) {
        assert_eq!(got.header("access-control-allow-origin"), "", "{got:?}");
        assert!(got.header("vary").contains("Origin"), "{got:?}");
    }
}

#[test]
fn scripts_of_all_sites_read_responses() {
    for got in responses(CorsOrigins::Any) {
        assert_eq!(got.header("access-control-allow-origin"), "*", "{got:?}");
        assert!(!got.header("vary").contains("Origin"), "{got:?}");
    }
}
