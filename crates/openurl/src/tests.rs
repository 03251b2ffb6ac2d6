//! OpenURLs as link resolvers send them. The examples are those of the standard and of the implementation guidelines,
//! written again key by key, and of the log that the DOAJ quotes (docs/openurl/outline.md of DOAJ/doaj).

use crate::{ContextObject, PARAMETERS_BYTES_MAX, Referent, Refusal, RequestedService, Service};
use oaimend_record::RecordDocument;
use oaimend_search::query::{QueryLanguage, parse};
use oaimend_search::{Query, RecordTexts};

fn read(query: &str) -> ContextObject {
    ContextObject::parse(query.as_bytes()).unwrap_or_else(|refusal| panic!("{query}: {refusal}"))
}

fn referent(query: &str) -> Referent {
    read(query).referent
}

/// The first example of the implementation guidelines for Z39.88-2004: an article that cites another one.
const GUIDELINES: &str = "url_ver=Z39.88-2004&url_tim=2003-04-10T13%3A57%3A15TZD\
    &url_ctx_fmt=info%3Aofi%2Ffmt%3Akev%3Amtx%3Actx&ctx_ver=Z39.88-2004&ctx_enc=info%3Aofi%2Fenc%3AUTF-8&ctx_id=10_1\
    &rft_id=info%3Adoi%2F10.1045%2Fjuly99-caplan&rft_val_fmt=info%3Aofi%2Ffmt%3Akev%3Amtx%3Ajournal&rft.genre=article\
    &rft.aulast=Caplan&rft.aufirst=Priscilla&rft.issn=1082-9873&rft.volume=5&rft.issue=7/8&rft.date=1999\
    &rft.atitle=Reference+Linking+for+Journal+Articles&rft.jtitle=D-Lib+Magazine\
    &rfe_id=info%3Adoi%2F10.1045%2Fmarch2001-vandesompel&rfe.genre=article&rfe.aulast=Van+de+Sompel&rfe.volume=7\
    &rfr_id=info%3Asid%2Fdlib.org%3Adlib";

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn version_1_0_is_read() {
    let context = read(GUIDELINES);
    let expected = Referent {
        identifiers: vec!["info:doi/10.1045/july99-caplan".to_owned()],
        genre: text("article"),
        title: text("Reference Linking for Journal Articles"),
        container: text("D-Lib Magazine"),
        authors: vec!["Caplan, Priscilla".to_owned()],
        last_name: text("Caplan"),
        issns: vec!["1082-9873".to_owned()],
        volume: text("5"),
        issue: text("7/8"),
        date: text("1999"),
        ..Referent::default()
    };
    assert_eq!(context.referent, expected);
    assert_eq!(context.service, RequestedService::Page);
    assert_eq!(context.referrer.as_deref(), Some("dlib.org:dlib"));
}

#[test]
fn version_0_1_is_read() {
    let context = read(
        "sid=EBSCO:aph&id=doi:10.123/345678&genre=article&issn=1234-5678&volume=12&issue=3&spage=1&pages=1-8\
         &date=1998&aulast=Smith&aufirst=Paul&title=Journal+of+Tests&atitle=A+test",
    );
    let expected = Referent {
        identifiers: vec!["doi:10.123/345678".to_owned()],
        genre: text("article"),
        title: text("A test"),
        container: text("Journal of Tests"),
        authors: vec!["Smith, Paul".to_owned()],
        last_name: text("Smith"),
        issns: vec!["1234-5678".to_owned()],
        volume: text("12"),
        issue: text("3"),
        first_page: text("1"),
        date: text("1998"),
        ..Referent::default()
    };
    assert_eq!(context.referent, expected);
    assert_eq!(context.referrer.as_deref(), Some("EBSCO:aph"));
}

