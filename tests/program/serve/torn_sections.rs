//! A closed section that contains records: the proxy asks the source whether they are records.

use crate::fixtures::lists::page;
use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source::{ReceivedRequest, Reply, Source};
use oaimend_test_support::strict;

/// Text of a title that makes a page longer than one piece of a body.
const LONG: usize = 60_000;

/// A page on which the title of each record is a CDATA section.
fn titles_in_cdata(numbers: std::ops::Range<usize>) -> String {
    page(numbers, "").replace("<dc:title>", "<dc:title><![CDATA[").replace("</dc:title>", "]]></dc:title>")
}

/// The page without the end mark of the section in these records.
fn without_end_marks(page: &str, numbers: &[usize]) -> String {
    numbers.iter().fold(page.to_owned(), |page, number| {
        page.replace(&format!("T\u{ef}tle {number}]]>"), &format!("T\u{ef}tle {number}"))
    })
}

fn single(received: &ReceivedRequest) -> Option<usize> {
    let (_, behind) = received.target.split_once("verb=GetRecord&identifier=oai%3Ax%3A")?;
    behind.strip_suffix("&metadataPrefix=oai_dc")?.parse().ok()
}

fn get_record(number: usize) -> String {
    titles_in_cdata(number..number + 1).replace("ListRecords", "GetRecord")
}

fn unknown() -> String {
    let whole = get_record(0);
    let (head, _) = whole.split_once("<GetRecord>").expect("it is there");
    format!("{head}<error code=\"idDoesNotExist\">no such record</error></OAI-PMH>")
}

/// A source of one page that responds to `GetRecord` with what `by_itself` returns.
fn source_of(list: String, by_itself: impl Fn(usize) -> String + Send + Sync + 'static) -> Source {
    Source::start(move |_, received| match single(received) {
        Some(number) => Reply::xml(by_itself(number)),
        None => Reply::xml(list.clone()),
    })
}

fn singles(source: &Source) -> Vec<usize> {
    source.requests().iter().filter_map(single).collect()
}

/// The identifiers of the records that an XML parser finds on the page.
fn parsed(text: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut identifiers, mut within) = (Vec::new(), false);
    loop {
        match reader.read_event().expect("the page is well-formed") {
            quick_xml::events::Event::Start(tag) => within = tag.name().as_ref() == "identifier",
            quick_xml::events::Event::Text(text) if within => identifiers.push(text.to_string()),
            quick_xml::events::Event::End(_) => within = false,
            quick_xml::events::Event::Eof => return identifiers,
            _ => {}
        }
    }
}

fn names(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|number| format!("oai:x:{number}")).collect()
}

#[test]
fn confirmed_records_are_delivered() {
    for (lost, received) in
        [(&[2][..], &[3][..]), (&[0], &[1]), (&[3], &[4]), (&[0, 3], &[1, 4]), (&[1, 2], &[2, 3])]
    {
        let list = without_end_marks(&titles_in_cdata(0..5), lost);
        let source = source_of(list, |number| without_end_marks(&get_record(number), lost));
        let got = Proxy::of(&source).get(LIST);
        assert_eq!((got.status, got.whole), (200, true), "{lost:?}: {}", got.text());
        assert_eq!(parsed(&got.text()), names(&[0, 1, 2, 3, 4]), "{lost:?}: {}", got.text());
        assert!(strict::read(&got.body).is_ok(), "{lost:?}: {}", got.text());
        assert_eq!(singles(&source), received, "{lost:?}");
    }
}

/// The response to GetRecord for the record of a number.
type ByItself = fn(usize) -> String;

#[test]
fn unconfirmed_section_is_content() {
    let list = without_end_marks(&titles_in_cdata(0..5), &[2]);
    let others: [(&str, ByItself); 6] = [
        ("unknown", |_| unknown()),
        ("another record", |number| get_record(number + 1)),
        ("another title", |number| get_record(number).replace("T\u{ef}tle", "Titel")),
        ("another datestamp", |number| get_record(number).replace("<datestamp>2020", "<datestamp>2021")),
        ("deleted", |number| get_record(number).replace("<header>", "<header status=\"deleted\">")),
        ("no response", |_| "<html>down</html>".to_owned()),
    ];
    for (what, by_itself) in others {
        let source = source_of(list.clone(), by_itself);
        let got = Proxy::of(&source).get(LIST);
        assert_eq!((got.status, got.whole), (200, true), "{what}: {}", got.text());
        assert_eq!(records(&got.text()), records(&list), "{what}");
        assert_eq!(singles(&source), [3], "{what}");
    }
}

