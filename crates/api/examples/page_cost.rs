//! The time that a page of records takes to become JSON.
//!
//!     cargo run --profile dist -p oaimend-api --example page_cost

use oaimend_api::{DocumentBudget, OaiResponse, RecordFields, RecordPage};
use oaimend_base::clock::uptime;

fn main() {
    let record = |number: usize| {
        let text = "A study of the \"timetables\" of ferries in the harbour, and of tides. ".repeat(20);
        format!(
            "<record><header><identifier>oai:x:{number}</identifier><datestamp>2024-01-01T00:00:00Z</datestamp>\
             <setSpec>a</setSpec></header><metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n\
             <dc:title>Title {number}</dc:title>\n<dc:creator>Berg, Anna</dc:creator>\n<dc:subject>tides</dc:subject>\n\
             <dc:description>{text}</dc:description>\n<dc:date>2001</dc:date>\n<dc:type>text</dc:type>\n\
             <dc:identifier>http://e.org/{number}</dc:identifier>\n</oai_dc:dc></metadata></record>\n"
        )
    };
    let records: String = (0..100).map(record).collect();
    let xml = format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2024-01-01T00:00:00Z</responseDate>\
         <ListRecords>{records}<resumptionToken>t</resumptionToken></ListRecords></OAI-PMH>"
    );
    for _ in 0..3 {
        let mut read_micros = 0;
        let mut bytes = 0;
        let began = uptime();
        for _ in 0..1_000 {
            let began = uptime();
            let read = OaiResponse::read(xml.as_bytes()).expect("a response");
            read_micros += (uptime() - began).as_micros();
            let mut left = DocumentBudget::default();
            let records =
                read.records.items.iter().map(|item| item.document(RecordFields::of(None), &mut left));
            let records = records.collect::<Result<_, _>>().expect("the page is short");
            let page = RecordPage {
                response_date: read.response_date,
                records,
                complete_list_size: None,
                next: None,
            };
            bytes = serde_json::to_vec(&page).expect("JSON").len();
        }
        let all = (uptime() - began).as_micros();
        println!(
            "{} bytes of XML, {bytes} of JSON: {} µs, of which reading {} µs",
            xml.len(),
            all / 1_000,
            read_micros / 1_000
        );
    }
}