#[test]
fn forms_that_the_doaj_receives_are_read() {
    for (query, issn, volume, page) in [
        (
            "func=openurl&genre=article&issn=13334395&date=2006&volume=5&issue=2&spage=165",
            "1333-4395",
            "5",
            Some("165"),
        ),
        (
            "volume=1&date=2010&spage=151&issn=22157840&func=openurl&issue=2&genre=article",
            "2215-7840",
            "1",
            Some("151"),
        ),
        ("genre=journal&issn=2158-2440&volume=4&issue=2&date=2014", "2158-2440", "4", None),
    ] {
        let found = referent(query);
        assert_eq!(found.issns, [issn]);
        assert_eq!((found.volume.as_deref(), found.first_page.as_deref()), (Some(volume), page), "{query}");
        assert!(found.search().is_some());
    }
}

#[test]
fn the_first_value_of_the_newest_key_counts() {
    let found = referent(
        "issue=1&rft.issue=&rft.issue=2&rft.issue=3&date=2001&rft.date=2002&issn=1111-1111&rft.issn=2222-2222\
         &rft.issn=2222-2222&rft.eissn=33333333&rft.issn=wrong&RFT.Volume=4&amp;spage=5",
    );
    assert_eq!((found.issue, found.date), (text("2"), text("2002")));
    assert_eq!(found.issns, ["2222-2222", "3333-3333", "1111-1111"]);
    assert_eq!((found.volume, found.first_page), (text("4"), text("5")));
}

#[test]
fn identifiers_are_candidates_in_their_order() {
    let query = "id=pmid:1&rft_id=foo_id&rft_id=info:doi/10.1045/a&rft_id=info:doi/10.1045/a&rft_id=https://doi.org/10.1045/a\
                 &rft.pmid=2&rft_id=info:lanl-repo/i/d78d9758";
    let candidates = referent(query).candidates();
    assert_eq!(
        candidates,
        [
            "foo_id",
            "doi:10.1045/a",
            "info:doi/10.1045/a",
            "https://doi.org/10.1045/a",
            "info:lanl-repo/i/d78d9758",
            "pmid:1",
            "pmid:2",
        ]
    );
    let many: String = (0..100).map(|number| format!("&rft_id=a{number}")).collect();
    assert_eq!(referent(&many).candidates().len(), 16);
}

#[test]
fn a_book_is_a_candidate_and_its_chapter_is_not() {
    let book =
        "rft_val_fmt=info:ofi/fmt:kev:mtx:book&rft.genre=book&rft.btitle=Tides&rft.isbn=978-3-16-148410-0";
    assert_eq!(referent(book).candidates(), ["urn:isbn:9783161484100"]);
    let chapter = "rft.genre=bookitem&rft.atitle=Ebb&rft.btitle=Tides&rft.isbn=978-3-16-148410-0";
    assert_eq!(referent(chapter).candidates(), [""; 0]);
    assert_eq!(referent("genre=journal&issn=13334395").candidates(), ["urn:issn:1333-4395"]);
    assert_eq!(referent("genre=article&issn=13334395").candidates(), [""; 0]);
}

#[test]
fn a_title_is_that_of_the_work_or_of_its_journal() {
    for (query, title, container) in [
        ("title=Tides", Some("Tides"), None),
        ("genre=book&title=Tides&volume=2", Some("Tides"), None),
        ("title=Tides&volume=2", None, Some("Tides")),
        ("genre=article&title=Tides", None, Some("Tides")),
        ("rft_val_fmt=info:ofi/fmt:kev:mtx:dissertation&rft.title=Tides&rft.pages=200", Some("Tides"), None),
        ("rft_val_fmt=info:ofi/fmt:kev:mtx:dc&rft.title=Tides", Some("Tides"), None),
        ("rft.jtitle=Tides&rft.spage=1", None, Some("Tides")),
        ("stitle=J+Tides&atitle=Ebb", Some("Ebb"), Some("J Tides")),
    ] {
        let found = referent(query);
        assert_eq!((found.title.as_deref(), found.container.as_deref()), (title, container), "{query}");
    }
}

