//! By which method of HTTP a source is asked, and what becomes of one that takes only the other.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Asked, Reply, Source, page_of};
use oaimend::config::{Method, PageFallback};

/// A source that takes one method only; the other is answered with `status`.
fn only(method: &'static str, status: u16) -> Source {
    Source::start(move |_, asked| {
        if asked.method == method {
            Reply::xml(page_of(2))
        } else {
            Reply::whole(status, "", "<html>no</html>")
        }
    })
}

fn methods(asked: &[Asked]) -> Vec<&str> {
    asked.iter().map(|asked| asked.method.as_str()).collect()
}

#[test]
fn a_post_is_a_form_with_each_argument_encoded_once() {
    let source = only("POST", 405);
    let mut mapping_url = source.base_url();
    mapping_url.push_str("?repo=1");
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.quirks.method = Method::Post;
        mapping.base_url = mapping_url.parse().expect("a URL");
    });
    let got = proxy.get("/x?verb=ListRecords&resumptionToken=a%2Bb+c%25%26%C3%A9");
    assert_eq!(got.status, 200, "{}", got.text());
    let asked = source.asked().pop().expect("it was asked");
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/oai?repo=1"));
    assert_eq!(asked.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(asked.form, "verb=ListRecords&resumptionToken=a%2Bb%20c%25%26%C3%A9");
}

#[test]
fn the_other_method_is_tried_where_the_mapping_says_so_and_what_worked_is_remembered() {
    for (configured, taken, refused) in
        [(Method::GetThenPost, "POST", "GET"), (Method::PostThenGet, "GET", "POST")]
    {
        for status in [400, 405, 414, 501] {
            let source = only(taken, status);
            let proxy = Proxy::tuned(&source, |mapping| mapping.quirks.method = configured);
            assert_eq!(proxy.get(LIST).status, 200, "{configured:?} {status}");
            assert_eq!(proxy.get("/x?verb=ListRecords&metadataPrefix=marc").status, 200);
            assert_eq!(methods(&source.asked()), [refused, taken, taken], "{configured:?} {status}");
            assert!(proxy.clock.pauses().is_empty(), "nothing is waited for");
        }
    }
}

#[test]
fn without_a_word_of_the_mapping_and_at_other_failures_there_is_no_other_method() {
    for (configured, status, asked) in
        [(Method::Get, 405, 1), (Method::GetThenPost, 404, 1), (Method::GetThenPost, 403, 1)]
    {
        let source = only("POST", status);
        // A 404 may be about this page alone: by default one question for its headers would follow.
        let proxy = Proxy::tuned(&source, |mapping| {
            (mapping.quirks.method, mapping.quirks.page_fallback) = (configured, PageFallback::Off);
        });
        assert_eq!(proxy.get(LIST).status, if status == 403 { 503 } else { 502 });
        assert_eq!(methods(&source.asked()), vec!["GET"; asked], "{configured:?} {status}");
    }
    // Where neither is taken, each is tried once.
    let source = Source::start(|_, _| Reply::whole(405, "", ""));
    let proxy = Proxy::tuned(&source, |mapping| mapping.quirks.method = Method::GetThenPost);
    assert_eq!(proxy.get(LIST).status, 502);
    assert_eq!(methods(&source.asked()), ["GET", "POST"]);
}

#[test]
fn a_bad_argument_told_with_status_400_is_an_answer() {
    let source = Source::start(|_, _| {
        let body = concat!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>",
            "<request>http://source.example/oai</request><error code=\"badArgument\">set</error></OAI-PMH>"
        );
        Reply::whole(400, "Content-Type: text/xml", body)
    });
    let proxy = Proxy::tuned(&source, |mapping| mapping.quirks.method = Method::GetThenPost);
    let got = proxy.get(LIST);
    assert_eq!(got.status, 200);
    assert!(got.text().contains("badArgument"), "{}", got.text());
    assert_eq!(methods(&source.asked()), ["GET"]);
}

#[test]
fn a_form_goes_where_a_redirect_leads_and_is_left_behind_by_303() {
    for (status, expected) in [(301, "POST"), (302, "POST"), (303, "GET"), (307, "POST"), (308, "POST")] {
        let source = Source::start(move |number, asked| {
            if number == 0 {
                return Reply::redirect(status, "/elsewhere?verb=ListRecords&metadataPrefix=oai_dc");
            }
            let is_asked_so = asked.method == expected && (asked.method == "GET" || !asked.form.is_empty());
            if is_asked_so { Reply::xml(page_of(2)) } else { Reply::whole(404, "", "") }
        });
        let proxy = Proxy::tuned(&source, |mapping| mapping.quirks.method = Method::Post);
        assert_eq!(proxy.get(LIST).status, 200, "{status}");
        assert_eq!(methods(&source.asked()), ["POST", expected], "{status}");
    }
}
