//! Identify from the mapping, for a source that answers other requests but never this one.

use crate::fixtures::keeping::{IDENTIFY, identify};
use crate::fixtures::lists::error_page;
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Reply, Source, page_of};
use oaimend::config::Mapping;
use oaimend_repair::IdentifyValues;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The response of the source to ListMetadataFormats, and its time.
const FORMATS: &str = "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
    <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
    <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat>\
    </ListMetadataFormats>";

/// A source that answers Identify with `refusal`, and everything else well.
fn source_without_identify(refusal: impl Fn() -> Reply + Send + Sync + 'static) -> Source {
    Source::start(move |_, received| {
        if received.target.contains("verb=Identify") {
            return refusal();
        }
        if received.target.contains("verb=ListMetadataFormats") {
            let page = page_of(0).replace("ListRecords\" metadataPrefix=\"oai_dc", "ListMetadataFormats");
            let (head, tail) = page.split_once("<ListRecords>").expect("a list");
            let (_, tail) = tail.split_once("</ListRecords>").expect("a list");
            return Reply::xml(format!("{head}{FORMATS}{tail}"));
        }
        Reply::xml(page_of(3))
    })
}

fn state_all(mapping: &mut Mapping) {
    let identify = &mut mapping.source_mut().identify;
    identify.repository_name = Some("Maps & Plans".to_owned());
    identify.admin_email = Some("oai@example.org".to_owned());
    identify.earliest_datestamp = Some("2001-02-03".to_owned());
    identify.deleted_record = Some("transient".to_owned());
    identify.granularity = Some("YYYY-MM-DDThh:mm:ssZ".to_owned());
}

#[track_caller]
fn assert_from_mapping(got: &Got, proxy: &Proxy) {
    let base_url = format!("http://{}/x", proxy.address());
    let expected = format!(
        "  <responseDate>2026-01-02T03:04:05Z</responseDate>\n  <request verb=\"Identify\">{base_url}</request>\n  <Identify>\n    \
         <repositoryName>Maps &amp; Plans</repositoryName>\n    <baseURL>{base_url}</baseURL>\n    \
         <protocolVersion>2.0</protocolVersion>\n    <adminEmail>oai@example.org</adminEmail>\n    \
         <earliestDatestamp>2001-02-03T00:00:00Z</earliestDatestamp>\n    \
         <deletedRecord>transient</deletedRecord>\n    <granularity>YYYY-MM-DDThh:mm:ssZ</granularity>\n  \
         </Identify>\n</OAI-PMH>\n"
    );
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.text().ends_with(&expected), "{}", got.text());
}

#[test]
fn identify_that_always_fails_is_answered_from_the_mapping() {
    let refusals: [fn() -> Reply; 5] = [
        || Reply::whole(500, "", "no"),
        || Reply::whole(404, "Content-Type: text/html", "<html><body>Not found</body></html>"),
        || Reply::xml("<html><body>Sorry</body></html>"),
        || Reply::xml(error_page("badVerb")),
        || Reply::xml(identify("x")).cut(400),
    ];
    for refusal in refusals {
        let source = source_without_identify(refusal);
        let proxy = Proxy::tuned(&source, state_all);
        // Also while the circuit breaker lets this request rest.
        for _ in 0..8 {
            assert_from_mapping(&proxy.get(IDENTIFY), &proxy);
        }
        assert_eq!(proxy.get(LIST).status, 200);
    }
}

#[test]
fn mapping_without_every_required_value_changes_nothing() {
    let removals: [fn(&mut IdentifyValues); 5] = [
        |values| values.deleted_record = None,
        |values| values.repository_name = None,
        |values| values.admin_email = None,
        |values| values.earliest_datestamp = None,
        |values| values.granularity = None,
    ];
    for remove in removals {
        let source = source_without_identify(|| Reply::whole(500, "", "no"));
        let proxy = Proxy::tuned(&source, |mapping| {
            state_all(mapping);
            remove(&mut mapping.source_mut().identify);
        });
        assert_eq!(proxy.get(IDENTIFY).status, 503);
    }
    let source = source_without_identify(|| Reply::xml(error_page("badArgument")));
    // Without values an error stays an error.
    let got = Proxy::of(&source).get(IDENTIFY);
    assert!(got.status == 200 && got.text().contains("badArgument"), "{}", got.text());
}

#[test]
fn source_that_is_down_is_not_described_by_the_mapping() {
    let source = Source::start(|_, _| Reply::whole(500, "", "no"));
    assert_eq!(Proxy::tuned(&source, state_all).get(IDENTIFY).status, 503);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = closed.local_addr().expect("it is bound");
    drop(closed);
    let mut mapping =
        Mapping::new("x", &format!("http://{address}/oai"), &Default::default()).expect("legal");
    state_all(&mut mapping);
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping));
    assert_eq!(proxy.get(IDENTIFY).status, 503);
}

#[test]
fn identify_that_worked_before_keeps_its_failure() {
    let fails = Arc::new(AtomicBool::new(false));
    let is_failing = Arc::clone(&fails);
    let source = source_without_identify(move || {
        if is_failing.load(Ordering::Relaxed) {
            Reply::whole(500, "", "no")
        } else {
            Reply::xml(identify("of the source"))
        }
    });
    let mut mapping = Mapping::new("x", &source.base_url(), &Default::default()).expect("a legal mapping");
    state_all(&mut mapping);
    let proxy = Proxy::with(|config| {
        config.cache.enabled = false;
        config.repositories.add_fixed(mapping);
    });
    let got = proxy.get(IDENTIFY).text();
    assert!(got.contains("of the source") && !got.contains("Maps"), "{got}");
    fails.store(true, Ordering::Relaxed);
    assert_eq!(proxy.get(IDENTIFY).status, 503);
}
