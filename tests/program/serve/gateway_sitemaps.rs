//! The sitemaps and robots.txt.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use flate2::read::GzDecoder;
use oaimend::config::{CanonicalPage, Config, Mapping, RecordPages, Robots};

use super::gateway::{Mirrored, PAGE, mapping, with_fields};
use super::gateway_bins::store_records;
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, Harvester, post};

/// The texts of the elements of this name.
fn texts(xml: &str, name: &str) -> Vec<String> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let found = xml.split(&start).skip(1);
    found.filter_map(|rest| rest.split(&end).next()).map(str::to_owned).collect()
}

/// The XML of a sitemap.
#[track_caller]
fn unpacked(got: &Got) -> String {
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!((got.header("content-type"), got.header("content-encoding")), ("application/gzip", ""));
    let mut xml = String::new();
    GzDecoder::new(&got.body[..]).read_to_string(&mut xml).expect("a complete gzip stream");
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns="), "{xml}");
    assert!(xml.ends_with("</urlset>\n"), "{xml}");
    xml
}

/// The paths of the sitemaps in the index.
#[track_caller]
fn sitemaps(mirrored: &Mirrored) -> Vec<String> {
    let got = mirrored.get("/sitemap.xml");
    assert_eq!((got.status, got.header("content-type")), (200, "application/xml; charset=UTF-8"));
    let base = format!("http://{}", mirrored.proxy.address());
    let path = |url: String| url.strip_prefix(&base).expect("a URL of this server").to_owned();
    texts(&got.text(), "loc").into_iter().map(path).collect()
}

#[test]
fn sitemaps_contain_every_live_record() {
    let mut collection = Collection::of(120);
    for number in (0..120).step_by(10) {
        collection.entries.get_mut(&identifier(number)).expect("it exists").deleted = true;
    }
    let mirrored = Mirrored::of(collection);
    let before = mirrored.source.requests().len();
    assert_eq!(sitemaps(&mirrored), ["/sitemap-repositories.xml.gz", "/sitemap-x-0.xml.gz"]);
    let xml = unpacked(&mirrored.get("/sitemap-x-0.xml.gz"));
    let base = format!("http://{}", mirrored.proxy.address());
    let expected: BTreeSet<String> = (0..120)
        .filter(|number| number % 10 != 0)
        .map(|number| format!("{base}/x/record/{}", identifier(number).replace(':', "%3A")))
        .collect();
    let urls = texts(&xml, "loc");
    assert_eq!((urls.len(), urls.into_iter().collect::<BTreeSet<_>>()), (108, expected));
    let first = &texts(&xml, "lastmod")[0];
    let record = mirrored.get("/x/record/oai%3Ac%3A00001").text();
    assert!(first.ends_with('Z') && record.contains(&format!("<time>{first}</time>")), "{first}");
    let pages = texts(&unpacked(&mirrored.get("/sitemap-repositories.xml.gz")), "loc");
    assert_eq!(pages, ["/", "/x/", "/x/records/"].map(|path| format!("{base}{path}")));
    assert_eq!(mirrored.source.requests().len(), before, "a sitemap caused a request to the source");
}

#[test]
fn sitemaps_contain_only_canonical_pages() {
    let fields = "<dc:identifier>https://e.org/article/1</dc:identifier>";
    let urls = |mirrored: &Mirrored| texts(&unpacked(&mirrored.get("/sitemap-x-0.xml.gz")), "loc");
    let mirrored = Mirrored::of(with_fields(fields));
    let base = format!("http://{}", mirrored.proxy.address());
    assert_eq!((urls(&mirrored).len(), urls(&mirrored).contains(&format!("{base}{PAGE}"))), (4, false));
    let with_own_pages = |collection| {
        let configure = |config: &mut Config| config.gateway.canonical = CanonicalPage::Own;
        Mirrored::with(collection, |_| {}, configure)
    };
    assert_eq!(urls(&with_own_pages(with_fields(fields))).len(), 5);
    let mut collection = with_fields(fields);
    collection.entries.retain(|other, _| *other == identifier(3));
    let empty = Mirrored::of(collection);
    assert_eq!(urls(&empty), [format!("http://{}/x/", empty.proxy.address())]);
}