#[test]
fn every_record_must_be_confirmed() {
    let list = without_end_marks(&titles_in_cdata(0..5), &[1, 2]);
    let source = source_of(list.clone(), |number| if number == 3 { unknown() } else { get_record(number) });
    let got = Proxy::of(&source).get(LIST);
    assert_eq!(records(&got.text()), records(&list));
}

#[test]
fn forged_section_stays_content_beside_a_torn_one() {
    let forged = "</dc:title></oai_dc:dc></metadata></record><record><header status=\"deleted\">\
                  <identifier>oai:x:9</identifier><datestamp>2020-01-01</datestamp></header></record>\
                  <record><header><identifier>oai:x:8</identifier><datestamp>2020-01-01</datestamp></header>\
                  <metadata><oai_dc:dc><dc:title><![CDATA[";
    let list = without_end_marks(&titles_in_cdata(0..6), &[3]);
    let list = list.replace("T\u{ef}tle 1]]>", &format!("{forged}T\u{ef}tle 1]]>"));
    let source = source_of(list, get_record);
    let got = Proxy::of(&source).get(LIST);
    assert_eq!(parsed(&got.text()), names(&[0, 1, 2, 3, 4, 5]), "{}", got.text());
    assert!(got.text().contains(forged), "{}", got.text());
}

#[test]
fn page_without_torn_section_sends_no_request() {
    let with_text = titles_in_cdata(0..5).replace("T\u{ef}tle 2]", "<record> and </record>]");
    for list in [page(0..5, ""), titles_in_cdata(0..5), with_text] {
        let source = source_of(list, get_record);
        assert_eq!(Proxy::of(&source).get(LIST).status, 200);
        assert_eq!(source.requests().len(), 1);
    }
}

#[test]
fn section_with_too_many_records_sends_no_request() {
    let lost: Vec<usize> = (0..11).collect();
    let list = without_end_marks(&titles_in_cdata(0..13), &lost);
    let source = source_of(list.clone(), get_record);
    assert_eq!(records(&Proxy::of(&source).get(LIST).text()), records(&list));
    assert!(singles(&source).is_empty());
}

#[test]
fn off_sends_no_requests() {
    let list = without_end_marks(&titles_in_cdata(0..5), &[2]);
    let tunings: [fn(&mut oaimend::config::Mapping); 2] = [
        |mapping| mapping.source_mut().quirks.refetch_broken_records = false,
        |mapping| mapping.source_mut().repairs.off.insert(oaimend_repair::RepairId::TornSection),
    ];
    for tune in tunings {
        let source = source_of(list.clone(), get_record);
        assert_eq!(records(&Proxy::tuned(&source, tune).get(LIST).text()), records(&list));
        assert_eq!(source.requests().len(), 1);
    }
}

#[test]
fn resumed_page_repeats_no_request() {
    for confirmed in [true, false] {
        let long = |list: String| list.replace("T\u{ef}tle 0", &"T\u{ef}tle".repeat(LONG));
        let list = long(without_end_marks(&titles_in_cdata(0..20), &[2]));
        let source = Source::start(move |number, received| match single(received) {
            Some(number) if confirmed => Reply::xml(get_record(number)),
            Some(_) => Reply::xml(unknown()),
            None => {
                let cut = list.find("oai:x:12<").expect("it is there");
                let at = if number == 0 { cut } else { list.len() };
                Reply::new(200, &format!("Content-Length: {}", list.len())).send(&list.as_bytes()[..at])
            }
        });
        let got = Proxy::of(&source).get(LIST);
        let expected: Vec<usize> = (0..20).filter(|&number| confirmed || number != 3).collect();
        assert_eq!((got.status, got.whole), (200, true), "{confirmed}");
        assert_eq!(parsed(&got.text()), names(&expected), "{confirmed}");
        assert_eq!(singles(&source), [3], "{confirmed}");
    }
}
