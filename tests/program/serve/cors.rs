//! `gateway.cors_origins`: scripts of other sites may read responses.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch_with, page_of};
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
        assert_eq!(
            got.header("access-control-expose-headers"),
            "Cache-Status, ETag, Link, Proxy-Status, Retry-After"
        );
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

#[test]
fn preflight_requests_are_answered_for_all_urls() {
    let proxy_of = |origins| Proxy::with(|config| config.gateway.cors_origins = origins);
    let asks = |proxy: &Proxy, path: &str, method: &str| {
        let head = format!(
            "OPTIONS {path} HTTP/1.1\r\nHost: x\r\nOrigin: {SITE}\r\n{method}Connection: close\r\n\r\n"
        );
        Harvester::ask(proxy.address(), &head).rest()
    };
    let get = "Access-Control-Request-Method: GET\r\n";
    let listed = proxy_of(CorsOrigins::Listed(vec![SITE.to_owned()]));
    for path in [LIST, "/", "/x/", "/x/record/1.json", "/sitemap.xml"] {
        let got = asks(&listed, path, get);
        assert_eq!((got.status, got.body.len(), got.header("content-length")), (204, 0, ""), "{path}");
        assert_eq!(got.header("access-control-allow-origin"), SITE, "{path}");
        assert_eq!(got.header("access-control-allow-methods"), "GET, HEAD, POST", "{path}");
        assert!(got.header("access-control-allow-headers").contains("If-None-Match"), "{path}");
    }
    assert_eq!(asks(&listed, "/", "").status, 405);
    let other = proxy_of(CorsOrigins::Listed(vec!["https://other.example.org".to_owned()]));
    assert_eq!(asks(&other, "/", get).header("access-control-allow-origin"), "");
    assert_eq!(asks(&proxy_of(CorsOrigins::default()), "/", get).status, 405);
}
