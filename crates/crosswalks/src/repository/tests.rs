//! Responses of a wrapped repository, in formats that crosswalks make.

use super::quarantine::QuarantineSettings;
use super::{ConvertedRecords, CrosswalkRepository, CrosswalkSettings, FormatsCache};
use crate::choices::{CrosswalkChoice, CrosswalkChoices};
use oaimend_base::clock::SystemClock;
use oaimend_oai::{Argument, ErrorCode, Request, UnixSecs, Verb, error_response, response_head};
use oaimend_repository::{
    AnsweredBy, DeliveredRecord, Event, EventStream, Failure, HarvesterTraits, ListAge, Reason, Repository,
    RepositoryRequest, ResponseHead, ResponseSummary,
};
use oaimend_store::{
    Quarantine, QuarantineEntry, QuarantineQuery, QuarantinedRecord, RecordRepairs, RepositoryId, TokenKey,
};
use oaimend_store_contract::{Backend as _, Memory};
use oaimend_test_support::envelope::{self, Strictness};
use oaimend_test_support::strict;
use oaimend_xslt::{WorkerProgram, XsltLimits, XsltWorker};
use std::sync::{Arc, Mutex};
use tokio::runtime::Builder;
use tokio::sync::mpsc;

const BASE_URL: &str = "https://x.example/r";
const DATE: &str = "2024-05-06T07:08:09Z";

/// The wrapped repository.
#[derive(Clone, Default)]
pub(super) struct Inner {
    /// Prefixes with their namespaces.
    formats: Vec<(&'static str, &'static str)>,
    /// The pages of its only list, and the responses to GetRecord.
    pages: Vec<Vec<DeliveredRecord>>,
    /// The error in place of a list.
    error: Option<ErrorCode>,
    /// The number of a page that the source refuses.
    refused_page: Option<usize>,
    /// Whether the source fails at the request for its formats.
    has_unknown_formats: bool,
    /// Whether the source fails at the end of each page of a list.
    is_failing: bool,
    /// Records on each page that are too long to be reported.
    oversized: u64,
    /// The queries.
    received: Arc<Mutex<Vec<String>>>,
}

impl Inner {
    fn queries(&self) -> Vec<String> {
        std::mem::take(&mut self.received.lock().expect("no panic"))
    }

    fn response(&self, request: &RepositoryRequest) -> (Vec<Event>, String, ResponseSummary) {
        let mut summary = ResponseSummary::default();
        summary.page.response_date = Some(DATE.to_owned());
        let verb = request.request.verb();
        let mut xml = response_head(&request.echo, DATE, true);
        if verb == Verb::ListMetadataFormats && self.error.is_none() {
            let formats = self.formats.iter().map(|(prefix, namespace)| {
                format!(
                    "<metadataFormat><metadataPrefix>{prefix}</metadataPrefix><schema>http://s</schema>\
                     <metadataNamespace>{namespace}</metadataNamespace></metadataFormat>"
                )
            });
            xml.push_str(&format!("<{0}>{1}</{0}></OAI-PMH>", verb.name(), formats.collect::<String>()));
            return (Vec::new(), xml, summary);
        }
        let token = request.request.argument(Argument::ResumptionToken);
        let number = token
            .map_or(0, |token| token.strip_prefix("page ").and_then(|at| at.parse().ok()).expect("ours"));
        let is_refused = self.refused_page == Some(number);
        if let Some(code) = self.error.or(is_refused.then_some(ErrorCode::BadResumptionToken)) {
            summary.page.error = Some(code);
            return (Vec::new(), error_response(&request.echo, DATE, code, "no <such> thing"), summary);
        }
        let records = self.pages.get(number).cloned().unwrap_or_default();
        let items: String = records.iter().map(|record| record.xml.as_str()).collect();
        xml.push_str(&format!("<{0}>{items}</{0}></OAI-PMH>", verb.name()));
        summary.items.set_sent(records.len() as u64);
        summary.items.add_oversized(self.oversized);
        if verb.is_harvest() {
            summary.page.progress = (Some(10 * number as u64), Some(25));
            summary.page.token = (number + 1 < self.pages.len()).then(|| format!("page {}", number + 1));
            summary.page.token_expires =
                summary.page.token.as_ref().map(|_| "2030-01-01T00:00:00Z".to_owned());
        }
        (vec![Event::Records(records)], xml, summary)
    }
}