#[test]
fn authors_are_read_in_all_their_keys() {
    for (query, authors, last_name) in [
        ("rft.aulast=Berg&rft.auinit=A.&rft.au=Moe,+K.", &["Berg, A.", "Moe, K."][..], "Berg"),
        ("rft.au=Van+de+Sompel,+Herbert", &["Van de Sompel, Herbert"], "Van de Sompel"),
        ("rft.creator=Anna+Berg", &["Anna Berg"], "Berg"),
        ("aulast=Berg", &["Berg"], "Berg"),
    ] {
        let found = referent(query);
        assert_eq!(found.authors, authors, "{query}");
        assert_eq!(found.last_name.as_deref(), Some(last_name), "{query}");
    }
}

#[test]
fn the_encoding_is_the_named_one() {
    for query in [
        "title=%C3%98resund",
        "title=%D8resund",
        "ctx_enc=info:ofi/enc:ISO-8859-1&title=%D8resund",
        "title=%D8resund&ctx_enc=info%3Aofi%2Fenc%3AISO-8859-1",
        "ctx_enc=info:ofi/enc:UTF-8&title=%C3%98resund",
        "ctx_enc=info:ofi/enc:none&title=%C3%98resund",
    ] {
        assert_eq!(referent(query).title.as_deref(), Some("Øresund"), "{query}");
    }
    let greek = referent("ctx_enc=info:ofi/enc:ISO-8859-7&title=%E1");
    assert_eq!(greek.title.as_deref(), Some("α"));
    assert_eq!(referent("title=a%00b%0Ac").title.as_deref(), Some("a b c"));
}

#[test]
fn services_are_those_of_adore() {
    let service =
        |query: &str| read(&format!("url_ver=Z39.88-2004&rft_id=info:lanl-repo/i/1{query}")).service;
    for known in Service::ALL {
        assert_eq!(service(&format!("&svc_id={}", known.name())), RequestedService::Known(*known));
    }
    assert_eq!(service(""), RequestedService::Page);
    assert_eq!(
        service("&svc_id=info:lanl-repo/svc/getRegion"),
        RequestedService::Unknown("info:lanl-repo/svc/getRegion".to_owned())
    );
    assert_eq!(
        service("&svc_id=other&svc_id=info:lanl-repo/svc/getDIDL"),
        RequestedService::Known(Service::Didl)
    );
}

#[test]
fn bad_openurls_are_refused() {
    let parse =
        |query: &str| ContextObject::parse(query.as_bytes()).map_err(|refusal| (refusal, refusal.status()));
    for query in
        ["", "&&==&", "url_ver=Z39.88-2004", "title=", "title=+%20", "unknown=1", "%ff%fe=%ff", "title"]
    {
        assert_eq!(parse(query), Err((Refusal::Empty, 400)), "{query}");
    }
    let by_reference =
        "url_ver=Z39.88-2004&url_ctx_fmt=info:ofi/fmt:xml:xsd:ctx&url_ctx_ref=http://127.0.0.1/";
    assert_eq!(parse(by_reference), Err((Refusal::NotByKeys, 400)));
    let title = format!("title={}", "t".repeat(100_000));
    assert_eq!(parse(&title), Err((Refusal::TooLong, 414)));
    let keys = "&a=1".repeat(257);
    assert_eq!(parse(&keys), Err((Refusal::TooManyKeys, 400)));
    assert!(keys.len() < PARAMETERS_BYTES_MAX);
}

#[test]
fn a_value_that_is_too_long_costs_itself_only() {
    let found = referent(&format!("atitle={}&issn=1333-4395", "t".repeat(5_000)));
    assert_eq!((found.title, found.issns), (None, vec!["1333-4395".to_owned()]));
}

fn search_text(query: &str) -> Option<String> {
    referent(query).search().map(|search| search.text)
}

