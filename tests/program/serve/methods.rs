//! The HTTP method of requests to a source, and the fallback to the other method.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{ReceivedRequest, Reply, Source, page_of};
use oaimend_upstream::settings::{Method, PageFallback};

/// A source that accepts one method; it answers the other with `status`.
fn only(method: &'static str, status: u16) -> Source {
    Source::start(move |_, received| {
        if received.method == method {
            Reply::xml(page_of(2))
        } else {
            Reply::whole(status, "", "<html>no</html>")
        }
    })
}

fn methods(received: &[ReceivedRequest]) -> Vec<&str> {
    received.iter().map(|received| received.method.as_str()).collect()
}

#[test]
fn post_arguments_are_encoded_once() {
    let source = only("POST", 405);
    let mut mapping_url = source.base_url();
    mapping_url.push_str("?repo=1");
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().quirks.method = Method::Post;
        mapping.source_mut().base_url = mapping_url.parse().expect("a URL");
    });
    let got = proxy.get("/x?verb=ListRecords&resumptionToken=a%2Bb+c%25%26%C3%A9");
    assert_eq!(got.status, 200, "{}", got.text());
    let received = source.requests().pop().expect("it was asked");
    assert_eq!((received.method.as_str(), received.target.as_str()), ("POST", "/oai?repo=1"));
    assert_eq!(received.headers["content-type"], "application/x-www-form-urlencoded");
    assert_eq!(received.form, "verb=ListRecords&resumptionToken=a%2Bb%20c%25%26%C3%A9");
}

#[test]
fn fallback_method_is_remembered() {
    for (configured, taken, refused) in
        [(Method::GetThenPost, "POST", "GET"), (Method::PostThenGet, "GET", "POST")]
    {
        for status in [400, 405, 414, 501] {
            let source = only(taken, status);
            let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.method = configured);
            assert_eq!(proxy.get(LIST).status, 200, "{configured:?} {status}");
            assert_eq!(proxy.get("/x?verb=ListRecords&metadataPrefix=marc").status, 200);
            assert_eq!(methods(&source.requests()), [refused, taken, taken], "{configured:?} {status}");
            assert!(proxy.clock.pauses().is_empty(), "nothing is waited for");
        }
    }
}

#[test]
fn no_fallback_by_default_or_for_other_failures() {
    for (configured, status, received) in
        [(Method::Get, 405, 1), (Method::GetThenPost, 404, 1), (Method::GetThenPost, 403, 1)]
    {
        let source = only("POST", status);
        // A 404 may be about this page alone; by default a request for its headers would follow.
        let proxy = Proxy::tuned(&source, |mapping| {
            (mapping.source_mut().quirks.method, mapping.source_mut().quirks.page_fallback) =
                (configured, PageFallback::Off);
        });
        assert_eq!(proxy.get(LIST).status, if status == 403 { 503 } else { 502 });
        assert_eq!(methods(&source.requests()), vec!["GET"; received], "{configured:?} {status}");
    }
    // If the source accepts neither, each is tried once.
    let source = Source::start(|_, _| Reply::whole(405, "", ""));
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.method = Method::GetThenPost);
    assert_eq!(proxy.get(LIST).status, 502);
    assert_eq!(methods(&source.requests()), ["GET", "POST"]);
}

#[test]
fn bad_argument_with_status_400_is_a_response() {
    let source = Source::start(|_, _| {
        let body = concat!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>",
            "<request>http://source.example/oai</request><error code=\"badArgument\">set</error></OAI-PMH>"
        );
        Reply::whole(400, "Content-Type: text/xml", body)
    });
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.method = Method::GetThenPost);
    let got = proxy.get(LIST);
    assert_eq!(got.status, 200);
    assert!(got.text().contains("badArgument"), "{}", got.text());
    assert_eq!(methods(&source.requests()), ["GET"]);
}

#[test]
fn redirected_post_keeps_its_form_except_for_303() {
    for (status, expected) in [(301, "POST"), (302, "POST"), (303, "GET"), (307, "POST"), (308, "POST")] {
        let source = Source::start(move |number, received| {
            if number == 0 {
                return Reply::redirect(status, "/elsewhere?verb=ListRecords&metadataPrefix=oai_dc");
            }
            let is_expected =
                received.method == expected && (received.method == "GET" || !received.form.is_empty());
            if is_expected { Reply::xml(page_of(2)) } else { Reply::whole(404, "", "") }
        });
        let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.method = Method::Post);
        assert_eq!(proxy.get(LIST).status, 200, "{status}");
        assert_eq!(methods(&source.requests()), ["POST", expected], "{status}");
    }
}