impl Repository for Inner {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        self.received.lock().expect("no panic").push(request.request.query().to_owned());
        let inner = self.clone();
        let (sender, events) = mpsc::channel(2);
        let session = async move {
            let (mut before, xml, summary) = inner.response(&request);
            let age = ListAge { state_secs: UnixSecs(1), response_date_secs: UnixSecs(2) };
            let head = ResponseHead { answered_by: AnsweredBy::Source(200), length: None, list: Some(age) };
            // The mirror reports the records of a page before its head, and a source after it.
            let at = if request.request.is_resumption() { 0 } else { before.len() };
            before.insert(at, Event::Head(head));
            if !request.reports_records {
                before.retain(|event| !matches!(event, Event::Records(_)));
            }
            let is_failed = inner.is_failing && request.request.verb().is_harvest();
            let body = xml.into_bytes();
            let pieces = body.chunks(100).map(|piece| Event::Body(piece.to_vec().into())).collect::<Vec<_>>();
            let is_failed =
                is_failed || inner.has_unknown_formats && request.request.verb() == Verb::ListMetadataFormats;
            let end = if is_failed {
                Event::Failed(Failure::new(Reason::ConnectionLost, "gone"), Box::new(summary))
            } else {
                Event::End(Box::new(summary))
            };
            for event in before.into_iter().chain(pieces).chain([end]) {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        };
        EventStream::new(events, Box::pin(session))
    }
}

const MARC21: &str = "http://www.loc.gov/MARC21/slim";
const MODS: &str = "http://www.loc.gov/mods/v3";
const DUBLIN_CORE: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";

fn marcxml(title: &str) -> String {
    format!(
        "<m:record xmlns:m='{MARC21}'><m:datafield tag='245'><m:subfield code='a'>{title}</m:subfield></m:datafield></m:record>"
    )
}

fn record(number: u32, status: &str, rest: &str) -> DeliveredRecord {
    let (identifier, datestamp) = (format!("oai:x:{number}"), "2024-01-02T03:04:05Z".to_owned());
    let start = format!("<record><header{status}><identifier>{identifier}</identifier><datestamp>");
    let datestamp_at = start.len()..start.len() + datestamp.len();
    DeliveredRecord {
        xml: format!("{start}{datestamp}</datestamp><setSpec>a:b</setSpec></header>{rest}</record>"),
        identifier,
        datestamp,
        deleted: !status.is_empty(),
        set_specs: vec!["a:b".to_owned()],
        datestamp_at,
        repairs: RecordRepairs::default(),
    }
}

pub(super) fn live(number: u32) -> DeliveredRecord {
    record(number, "", &format!("<metadata>{}</metadata>", marcxml(&format!("Title {number}"))))
}

/// One without anything that a crosswalk reads.
pub(super) fn unreadable(number: u32) -> DeliveredRecord {
    record(number, "", &format!("<metadata><m:record xmlns:m='{MARC21}'/></metadata>"))
}

/// A repository with MARCXML only.
fn marc_repository(pages: Vec<Vec<DeliveredRecord>>) -> Inner {
    Inner { formats: vec![("marcxml", MARC21)], pages, ..Inner::default() }
}

pub(super) struct Fixture {
    inner: Inner,
    pub(super) settings: CrosswalkSettings,
    quarantine: Arc<dyn Quarantine>,
}

pub(super) fn fixture(inner: Inner) -> Fixture {
    let choices =
        ["oai_dc", "mods", "DIDL.identifiers"].map(|prefix| (prefix.to_owned(), CrosswalkChoice::BuiltIn));
    let quarantine = Memory::default().open().quarantine;
    let worker = XsltWorker::new(WorkerProgram::this_program("none"), XsltLimits::default());
    let choices = CrosswalkChoices(choices.into_iter().collect());
    let settings = CrosswalkSettings {
        repository: "r".to_owned(),
        crosswalks: choices.crosswalks("https://x.example", &worker, None),
        known_formats: None,
        converted: ConvertedRecords::default(),
        collections: None,
        quarantine: QuarantineSettings {
            store: Arc::clone(&quarantine),
            bytes_max: 1 << 20,
            fails_pages: false,
            is_by_set: false,
        },
        spool_bytes_max: 1 << 20,
        token_key: TokenKey::new([1; 32]),
        clock: Arc::new(SystemClock),
    };
    Fixture { inner, settings, quarantine }
}

