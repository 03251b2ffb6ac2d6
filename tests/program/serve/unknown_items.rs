//! Sources that answer requests for an unknown identifier with a status and a page for people.

use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{ReceivedRequest, Reply, Source, page_of};

const GET: &str = "/x?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:99";
const FORMATS: &str = "/x?verb=ListMetadataFormats&identifier=oai:x:99";

fn html(status: u16) -> Reply {
    Reply::whole(status, "Content-Type: text/html", "<html><body>Not found</body></html>")
}

fn identify() -> Reply {
    let page = page_of(0);
    let (head, _) = page.split_once("<ListRecords>").expect("it has a list");
    Reply::xml(format!(
        "{head}<Identify><repositoryName>x</repositoryName><baseURL>http://source.example/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>a@source.example</adminEmail>\
         <earliestDatestamp>2001-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>\
         <granularity>YYYY-MM-DD</granularity></Identify></OAI-PMH>"
    ))
}

fn formats() -> Reply {
    let page = page_of(0);
    let (head, _) = page.split_once("<ListRecords>").expect("it has a list");
    Reply::xml(format!(
        "{head}<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
         <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
         <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>\
         </metadataFormat></ListMetadataFormats></OAI-PMH>"
    ))
}

/// A source with these responses to Identify, to ListMetadataFormats and to anything else.
fn source_of(identify: fn() -> Reply, formats: fn() -> Reply, other: fn() -> Reply) -> Source {
    Source::start(move |_, received: &ReceivedRequest| {
        let asks = |verb: &str| received.target.contains(&format!("verb={verb}"));
        if asks("Identify") {
            identify()
        } else if asks("ListMetadataFormats") {
            formats()
        } else {
            other()
        }
    })
}

/// The status of the response, and its error code.
fn verdict(source: &Source, target: &str) -> String {
    let got = Proxy::of(source).get(target);
    let text = got.text();
    let code = text.split_once("<error code=\"").and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    code.map_or(got.status.to_string(), |code| format!("{} {code}", got.status))
}

#[test]
fn not_found_means_an_unknown_item_if_the_source_identifies_itself() {
    const UNKNOWN: &str = "200 idDoesNotExist";
    let lost: fn() -> Reply = || html(404);
    let gone: fn() -> Reply = || html(410);
    let failed: fn() -> Reply = || html(500);
    let denied: fn() -> Reply = || html(403);
    let marc = GET.replace("oai_dc", "marc");
    for (source, target, expected) in [
        (source_of(identify, lost, lost), GET, UNKNOWN),
        (source_of(identify, gone, gone), GET, UNKNOWN),
        (source_of(identify, lost, lost), FORMATS, UNKNOWN),
        (source_of(identify, formats, lost), GET, UNKNOWN),
        (source_of(identify, formats, lost), &marc, "200 cannotDisseminateFormat"),
        // The source does not respond otherwise, or its failure says nothing about the item.
        (source_of(lost, lost, lost), GET, "502"),
        (source_of(failed, lost, lost), GET, "502"),
        (source_of(formats, lost, lost), GET, "502"),
        (source_of(identify, failed, failed), GET, "503"),
        (source_of(identify, denied, denied), GET, "503"),
        // A missing list is no missing item.
        (source_of(identify, lost, lost), "/x?verb=ListRecords&metadataPrefix=oai_dc", "502"),
        (source_of(identify, lost, lost), "/x?verb=ListMetadataFormats", "502"),
    ] {
        assert_eq!(verdict(&source, target), expected, "{target}: {:?}", source.requests());
    }
}

/// A harvester that asks for many unknown items does not multiply the requests to the source.
#[test]
fn proof_by_identify_is_kept() {
    let source = source_of(identify, || html(404), || html(404));
    let proxy = Proxy::of(&source);
    for number in 0..5 {
        let got = proxy.get(&GET.replace("99", &number.to_string()));
        assert!(got.text().contains("idDoesNotExist"), "{}", got.text());
    }
    let proofs =
        source.requests().iter().filter(|received| received.target.contains("verb=Identify")).count();
    assert_eq!(proofs, 1);
}
