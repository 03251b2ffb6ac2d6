//! Items in several formats: everything describes them by the same record.

use std::io::Read as _;

use flate2::read::GzDecoder;
use oaimend_oai::{Argument, Request, Verb};
use serde_json::{Value, json};

use super::gateway::{is_html, mapping};
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{ReceivedRequest, Reply, Source};

const FORMATS: &str = "<metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
    <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
    <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat>\
    <metadataFormat><metadataPrefix>rich</metadataPrefix>\
    <schema>http://www.loc.gov/standards/mods/v3/mods-3-7.xsd</schema>\
    <metadataNamespace>http://www.loc.gov/mods/v3</metadataNamespace></metadataFormat>";

/// The records in both formats, by the number of the item.
const ITEMS: [(&str, Option<&str>); 4] = [
    (
        "<dc:title>Plain one</dc:title><dc:identifier>https://e.org/plain/1</dc:identifier>",
        Some(
            "<titleInfo><title>Harbour one</title></titleInfo>\
             <name type='personal'><namePart type='family'>Berg</namePart><namePart type='given'>Anna</namePart></name>\
             <relatedItem type='host'><titleInfo><title>Journal of Tides</title></titleInfo>\
             <part><detail type='volume'><number>12</number></detail></part></relatedItem>\
             <identifier type='doi'>10.1234/one</identifier>",
        ),
    ),
    (
        "<dc:title>Plain two</dc:title><dc:identifier>https://e.org/plain/2</dc:identifier>",
        Some("<titleInfo><title>Harbour two</title></titleInfo>"),
    ),
    ("<dc:title>Plain harbour three</dc:title>", None),
    ("<dc:title>Plain four</dc:title>", Some("<titleInfo><title>Harbour four</title></titleInfo>")),
];

fn record(number: usize, prefix: &str) -> Option<String> {
    let (dc, rich) = ITEMS.get(number)?;
    let metadata = match prefix {
        "oai_dc" => format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{dc}</oai_dc:dc>"
        ),
        _ => format!("<mods xmlns=\"http://www.loc.gov/mods/v3\">{}</mods>", (*rich)?),
    };
    let number = number + 1;
    Some(format!(
        "<record><header><identifier>oai:c:{number}</identifier><datestamp>2020-01-0{number}T00:00:00Z</datestamp>\
         </header><metadata>{metadata}</metadata></record>"
    ))
}

/// The response of the provider. If the richer format is `cut`, its list never ends.
fn reply(received: &ReceivedRequest, is_cut: bool) -> Reply {
    let query = received.target.split_once('?').map_or("", |(_, query)| query);
    let Ok(request) = Request::parse(query.as_bytes()) else { return Reply::new(400, "") };
    let content = match request.verb() {
        Verb::Identify => {
            "<repositoryName>A collection</repositoryName><baseURL>http://source.example/oai</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>a@source.example</adminEmail>\
             <earliestDatestamp>2020-01-01T00:00:00Z</earliestDatestamp><deletedRecord>no</deletedRecord>\
             <granularity>YYYY-MM-DDThh:mm:ssZ</granularity>"
                .to_owned()
        }
        Verb::ListMetadataFormats => FORMATS.to_owned(),
        Verb::ListRecords => {
            let Some(prefix) = request.argument(Argument::MetadataPrefix) else { return Reply::new(404, "") };
            let records: String = (0..ITEMS.len()).filter_map(|number| record(number, prefix)).collect();
            let token = "<resumptionToken>x</resumptionToken>";
            records + if is_cut && prefix == "rich" { token } else { "" }
        }
        _ => return Reply::xml(envelope("<error code=\"noSetHierarchy\">none</error>")),
    };
    let verb = request.verb().name();
    Reply::xml(envelope(&format!("<{verb}>{content}</{verb}>")))
}

fn envelope(content: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
         http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\"><responseDate>2026-01-01T00:00:00Z</responseDate>\
         <request>http://source.example/oai</request>{content}</OAI-PMH>"
    )
}

/// The mirror of these items, after they are indexed.
fn mirrored(is_cut: bool) -> (Source, Proxy) {
    let source = Source::start(move |_, received| reply(received, is_cut));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping(&source)));
    proxy.wait_for_harvests("x", 1);
    proxy.wait_for_results("/_search.json?q=harbour", 4);
    (source, proxy)
}

fn json(proxy: &Proxy, path: &str) -> Value {
    let got = proxy.get(path);
    serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{path} {error}: {}", got.text()))
}