/// A response: its body, its summary, the events beside it, and why it failed.
#[derive(Debug, Default)]
struct Answered {
    body: String,
    summary: Box<ResponseSummary>,
    records: Vec<DeliveredRecord>,
    quarantined: Vec<QuarantinedRecord>,
    failure: Option<Failure>,
    head: Option<ResponseHead>,
}

impl Fixture {
    fn repository(&self) -> CrosswalkRepository {
        CrosswalkRepository::new(Box::new(self.inner.clone()), self.settings.clone())
    }

    fn request(&self, query: &str) -> RepositoryRequest {
        let request = Request::parse(query.as_bytes()).expect("a legal request");
        let echo = Arc::new(request.to_echo(BASE_URL));
        RepositoryRequest {
            request,
            echo,
            via: String::new(),
            harvester: HarvesterTraits::default(),
            in_one_piece: false,
            reports_records: true,
        }
    }

    fn answer(&self, request: RepositoryRequest) -> Answered {
        let repository = self.repository();
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut events = repository.answer(request);
            let mut answered = Answered::default();
            let mut body = Vec::new();
            while let Some(event) = events.next().await {
                match event {
                    Event::Head(head) => assert_eq!(answered.head.replace(head), None, "one head"),
                    Event::Records(records) => answered.records.extend(records),
                    Event::Quarantined(records) => answered.quarantined.extend(records),
                    Event::Body(bytes) => body.extend_from_slice(&bytes),
                    Event::End(summary) => answered.summary = summary,
                    Event::Failed(failure, summary) => {
                        (answered.failure, answered.summary) = (Some(failure), summary);
                    }
                }
            }
            answered.body = String::from_utf8(body).expect("UTF-8");
            answered
        })
    }

    fn ask(&self, query: &str) -> Answered {
        self.answer(self.request(query))
    }

    fn entries(&self) -> Vec<QuarantineEntry> {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let query = QuarantineQuery { state: None, after: String::new(), count_max: 100 };
        let listed = runtime.block_on(self.quarantine.list(RepositoryId("r"), query)).expect("readable");
        listed.into_iter().map(|(_, entry)| entry).collect()
    }
}

impl Answered {
    #[track_caller]
    fn valid(&self) -> &Self {
        let root =
            strict::read(self.body.as_bytes()).unwrap_or_else(|error| panic!("{error}: {}", self.body));
        envelope::check(&root, Strictness::TokenAlone)
            .unwrap_or_else(|error| panic!("{error}: {}", self.body));
        self
    }

    fn error(&self) -> Option<&str> {
        self.body.split("<error code=\"").nth(1)?.split('"').next()
    }

    #[track_caller]
    fn token(&self) -> String {
        let token = self.summary.page.token.clone().expect("a token");
        assert!(self.body.contains(&format!(">{token}</resumptionToken>")), "{}", self.body);
        token
    }

    fn titles(&self) -> Vec<&str> {
        self.body.split("<dc:title>").skip(1).filter_map(|rest| rest.split('<').next()).collect()
    }
}