#[test]
fn a_work_without_an_identifier_is_searched() {
    for (query, text) in [
        (
            GUIDELINES,
            Some(
                "+title:\"Reference Linking for Journal Articles\" +creator:\"Caplan\" \"1082-9873\" \"5\" \"7/8\" 1999",
            ),
        ),
        (
            "genre=article&issn=13334395&date=2006-05&volume=5&issue=2&spage=165&aulast=Berg",
            Some("+\"1333-4395\" +\"5\" +\"2\" +\"165\" creator:\"Berg\" 2006"),
        ),
        ("title=J+Tides&volume=2", Some("+\"J Tides\" +\"2\"")),
        ("genre=journal&issn=1333-4395", Some("+\"1333-4395\"")),
        (
            "atitle=Of+%22ebb%22+and+flow:+a+study&aulast=Van+de+Sompel",
            Some("+title:\"Of  ebb  and flow\" +creator:\"Van de Sompel\""),
        ),
        ("atitle=Tides:+a+study", Some("+title:\"Tides: a study\"")),
        ("issn=1333-4395&date=2006", None),
        ("aulast=Berg&date=2006", None),
        ("atitle=---&aulast=Berg", None),
        ("volume=5&issue=2&spage=165", None),
    ] {
        assert_eq!(search_text(query).as_deref(), text, "{query}");
    }
}

/// A record of an article as journals write it.
fn record(title: &str, source: &str) -> RecordTexts {
    let xml = format!(
        "<record><header><identifier>oai:x:1</identifier><datestamp>2020-01-01</datestamp></header><metadata>\
         <dc xmlns='http://purl.org/dc/elements/1.1/'><title>{title}</title><creator>Bérg, Anna</creator>\
         <date>2006-05-01</date><source>{source}</source></dc></metadata></record>"
    );
    RecordTexts::of("r", "oai:x:1", &RecordDocument::read(&xml).expect("a record"))
}

#[test]
fn a_search_finds_records_by_the_journal_that_their_format_names() {
    let marcxml = "<record xmlns='http://www.loc.gov/MARC21/slim'>\
        <datafield tag='245'><subfield code='a'>Ebb and flow</subfield></datafield>\
        <datafield tag='773'><subfield code='t'>Journal of Tides</subfield><subfield code='x'>1333-4395</subfield>\
        <subfield code='g'>Vol. 5, no. 2 (2006), p. 165-170</subfield></datafield></record>";
    let mods = "<mods xmlns='http://www.loc.gov/mods/v3'><titleInfo><title>Ebb and flow</title></titleInfo>\
        <relatedItem type='host'><titleInfo><title>Journal of Tides</title></titleInfo>\
        <identifier type='issn'>1333-4395</identifier>\
        <part><detail type='volume'><number>5</number></detail><detail type='issue'><number>2</number></detail>\
        <extent unit='pages'><start>165</start><end>170</end></extent></part></relatedItem></mods>";
    for metadata in [marcxml, mods] {
        let xml = format!(
            "<record><header><identifier>oai:x:1</identifier><datestamp>2020-01-01</datestamp></header>\
             <metadata>{metadata}</metadata></record>"
        );
        let record = RecordTexts::of("r", "oai:x:1", &RecordDocument::read(&xml).expect("a record"));
        let matches = |query: &str| referent(query).search().expect("a search").query.matches(&record);
        assert!(matches("issn=1333-4395&volume=5&issue=2&spage=165"), "{metadata}");
        assert!(matches("title=Journal+of+Tides&volume=5&issue=2&spage=165"), "{metadata}");
        assert!(!matches("issn=1333-4395&volume=5&issue=2&spage=171"), "{metadata}");
    }
}