#[test]
fn sitemaps_have_fixed_ranges() {
    let Mirrored { source, collection, proxy } = Mirrored::of(Collection::of(3));
    let proxy = proxy.restarted(|config| {
        // Sequences 3 to 41,002.
        for (stamp_secs, numbers) in [(4_072_118_400, 0..20_500), (4_072_118_401, 0..20_500)] {
            let records = numbers.map(|number| (format!("{stamp_secs}:{number}"), Vec::new()));
            store_records(&config.data, stamp_secs, records);
        }
        // These records say nothing.
        config.gateway.canonical = CanonicalPage::Own;
        config.repositories.add_fixed(mapping(&source));
    });
    let mirrored = Mirrored { source, collection, proxy };
    let parts = ["/sitemap-x-0.xml.gz", "/sitemap-x-1.xml.gz", "/sitemap-x-2.xml.gz"];
    assert_eq!(sitemaps(&mirrored)[1..], parts);
    let counts = parts.map(|path| texts(&unpacked(&mirrored.get(path)), "loc").len());
    assert_eq!(counts, [20_000, 20_000, 1_003]);
    for path in ["/sitemap-x-3.xml.gz", "/sitemap-x-18446744073709551615.xml.gz", "/sitemap-y-0.xml.gz"] {
        assert_eq!(mirrored.get(path).status, 404, "{path}");
    }
}