#[test]
fn formats_that_the_repository_lacks_are_added() {
    let prefixes = |inner: Inner, query: &str| {
        let answered = fixture(inner).ask(&format!("verb=ListMetadataFormats{query}"));
        answered.valid();
        let parts = answered.body.split("<metadataPrefix>").skip(1);
        parts.filter_map(|part| part.split('<').next()).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let of =
        |formats: &[(&'static str, &'static str)]| Inner { formats: formats.to_vec(), ..Inner::default() };
    assert_eq!(prefixes(of(&[("marcxml", MARC21)]), ""), "marcxml DIDL.identifiers mods oai_dc");
    assert_eq!(prefixes(of(&[("marcxml", MARC21)]), "&identifier=a"), "marcxml DIDL.identifiers mods oai_dc");
    let native = [("mods", "urn:x"), ("oai_dc", DUBLIN_CORE)];
    assert_eq!(prefixes(of(&native), ""), "mods oai_dc DIDL.identifiers");
    // Nothing can be made of an unknown format.
    assert_eq!(prefixes(of(&[("x", "urn:x")]), ""), "x");
    let error = Inner { error: Some(ErrorCode::IdDoesNotExist), ..of(&native) };
    let answered = fixture(error).ask("verb=ListMetadataFormats&identifier=a");
    assert_eq!(answered.valid().error(), Some("idDoesNotExist"));
}

#[test]
fn a_list_keeps_everything_but_the_metadata() {
    let about = "<about><a xmlns='urn:a'/></about>";
    let with_about = record(2, "", &format!("<metadata>{}</metadata>{about}", marcxml("B &amp; C")));
    let pages = vec![vec![live(1), with_about], vec![record(3, " status=\"deleted\"", ""), live(4)]];
    let fixture = fixture(marc_repository(pages));
    let first = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc&set=a&from=2024-01-01");
    assert_eq!(first.valid().titles(), ["Title 1", "B &amp; C"]);
    assert_eq!(
        fixture.inner.queries(),
        ["verb=ListMetadataFormats", "verb=ListRecords&metadataPrefix=marcxml&set=a&from=2024-01-01"]
    );
    for part in [
        "<request verb=\"ListRecords\" metadataPrefix=\"oai_dc\" set=\"a\" from=\"2024-01-01\">",
        &format!("<responseDate>{DATE}</responseDate>"),
        "<identifier>oai:x:1</identifier><datestamp>2024-01-02T03:04:05Z</datestamp><setSpec>a:b</setSpec></header>",
        about,
        "<resumptionToken expirationDate=\"2030-01-01T00:00:00Z\" completeListSize=\"25\" cursor=\"0\">oaicrosswalk1_",
    ] {
        assert!(first.body.contains(part), "{part} {}", first.body);
    }
    assert!(!first.body.contains("marcxml") && !first.body.contains("page 1"), "{}", first.body);
    assert_eq!(first.summary.items.sent(), 2);
    let list = first.head.as_ref().and_then(|head| head.list);
    assert_eq!(list.map(|age| age.state_secs), Some(UnixSecs(1)));
    let place = first.records[1].datestamp_at.clone();
    assert_eq!(first.records[1].xml.get(place), Some("2024-01-02T03:04:05Z"));
    assert!(first.records[1].xml.contains("<oai_dc:dc "), "{:?}", first.records[1]);

    let token = first.token();
    let second = fixture.ask(&format!("verb=ListRecords&resumptionToken={token}"));
    assert_eq!(second.valid().titles(), ["Title 4"]);
    assert_eq!(fixture.inner.queries(), ["verb=ListRecords&resumptionToken=page%201"]);
    assert!(second.body.contains("<header status=\"deleted\">"), "{}", second.body);
    assert!(
        second.body.contains("<resumptionToken completeListSize=\"25\" cursor=\"10\"></resumptionToken>")
    );
    assert!(second.body.contains(&format!("resumptionToken=\"{token}\"")), "{}", second.body);
    assert_eq!(second.summary.page.token, None);
}

#[test]
fn headers_and_single_records_are_in_the_format_too() {
    let mut header = live(1);
    header.xml =
        "<header><identifier>oai:x:1</identifier><datestamp>2024-01-02</datestamp></header>".to_owned();
    let headers = fixture(marc_repository(vec![vec![header.clone()], vec![header]]));
    let listed = headers.ask("verb=ListIdentifiers&metadataPrefix=oai_dc");
    listed.valid();
    assert!(listed.body.contains("    <header><identifier>oai:x:1</identifier>"), "{}", listed.body);
    let second = headers.ask(&format!("verb=ListIdentifiers&resumptionToken={}", listed.token()));
    assert_eq!(second.valid().error(), None);
    // A token of headers is none of records.
    let other = headers.ask(&format!("verb=ListRecords&resumptionToken={}", listed.token()));
    assert_eq!(other.valid().error(), Some("badResumptionToken"));

    let fixture = fixture(marc_repository(vec![vec![live(7)]]));
    let one = fixture.ask("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:7");
    assert_eq!(one.valid().titles(), ["Title 7"]);
    assert!(!one.body.contains("resumptionToken"), "{}", one.body);
}

#[test]
fn native_formats_and_other_requests_are_passed_on_unchanged() {
    let mut inner = marc_repository(vec![vec![live(1)]]);
    inner.formats.push(("oai_dc", DUBLIN_CORE));
    let fixture = fixture(inner);
    for query in [
        "verb=ListRecords&metadataPrefix=oai_dc",
        "verb=ListRecords&metadataPrefix=marcxml",
        "verb=GetRecord&metadataPrefix=DIDL:other&identifier=a",
        "verb=ListIdentifiers&resumptionToken=page%200",
    ] {
        let request = fixture.request(query);
        let (_, expected, _) = fixture.inner.response(&request);
        assert_eq!(fixture.ask(query).body, expected, "{query}");
    }
    // Nothing is requested to find that out, except for the format of a crosswalk.
    let formats = fixture.inner.queries().iter().filter(|query| query.contains("Formats")).count();
    assert_eq!(formats, 1);
    assert!(fixture.ask("verb=Identify").failure.is_none());
}

#[test]
fn the_name_of_the_paper_is_echoed_as_the_legal_one() {
    let fixture = fixture(marc_repository(vec![vec![live(1)]]));
    let listed = fixture.ask("verb=ListRecords&metadataPrefix=DIDL:identifiers");
    listed.valid();
    assert!(listed.body.contains("metadataPrefix=\"DIDL.identifiers\">"), "{}", listed.body);
    assert!(listed.body.contains("<dii:Identifier>oai:x:1</dii:Identifier>"), "{}", listed.body);
}

#[test]
fn a_record_that_cannot_be_converted_costs_only_itself() {
    let pages = vec![vec![live(1), unreadable(2), live(3)]];
    let fixture = fixture(marc_repository(pages));
    let listed = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(listed.valid().titles(), ["Title 1", "Title 3"]);
    assert_eq!((listed.summary.items.sent(), listed.summary.items.quarantined()), (2, 1));
    assert_eq!(listed.quarantined.len(), 1);
    let entries = fixture.entries();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!(
        (entry.identifier.as_deref(), entry.why.as_str(), entry.metadata_prefix.as_deref()),
        (Some("oai:x:2"), "crosswalk-nothing-read", Some("oai_dc"))
    );
    assert_eq!(entry.request, "verb=ListRecords&metadataPrefix=oai_dc");
    // In a view of several repositories it is in the quarantine of its own.
    let mut of_view = Fixture {
        inner: fixture.inner.clone(),
        settings: CrosswalkSettings { repository: "_all".to_owned(), ..fixture.settings.clone() },
        quarantine: Arc::clone(&fixture.quarantine),
    };
    of_view.settings.quarantine.is_by_set = true;
    for record in &mut of_view.inner.pages[0] {
        record.set_specs = vec!["r:a".to_owned()];
    }
    of_view.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(fixture.entries()[0].seen, 2);
    // It is resolved when the source sends it with a title.
    let mended = Fixture { inner: marc_repository(vec![vec![live(2)]]), ..fixture };
    assert_eq!(mended.ask("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:2").titles(), ["Title 2"]);
    assert!(mended.entries()[0].resolved_at.is_some());
}

#[test]
fn pages_without_a_convertible_record_are_followed_by_the_next_one() {
    let pages = vec![vec![unreadable(1)], vec![unreadable(2)], vec![live(3)], vec![unreadable(4)]];
    let fixture = fixture(marc_repository(pages));
    let first = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(first.valid().titles(), ["Title 3"]);
    assert_eq!(first.summary.items.quarantined(), 2);
    let last = fixture.ask(&format!("verb=ListRecords&resumptionToken={}", first.token()));
    assert_eq!((last.valid().titles().len(), last.error()), (0, None));
    assert!(last.body.contains("<resumptionToken"), "{}", last.body);
    // A list without a record is a failure, and no empty list.
    for (pages, query) in [
        (vec![vec![unreadable(1)]], "verb=ListRecords&metadataPrefix=oai_dc"),
        (vec![vec![unreadable(1)]; 20], "verb=ListRecords&metadataPrefix=oai_dc"),
        (vec![vec![unreadable(1)]], "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:1"),
    ] {
        let failed = Fixture {
            inner: marc_repository(pages),
            settings: fixture.settings.clone(),
            quarantine: Arc::clone(&fixture.quarantine),
        };
        let failed = failed.ask(query);
        assert_eq!(failed.failure.map(|failure| failure.reason), Some(Reason::Unrepairable), "{query}");
        assert!(failed.body.is_empty() && failed.summary.end.has_only_quarantined, "{}", failed.body);
    }
}

#[test]
fn a_list_does_not_end_where_the_source_refuses_a_token_after_such_a_page() {
    let pages = vec![vec![live(1)], vec![unreadable(2)], vec![live(3)]];
    let fixture = fixture(Inner { refused_page: Some(2), ..marc_repository(pages) });
    let first = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    let next = fixture.ask(&format!("verb=ListRecords&resumptionToken={}", first.token()));
    assert_eq!(next.error(), Some("badResumptionToken"));
}

#[test]
fn a_mapping_can_let_pages_with_such_records_fail() {
    let mut fixture = fixture(marc_repository(vec![vec![live(1), unreadable(2)]]));
    fixture.settings.quarantine.fails_pages = true;
    let failed = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(failed.failure.map(|failure| failure.reason), Some(Reason::Unrepairable));
    assert_eq!(fixture.entries().len(), 1);
    fixture.settings.quarantine.fails_pages = false;
    fixture.settings.quarantine.bytes_max = 1;
    fixture.inner.pages = vec![vec![live(1), unreadable(3)]];
    let failed = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(failed.failure.map(|failure| failure.reason), Some(Reason::Quarantine));
}

#[test]
fn records_that_are_too_long_to_be_read_are_not_missing_silently() {
    let fixture = fixture(Inner { oversized: 2, ..marc_repository(vec![vec![live(1)]]) });
    let listed = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!((listed.valid().titles().len(), listed.summary.items.quarantined()), (1, 2));
    assert_eq!(
        fixture.entries().iter().map(|entry| entry.why.as_str()).collect::<Vec<_>>(),
        ["crosswalk-limit"]
    );
}

#[test]
fn errors_and_failures_of_the_repository_are_passed_on() {
    let mut fixture = fixture(marc_repository(vec![vec![live(1)]]));
    let first = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(first.titles().len(), 1);
    fixture.settings.known_formats = Some(FormatsCache::default());
    fixture.ask("verb=ListMetadataFormats");
    fixture.inner.queries();
    for code in [ErrorCode::NoRecordsMatch, ErrorCode::IdDoesNotExist, ErrorCode::BadResumptionToken] {
        fixture.inner.error = Some(code);
        let answered = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
        assert_eq!(answered.valid().error(), Some(code.name()));
        assert!(answered.body.contains("metadataPrefix=\"oai_dc\""), "{}", answered.body);
    }
    // The formats are known.
    assert!(fixture.inner.queries().iter().all(|query| query.starts_with("verb=ListRecords")));
    fixture.inner.error = None;
    fixture.inner.is_failing = true;
    let failed = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(failed.failure.map(|failure| failure.reason), Some(Reason::ConnectionLost));
    assert!(!failed.body.contains("</OAI-PMH>"), "a list that broke off has no end: {}", failed.body);
}

#[test]
fn a_source_that_does_not_list_its_formats_is_served_in_its_own() {
    let inner = Inner { has_unknown_formats: true, ..marc_repository(vec![vec![live(1)]]) };
    let mut fixture = fixture(inner);
    let native = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert!(native.valid().body.contains("<m:record"), "{}", native.body);
    assert_eq!((native.failure, native.records.len()), (None, 1));
    // Its format may be one that a crosswalk can make once the formats are known.
    fixture.inner.error = Some(ErrorCode::CannotDisseminateFormat);
    let failed = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(failed.failure.map(|failure| failure.reason), Some(Reason::ConnectionLost));
    assert_eq!(failed.body, "");
    fixture.inner.error = Some(ErrorCode::NoRecordsMatch);
    assert_eq!(fixture.ask("verb=ListRecords&metadataPrefix=oai_dc").error(), Some("noRecordsMatch"));
}

#[test]
fn forged_tokens_and_those_of_other_lists_are_refused() {
    let fixture = fixture(marc_repository(vec![vec![live(1)], vec![live(2)]]));
    let token = fixture.ask("verb=ListRecords&metadataPrefix=oai_dc").token();
    let error = |fixture: &Fixture, token: &str| {
        let answered = fixture.ask(&format!("verb=ListRecords&resumptionToken={token}"));
        answered.valid().error().map(str::to_owned)
    };
    assert_eq!(error(&fixture, &token), None);
    let refused = Some("badResumptionToken".to_owned());
    let change = |change: fn(&mut CrosswalkSettings)| {
        let mut settings = fixture.settings.clone();
        change(&mut settings);
        Fixture { inner: fixture.inner.clone(), settings, quarantine: Arc::clone(&fixture.quarantine) }
    };
    let other_repository = change(|settings| settings.repository = "other".to_owned());
    assert_eq!(error(&other_repository, &token), refused);
    // The format is turned off, or its function has changed.
    let without = change(|settings| settings.crosswalks.retain(|crosswalk| crosswalk.prefix != "oai_dc"));
    assert_eq!(error(&without, &token), refused);
    let changed =
        change(|settings| settings.crosswalks.iter_mut().for_each(|crosswalk| crosswalk.version.push('x')));
    assert_eq!(error(&changed, &token), refused);
    // A token that is not ours is one of the wrapped repository, which decides about it.
    let other_key = change(|settings| settings.token_key = TokenKey::new([2; 32]));
    let request = other_key.request(&format!("verb=ListRecords&resumptionToken={token}"));
    assert!(other_key.repository().0.task_of(&request.request).is_none());
}

#[test]
fn a_token_of_a_source_that_is_too_long_is_a_failure() {
    #[derive(Clone)]
    struct LongToken(Inner);
    impl Repository for LongToken {
        fn answer(&self, request: RepositoryRequest) -> EventStream {
            let mut events = self.0.answer(request);
            let (sender, received) = mpsc::channel(1);
            let session = async move {
                while let Some(mut event) = events.next().await {
                    if let Event::End(summary) = &mut event {
                        summary.page.token = summary.page.token.as_ref().map(|_| "t".repeat(4_000));
                    }
                    if sender.send(event).await.is_err() {
                        return;
                    }
                }
            };
            EventStream::new(received, Box::pin(session))
        }
    }
    let fixture = fixture(marc_repository(vec![vec![live(1)], vec![live(2)]]));
    let repository =
        CrosswalkRepository::new(Box::new(LongToken(fixture.inner.clone())), fixture.settings.clone());
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let last = runtime.block_on(async {
        let mut events = repository.answer(fixture.request("verb=ListRecords&metadataPrefix=oai_dc"));
        let mut last = None;
        while let Some(event) = events.next().await {
            last = Some(event);
        }
        last
    });
    assert!(matches!(last, Some(Event::Failed(failure, _)) if failure.reason == Reason::NotResumable));
}

#[test]
fn a_client_of_http_1_0_gets_a_length() {
    let fixture = fixture(marc_repository(vec![vec![live(1)]]));
    for query in ["verb=ListRecords&metadataPrefix=oai_dc", "verb=ListMetadataFormats"] {
        let request = RepositoryRequest { in_one_piece: true, ..fixture.request(query) };
        let answered = fixture.answer(request);
        answered.valid();
        assert_eq!(answered.head.and_then(|head| head.length), Some(answered.body.len()), "{query}");
    }
}

#[test]
fn records_of_another_format_are_read_by_its_namespace() {
    let mods =
        format!("<metadata><mods xmlns='{MODS}'><titleInfo><title>M</title></titleInfo></mods></metadata>");
    let inner = Inner {
        formats: vec![("x", "urn:x"), ("m", MODS), ("marcxml", MARC21)],
        pages: vec![vec![record(1, "", &mods)]],
        ..Inner::default()
    };
    let fixture = fixture(inner);
    assert_eq!(fixture.ask("verb=ListRecords&metadataPrefix=oai_dc").valid().titles(), ["M"]);
    assert_eq!(fixture.inner.queries()[1], "verb=ListRecords&metadataPrefix=m");
}