#[test]
fn a_search_finds_the_record_of_the_work_only() {
    let this = record(
        "Ebb and flow: tides of the north",
        "Journal of Tides; Vol. 5, No. 2 (2006); 165-170; ISSN 1333-4395",
    );
    let undivided = record("Ebb and flow", "13334395 5(2):165-170");
    let others = [
        record("Ebb and flow again", "Journal of Tides; Vol. 5, No. 3 (2006); 165-170; ISSN 1333-4395"),
        record("Flow", "Journal of Tides; Vol. 5, No. 2 (2006); 171-180; ISSN 1333-4395"),
        record("Flow", "Journal of Ebbs; Vol. 5, No. 2 (2006); 165-170; ISSN 1333-4409"),
    ];
    let matches = |query: &str, record: &RecordTexts| {
        let search = referent(query).search().expect("a search");
        let text = parse(QueryLanguage::Odl, &search.text).expect("a query");
        // The text has one spelling of the ISSN.
        assert!(search.query.matches(record) || !text.matches(record), "{query}");
        search.query.matches(record)
    };
    for query in [
        "issn=13334395&volume=5&issue=2&spage=165",
        "eissn=1333-4395&volume=5&issue=2&pages=165-170&date=2005",
        "title=Journal+of+Tides&volume=5&issue=2&spage=165",
        "genre=article&rft.jtitle=JOURNAL+OF+TIDES&volume=5&issue=2",
    ] {
        assert!(matches(query, &this), "{query}");
        assert!(!matches(query, &others[0]) && !matches(query, &others[2]), "{query}");
    }
    assert!(matches("issn=1333-4395&volume=5&issue=2&spage=165", &undivided));
    assert!(!matches("issn=1333-4395&volume=5&issue=2&spage=165", &others[1]));
    for query in
        ["atitle=Ebb+and+Flow:+Tides+of+the+North&aulast=Berg", "atitle=Ebb+and+flow:+a+study&issn=0000-0000"]
    {
        assert!(matches(query, &this), "{query}");
        assert!(!matches(query, &others[1]), "{query}");
    }
    assert!(!matches("atitle=Ebb+and+flow&aulast=Moe", &this));
}

#[test]
fn every_search_is_within_the_limits_of_queries() {
    let long = "Wort".repeat(100);
    let words = "a+b+%22+%2B+-+c:d+".repeat(150);
    let numbers: String = (0..40).map(|number| format!("&issn=1000-10{number:02}")).collect();
    for query in [
        format!(
            "atitle={words}&aulast={words}&volume={words}&issue={words}&spage={words}{numbers}&date=2006"
        ),
        format!("issn=1333-4395&spage={long}"),
        format!("atitle={long}&au={long}"),
    ] {
        let search = referent(&query).search().expect("a search");
        assert_eq!(search.query.check(), Ok(()));
        assert!(
            parse(QueryLanguage::Odl, &search.text).is_ok_and(|query| query.check().is_ok()),
            "{}",
            search.text
        );
    }
}

#[test]
fn an_issn_is_found_with_its_hyphen_and_without() {
    let search = referent("issn=13334395&eissn=1333-4409&volume=5").search().expect("a search");
    let Query::Boolean { required, .. } = search.query else { panic!("no boolean") };
    let Some(Query::Boolean { optional, .. }) = required.first() else { panic!("no ISSN") };
    let phrase = |words: &str| Query::Phrase { field: None, words: words.to_owned() };
    let word = |word: &str| Query::Word { field: None, word: word.to_owned() };
    assert_eq!(*optional, [phrase("1333-4395"), word("13334395"), phrase("1333-4409"), word("13334409")]);
}

#[test]
fn the_year_is_that_of_the_date() {
    for (date, year) in [
        ("1999", Some(1999)),
        ("1999-05", Some(1999)),
        ("19990501", Some(1999)),
        ("1999/05/01", Some(1999)),
        ("May 1999", None),
        ("199", None),
        ("12345", None),
        ("19é9", None),
    ] {
        assert_eq!(Referent { date: text(date), ..Referent::default() }.year(), year, "{date}");
    }
}