#[test]
fn the_richest_format_describes_an_item_everywhere() {
    let (_source, proxy) = mirrored(false);
    let path = "/x/record/oai%3Ac%3A1";
    let page = proxy.get(path);
    is_html(&page, 200, "<h1 lang=\"\" dir=\"ltr\">Harbour one</h1>");
    for part in [
        "<meta name=\"citation_title\" content=\"Harbour one\"",
        "<meta name=\"citation_journal_title\" content=\"Journal of Tides\"",
        "<link rel=\"canonical\" href=\"https://doi.org/10.1234/one\">",
        "<bdi>namePart</bdi>",
        "#fields\" aria-current=\"page\">rich</a>",
    ] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    for (ending, part) in [
        (".bib", "Journal of Tides"),
        (".ris", "T2  - Journal of Tides"),
        (".csl.json", "\"container-title\": \"Journal of Tides\""),
        (".json", "\"name\": \"Harbour one\""),
        (".linkset", "<https://doi.org/10.1234/one>; rel=\"cite-as\""),
        (".xml", "http://www.loc.gov/mods/v3"),
    ] {
        let form = proxy.get(&format!("{path}{ending}")).text();
        assert!(form.contains(part) && !form.contains("Plain"), "{ending}: {form}");
    }
    // Another format changes the fields that are shown, and nothing that others save or cite.
    let plain = proxy.get(&format!("{path}?format=oai_dc")).text();
    for part in ["content=\"Harbour one\"", "Plain one", "#fields\" aria-current=\"page\">oai_dc</a>"] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    assert!(proxy.get("/x/record/oai%3Ac%3A3").text().contains(">Plain harbour three</h1>"));
    let found = json(&proxy, "/_search.json?q=title:one");
    assert_eq!((&found["total"], &found["items"][0]["title"]), (&json!(1), &json!("Harbour one")));
    assert_eq!(json(&proxy, "/_search.json?q=plain")["total"], json!(1), "only the shown record is searched");
    assert!(proxy.get("/_recent.atom?repository=x").text().contains("<title>Harbour two</title>"));
}

#[test]
fn canonical_pages_and_sitemaps_follow_the_same_record() {
    let (_source, proxy) = mirrored(false);
    let canonical = |number: usize| {
        let page = proxy.get(&format!("/x/record/oai%3Ac%3A{number}")).text();
        let (_, rest) = page.split_once("<link rel=\"canonical\" href=\"").expect("a canonical URL");
        rest.split('"').next().expect("its end").to_owned()
    };
    assert_eq!(canonical(1), "https://doi.org/10.1234/one");
    // The record in MODS has no link, so that in oai_dc names the page at the source.
    assert_eq!(canonical(2), "https://e.org/plain/2");
    let found = json(&proxy, "/_search.json?q=two");
    let item = &found["items"][0];
    assert_eq!((&item["title"], &item["links"]), (&json!("Harbour two"), &json!(["https://e.org/plain/2"])));
    let base = format!("http://{}", proxy.address());
    let ours = [3, 4].map(|number| format!("{base}/x/record/oai%3Ac%3A{number}"));
    assert_eq!([canonical(3), canonical(4)], ours);
    let mut sitemap = String::new();
    let got = proxy.get("/sitemap-x-0.xml.gz");
    GzDecoder::new(&got.body[..]).read_to_string(&mut sitemap).expect("a complete gzip stream");
    let mut urls = sitemap.split("<loc>").skip(1).filter_map(|rest| rest.split("</loc>").next());
    assert!(ours.iter().all(|url| urls.next() == Some(url)) && urls.next().is_none(), "{sitemap}");
    // All items are in the list, whatever their formats are.
    let records = proxy.get("/x/records/").text();
    assert!(records.contains("4 records"), "{records}");
}

#[test]
fn a_format_describes_items_after_its_first_harvest() {
    let (_source, proxy) = mirrored(true);
    let page = proxy.get("/x/record/oai%3Ac%3A1").text();
    assert!(page.contains(">Plain one</h1>") && !page.contains(">rich</a>"), "{page}");
    assert_eq!(proxy.get("/x/record/oai%3Ac%3A1?format=rich").status, 503);
    // The index has the records that arrived. Results show items as their pages do.
    let found = json(&proxy, "/_search.json?q=one");
    assert_eq!((&found["total"], &found["items"][0]["title"]), (&json!(1), &json!("Plain one")));
}