#[test]
fn sitemaps_have_the_headers_of_pages() {
    let mirrored = Mirrored::of(Collection::of(5));
    let path = "/sitemap-x-0.xml.gz";
    let first = mirrored.get(path);
    let tag = first.header("etag");
    assert_eq!(first.header("cache-control"), "public, max-age=300");
    let compressed = mirrored.get_with(path, "Accept-Encoding: gzip\r\n");
    assert_eq!((unpacked(&compressed), compressed.header("etag")), (unpacked(&first), tag));
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nIf-None-Match: {tag}\r\n\r\n");
    let mut harvester = Harvester::ask(mirrored.proxy.address(), &request);
    assert_eq!(harvester.head().status, 304);
    harvester.again(&format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(harvester.head().status, 200);
    harvester.again(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(unpacked(&harvester.whole_body()), unpacked(&first), "the connection stays usable");
    // HTTP/1.0 knows no chunks: the body ends with the connection.
    let mut old = TcpStream::connect(mirrored.proxy.address()).expect("it listens");
    write!(old, "GET {path} HTTP/1.0\r\n\r\n").expect("it reads");
    let mut response = Vec::new();
    old.read_to_end(&mut response).expect("it ends the connection");
    assert!(response.ends_with(&first.body), "{}", String::from_utf8_lossy(&response));
    assert!(!String::from_utf8_lossy(&response).contains("chunked"));
    for path in ["/sitemap.xml", "/sitemap-repositories.xml.gz"] {
        let tag = mirrored.get(path).header("etag").to_owned();
        let known = format!("If-None-Match: {tag}\r\n");
        let got = mirrored.get_with(path, &known);
        assert_eq!((got.status, got.header("etag")), (304, tag.as_str()), "{path}");
    }
    for path in [path, "/sitemap.xml", "/sitemap-repositories.xml.gz"] {
        assert_eq!(post(mirrored.proxy.address(), path, "").header("allow"), "GET, HEAD", "{path}");
    }
    change(&mirrored.collection, |collection| {
        collection.now_secs += 86_400;
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        (entry.datestamp_secs, entry.deleted) = (now_secs, true);
    });
    mirrored.harvest_again();
    let after = mirrored.get_with(path, &format!("If-None-Match: {tag}\r\n"));
    assert_eq!(texts(&unpacked(&after), "loc").len(), 4);
}

#[test]
fn too_long_urls_are_left_out() {
    let mut collection = Collection::of(1);
    let entry = collection.entries.values().next().cloned().expect("a record");
    collection.entries.insert("é".repeat(900), entry.clone());
    collection.entries.insert("a".repeat(1_900), entry);
    let mirrored = Mirrored::of(collection);
    let urls = texts(&unpacked(&mirrored.get("/sitemap-x-0.xml.gz")), "loc");
    assert_eq!(urls.len(), 2);
    assert!(urls.iter().all(|url| url.len() < 2_048), "{urls:?}");
}

#[test]
fn only_own_complete_record_pages_are_in_sitemaps() {
    let only_pages = ["/sitemap-repositories.xml.gz"];
    for records in [RecordPages::Link, RecordPages::Off] {
        let mirrored = Mirrored::with(Collection::of(5), |mapping| mapping.records = records, |_| {});
        assert_eq!(sitemaps(&mirrored), only_pages, "{records:?}");
        assert_eq!(mirrored.get("/sitemap-x-0.xml.gz").status, 404, "{records:?}");
        assert!(!mirrored.get("/robots.txt").text().contains("Sitemap"), "{records:?}");
        assert_eq!(texts(&unpacked(&mirrored.get(only_pages[0])), "loc").len(), 2, "{records:?}");
    }
    let mut collection = Collection::of(25);
    collection.fails_at = Some("verb=List".to_owned());
    let mirrored = Mirrored::of(collection);
    assert_eq!(sitemaps(&mirrored), only_pages);
    let got = mirrored.get("/sitemap-x-0.xml.gz");
    assert_eq!((got.status, got.header("retry-after")), (503, "300"));
    let Mirrored { source, proxy, .. } = Mirrored::of(Collection::of(5));
    let proxy = proxy.restarted(|_| {});
    assert_eq!(proxy.get("/sitemap-x-0.xml.gz").status, 410);
    let proxy = proxy.restarted(|config| {
        config.repositories.add_fixed(Mapping { mirror: None, ..mapping(&source) });
    });
    assert_eq!(proxy.get("/sitemap-x-0.xml.gz").status, 410);
    assert!(!proxy.get("/robots.txt").text().contains("Sitemap"));
}

#[test]
fn robots_are_told_where_the_sitemap_is() {
    let public_url = |config: &mut Config| config.public_url = Some("https://e.org/m".to_owned());
    let mirrored = Mirrored::with(Collection::of(1), |_| {}, public_url);
    let of_programs = "Disallow: /_api/\nDisallow: /_dump\nDisallow: /_changes\nDisallow: /_sru\nDisallow: /_openurl\n\
                       Disallow: /_resolve\n";
    let expected = format!(
        "User-agent: *\nAllow: /_search?verb=\nAllow: /_recent?verb=\nDisallow: /_search?\nDisallow: /_search.\n\
         Disallow: /_recent\nDisallow: /*/browse/\n{of_programs}\nSitemap: https://e.org/m/sitemap.xml\n"
    );
    assert_eq!(mirrored.get("/robots.txt").text(), expected);
    let deny = |config: &mut Config| config.gateway.robots = Robots::Deny;
    let mirrored = Mirrored::with(Collection::of(1), |_| {}, deny);
    assert!(!mirrored.get("/robots.txt").text().contains("Sitemap"));
    let off = |config: &mut Config| config.gateway.enabled = false;
    let mirrored = Mirrored::with(Collection::of(1), |_| {}, off);
    assert!(!mirrored.get("/robots.txt").text().contains("Sitemap"));
    for path in ["/sitemap.xml", "/sitemap-x-0.xml.gz"] {
        assert_eq!(mirrored.get(path).status, 404, "{path}");
    }
    let proxy = Proxy::with(|_| {});
    assert_eq!(proxy.get("/robots.txt").text(), format!("User-agent: *\n{of_programs}"));
}
