//! The forms of record pages: citations, raw metadata, link sets, their choice by `Accept`, and canonical URLs.

use oaimend::config::CanonicalPage;

use super::gateway::{Mirrored, PAGE, with_fields};

const FIELDS: &str = "<dc:creator>Doe, Jane (ORCID: 0000-0002-1825-0097)</dc:creator><dc:date>2001</dc:date>\
    <dc:type>article</dc:type><dc:identifier>https://e.org/article/1</dc:identifier>\
    <dc:identifier>https://e.org/1.pdf</dc:identifier>";

const ENDINGS: [(&str, &str, &str); 7] = [
    ("", "text/html", "text/html; charset=UTF-8"),
    (".bib", "application/x-bibtex", "application/x-bibtex; charset=UTF-8"),
    (".ris", "application/x-research-info-systems", "application/x-research-info-systems; charset=UTF-8"),
    (".csl.json", "application/vnd.citationstyles.csl+json", "application/vnd.citationstyles.csl+json"),
    (".linkset.json", "application/linkset+json", "application/linkset+json"),
    (".linkset", "application/linkset", "application/linkset; charset=UTF-8"),
    (".json", "application/ld+json", "application/ld+json"),
];

#[test]
fn endings_and_accept_select_the_same_forms() {
    let mirrored = Mirrored::of(with_fields(FIELDS));
    for (ending, accept, content_type) in ENDINGS {
        let by_ending = mirrored.get(&format!("{PAGE}{ending}"));
        assert_eq!((by_ending.status, by_ending.header("content-type")), (200, content_type), "{ending}");
        assert_eq!(by_ending.header("vary"), "Accept, Accept-Encoding", "{ending}");
        assert_ne!(by_ending.header("etag"), "", "{ending}");
        let by_accept = mirrored.get_with(PAGE, &format!("Accept: {accept}, text/html;q=0.5\r\n"));
        assert_eq!((by_accept.status, by_accept.text()), (200, by_ending.text()), "{accept}");
        let refused = mirrored.get_with(PAGE, &format!("Accept: {accept};q=0, text/plain\r\n"));
        let other = if accept == "text/html" { "application/xml" } else { "text/html" };
        assert_eq!(refused.header("content-type"), format!("{other}; charset=UTF-8"), "{accept}");
        let unknown = mirrored.get(&format!("/x/record/unknown{ending}"));
        assert_eq!((unknown.status, unknown.header("vary")), (404, "Accept, Accept-Encoding"), "{ending}");
    }
    let refused = mirrored.get_with(PAGE, "Accept: text/html;q=0, application/*;q=0.1\r\n");
    assert_eq!(refused.header("content-type"), "application/xml; charset=UTF-8");
}

#[test]
fn page_links_to_its_descriptions_and_they_to_the_page() {
    let mirrored = Mirrored::of(with_fields(FIELDS));
    let page = format!("<http://{}{PAGE}", mirrored.proxy.address());
    let links = mirrored.get(PAGE).header("link").to_owned();
    for link in [
        format!("{page}.linkset>; rel=\"linkset\"; type=\"application/linkset\""),
        format!("{page}.csl.json>; rel=\"describedby\"; type=\"application/vnd.citationstyles.csl+json\""),
        "<https://orcid.org/0000-0002-1825-0097>; rel=\"author\"".to_owned(),
        "<https://e.org/1.pdf>; rel=\"item\"; type=\"application/pdf\"".to_owned(),
    ] {
        assert!(links.contains(&link), "{link} {links}");
    }
    let back = format!("{page}>; rel=\"describes\"; type=\"text/html\"");
    for path in [format!("{PAGE}.xml"), format!("{PAGE}.bib"), format!("{PAGE}?raw=oai_dc")] {
        assert_eq!(mirrored.get(&path).header("link"), back, "{path}");
    }
}

#[test]
fn raw_metadata_have_no_envelope() {
    let mirrored = Mirrored::of(with_fields("<dc:description>a &amp; b</dc:description>"));
    let raw = mirrored.get(&format!("{PAGE}?raw=oai_dc"));
    assert_eq!((raw.status, raw.header("content-type")), (200, "application/xml; charset=UTF-8"));
    let text = raw.text();
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<oai_dc:dc "), "{text}");
    assert!(text.ends_with("</oai_dc:dc>\n") && text.contains("a &amp; b"), "{text}");
    assert!(!text.contains("<header") && text.contains("xmlns:dc="), "{text}");
    assert_eq!(mirrored.get(&format!("{PAGE}?raw=marc21")).status, 404);
    let unchanged = mirrored
        .get_with(&format!("{PAGE}?raw=oai_dc"), &format!("If-None-Match: {}\r\n", raw.header("etag")));
    assert_eq!(unchanged.status, 304);
}

#[test]
fn canonical_page_is_at_the_source_or_here() {
    let canonical = |mirrored: &Mirrored| {
        let page = mirrored.get(PAGE).text();
        let (_, rest) = page.split_once("<link rel=\"canonical\" href=\"").expect("a canonical URL");
        rest.split('"').next().expect("its end").to_owned()
    };
    let ours = |mirrored: &Mirrored| format!("http://{}{PAGE}", mirrored.proxy.address());
    let home = Mirrored::of(with_fields("<dc:identifier>https://e.org/journal</dc:identifier>"));
    assert_eq!(canonical(&home), ours(&home));
    let configured =
        Mirrored::with(with_fields(FIELDS), |_| {}, |config| config.gateway.canonical = CanonicalPage::Own);
    assert_eq!(canonical(&configured), ours(&configured));
    let mirrored = Mirrored::of(with_fields(FIELDS));
    assert_eq!(canonical(&mirrored), "https://e.org/article/1");
}

#[test]
fn hostile_values_end_no_form() {
    let fields = "<dc:creator>}}\n@misc{x,&#13;\nER  - &#13;\nTY  - JOUR</dc:creator>".repeat(1_500);
    let mirrored = Mirrored::of(with_fields(&fields));
    let get = |ending: &str| mirrored.get(&format!("{PAGE}{ending}")).text();
    assert_eq!(get(".ris").lines().filter(|line| line.starts_with("ER")).count(), 1);
    assert_eq!(get(".bib").lines().filter(|line| line.starts_with('@')).count(), 1);
    let csl: serde_json::Value = serde_json::from_str(&get(".csl.json")).expect("it is JSON");
    assert_eq!(csl["author"].as_array().map(Vec::len), Some(1_500));
}
