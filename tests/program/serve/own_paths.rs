//! Repositories with the names of the gateway's own paths.

use oaimend::config::Mapping;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;

use crate::fixtures::collection::Collection;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, Harvester, fetch_with};

/// Every name in a path of the gateway or of the admin listener that a mapping can have.
const IDS: [&str; 10] = [
    "records",
    "sets",
    "record",
    "xml",
    "sitemap.xml",
    "sitemap-repositories.xml.gz",
    "sitemap-x-0.xml.gz",
    "quarantine",
    "status",
    "x",
];

fn post_identify(proxy: &Proxy, path: &str) -> Got {
    let (address, form) = (proxy.address(), "verb=Identify");
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{form}",
        form.len()
    );
    Harvester::ask(address, &request).rest()
}

#[test]
fn repositories_with_the_names_of_our_paths_and_these_paths_are_served() {
    let (source, _) = Collection::of(3).start();
    let proxy = Proxy::with(|config| {
        config.mirror.aggregate = true;
        for id in IDS {
            let mapping = Mapping::new(id, &source.base_url(), &Limits::default()).expect("a legal id");
            let mapping = Mapping { mirror: Some(MirrorSettings::default()), ..mapping };
            config.repositories.add_fixed(mapping);
        }
    });
    let base = format!("http://{}", proxy.address());
    let is_identify = |path: &str, text: &str, of: &str| {
        let expected = format!("<baseURL>{base}/{of}</baseURL>");
        assert!(text.contains(&expected), "{path}: {expected} is not in {text}");
    };
    for id in IDS {
        proxy.wait_for_harvests(id, 1);
        let mirror = format!("_mirror/{id}");
        for of in [id, &mirror] {
            for path in [format!("/{of}"), format!("/{of}/xml")] {
                let got = proxy.get(&format!("{path}?verb=Identify"));
                is_identify(&path, &got.text(), of);
                let posted = post_identify(&proxy, &path);
                is_identify(&path, &posted.text(), of);
            }
            let page = fetch_with(
                proxy.address(),
                &format!("/{of}?verb=Identify"),
                "Accept: text/html\r\nSec-Fetch-Dest: document\r\n",
            );
            let xml_link = format!("/{of}/xml?verb=Identify");
            assert!(page.header("content-type").starts_with("text/html"), "{of}: {page:?}");
            assert!(page.text().contains(&xml_link), "{of}: {}", page.text());
        }
        for path in ["", "records/", "sets/", "record/oai%3Ac%3A00001"] {
            let path = format!("/{id}/{path}");
            let page = fetch_with(proxy.address(), &path, "Accept: text/html\r\n");
            assert_eq!(page.status, 200, "{path}: {}", page.text());
            assert!(page.header("content-type").starts_with("text/html"), "{path}: {page:?}");
        }
        for path in
            [format!("/{id}/"), format!("/{id}/quarantine/"), format!("/-/repositories/{id}/quarantine")]
        {
            let page = fetch_with(proxy.admin(), &path, "Accept: text/html\r\n");
            assert_eq!(page.status, 200, "{path}: {}", page.text());
        }
    }
    for path in ["/_all", "/_all/xml"] {
        is_identify(path, &proxy.get(&format!("{path}?verb=Identify")).text(), "_all");
    }
    for (path, content_type) in [
        ("/sitemap.xml", "application/xml; charset=UTF-8"),
        ("/sitemap-repositories.xml.gz", "application/gzip"),
        ("/sitemap-x-0.xml.gz", "application/gzip"),
        ("/sitemap-sitemap.xml-0.xml.gz", "application/gzip"),
        // No repository has this name.
        ("/sitemap-xml-0.xml.gz?verb=Identify", "application/gzip"),
    ] {
        let got = proxy.get(path);
        assert_eq!((got.status, got.header("content-type")), (200, content_type), "{path}: {got:?}");
    }
}
