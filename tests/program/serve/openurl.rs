//! OpenURLs: from the description of a work to its record, or to what is wanted of it.

use super::gateway::Mirrored;
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::source::{Got, Harvester};

const ARTICLE: usize = 3;

/// A mirror with an article that has a DOI, a full text and a journal, after it is indexed.
fn mirrored() -> Mirrored {
    let mut collection = Collection::of(6);
    collection.entries.get_mut(&identifier(ARTICLE)).expect("it exists").title =
        "Tides and ferries</dc:title><dc:creator>Berg, Anna</dc:creator><dc:type>article</dc:type>\
         <dc:identifier>https://doi.org/10.1234/Tides.7</dc:identifier>\
         <dc:identifier>http://files.example/tides.pdf</dc:identifier>\
         <dc:source>Harbour Studies, ISSN 1082-9873, vol. 12, no. 4, p. 301-318 (2019)</dc:source><dc:title>Other"
            .to_owned();
    let mirrored = Mirrored::of(collection);
    mirrored.proxy.wait_for_results("/_search.json?q=tides", 1);
    mirrored.proxy.wait_for_results("/_search.json?q=title", 5);
    mirrored
}

/// The response, after the identifiers of the mirror are known.
#[track_caller]
fn ask(mirrored: &Mirrored, query: &str) -> Got {
    for _ in 0..10_000 {
        let got = mirrored.get(&format!("/_openurl?{query}"));
        if got.status != 503 {
            return got;
        }
        std::thread::yield_now();
    }
    panic!("{query}: 503");
}

fn send_form(mirrored: &Mirrored, form: &str) -> Got {
    let (address, length) = (mirrored.proxy.address(), form.len());
    let head = "Content-Type: application/x-www-form-urlencoded\r\nConnection: close";
    let request = format!(
        "POST /_openurl HTTP/1.1\r\nHost: {address}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{form}"
    );
    Harvester::ask(address, &request).whole_body()
}

#[track_caller]
fn leads_to(mirrored: &Mirrored, query: &str, expected: &str) {
    let got = ask(mirrored, query);
    assert_eq!((got.status, got.header("location")), (303, expected), "{query}: {}", got.text());
}

const PAGE: &str = "/x/record/oai%3Ac%3A00003";

#[test]
fn an_identifier_or_a_description_leads_to_the_page_of_the_record() {
    let mirrored = mirrored();
    for query in [
        "url_ver=Z39.88-2004&rft_id=info:doi/10.1234/tides.7",
        "rft_id=info:pmid/1&rft_id=info:oai/oai:c:00003",
        "sid=a:b&id=doi:10.1234/TIDES.7",
        "genre=article&issn=10829873&volume=12&issue=4&spage=301",
        "rft.atitle=Tides+and+ferries&rft.aulast=Berg&rft.date=2019",
    ] {
        leads_to(&mirrored, query, PAGE);
    }
    let form = send_form(&mirrored, "id=doi:10.1234/tides.7");
    assert_eq!((form.status, form.header("location")), (303, PAGE), "{}", form.text());
    assert_eq!(mirrored.get(PAGE).status, 200);
    // Several records fit a vague title.
    let several = ask(&mirrored, "rft.btitle=Title&rft.genre=book");
    assert_eq!(several.status, 303);
    assert!(several.header("location").starts_with("/_search?q="), "{:?}", several.headers);
}

#[test]
fn what_fits_no_record_is_not_found() {
    let mirrored = mirrored();
    for (query, status) in [
        ("rft_id=info:doi/10.9999/none", 404),
        ("rft.atitle=A+work+of+nobody&rft.aulast=Nobody", 404),
        ("aulast=Berg&date=2019", 404),
        ("rft_id=info:doi/10.1234/tides.7&svc_id=info:lanl-repo/svc/unknown", 404),
        ("", 400),
        ("url_ctx_ref=http://evil.example/", 400),
        ("rft_id=%0d%0aLocation:%20http://evil.example/", 404),
    ] {
        let got = ask(&mirrored, query);
        assert_eq!((got.status, got.header("location")), (status, ""), "{query}: {}", got.text());
    }
    let long = format!("/_openurl?id=doi:10.1/{}", "x".repeat(100 << 10));
    assert_eq!(mirrored.get(&long).status, 414);
    let keys = send_form(&mirrored, &"a=b&".repeat(300));
    assert_eq!(keys.status, 400, "{}", keys.text());
}

#[test]
fn services_lead_to_what_is_wanted_of_the_record() {
    let mirrored = mirrored();
    let service = |name: &str| format!("rft_id=info:doi/10.1234/tides.7&svc_id=info:lanl-repo/svc/{name}");
    for name in ["locate", "locate.sru"] {
        leads_to(&mirrored, &service(name), "/_resolve/doi%3A10.1234%2Ftides.7");
    }
    leads_to(&mirrored, &service("getDatastream"), "http://files.example/tides.pdf");
    let list = ask(&mirrored, &service("identifiers.list"));
    assert_eq!((list.status, list.text().as_str()), (200, "oai:c:00003\n"));
    // The crosswalk is off.
    assert_eq!(ask(&mirrored, &service("getDIDL")).status, 404);
    let none = ask(&mirrored, "rft_id=info:oai/oai:c:00001&svc_id=info:lanl-repo/svc/getDatastream");
    assert_eq!(none.status, 404, "{}", none.text());
}
