//! Sources in memory that change, fail and lie, and a federation of them.

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use oaimend_base::clock::Clock;
use oaimend_federation::{
    FederationRepository, FederationServices, FederationSettings, FederationState, Member,
    MemberRepositories, OnFailure, RecordLocator,
};
use oaimend_mirror::SpanTable;
use oaimend_oai::datestamp::{Granularity, from_secs, to_last_second, to_secs};
use oaimend_oai::{Argument, ErrorCode, Request, UnixSecs, Verb, error_response, response_head};
use oaimend_repository::{
    AnsweredBy, DeliveredRecord, Event, EventStream, Failure, HarvesterTraits, ListAge, Reason, Repository,
    RepositoryRequest, ResponseHead, ResponseSummary,
};
use oaimend_store::TokenKey;
use oaimend_store_contract::Memory;
use oaimend_store_contract::mirror::fixtures::MirrorBackend as _;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge::judge;
use oaimend_test_support::strict::{self, Element};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

pub(crate) const START_SECS: i64 = 1_700_000_000;

/// How a source fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    Nothing,
    /// Every request.
    Down,
    /// Every page breaks off after its first record.
    BreaksOff,
    /// Every request with a token.
    LosesTokens,
    /// The token of a page is that of the page itself.
    Loops,
    /// Every response takes for ever.
    Hangs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) secs: i64,
    pub(crate) version: u64,
    pub(crate) sets: Vec<String>,
    pub(crate) is_deleted: bool,
}

/// A source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) records: BTreeMap<String, Record>,
    /// The older records that its mirror answers with, and their time.
    pub(crate) mirror: Option<(i64, BTreeMap<String, Record>)>,
    pub(crate) granularity: Granularity,
    pub(crate) deleted_record: &'static str,
    pub(crate) formats: Vec<&'static str>,
    pub(crate) sets: Vec<&'static str>,
    pub(crate) page_records: usize,
    /// The time by which its clock is ahead.
    pub(crate) lead_secs: i64,
    pub(crate) fault: Fault,
    pub(crate) requests: Vec<String>,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            records: BTreeMap::new(),
            mirror: None,
            granularity: Granularity::Second,
            deleted_record: "persistent",
            formats: vec!["oai_dc"],
            sets: Vec::new(),
            page_records: 2,
            lead_secs: 0,
            fault: Fault::Nothing,
            requests: Vec::new(),
        }
    }
}

/// A page of a source, before it is written.
enum Page {
    Error(ErrorCode),
    Content { content: String, items: u64, token: Option<String>, latest: Option<String> },
}

impl Source {
    /// A source with records `a1`, `a2` and so on, of one second each.
    pub(crate) fn with(name: &str, count: i64) -> Self {
        let mut source = Self::default();
        for number in 1..=count {
            source.change(&format!("{name}{number}"), START_SECS - 10_000 + number, 1);
        }
        source
    }

    pub(crate) fn change(&mut self, identifier: &str, secs: i64, version: u64) {
        let record = Record { secs, version, sets: Vec::new(), is_deleted: false };
        self.records.insert(identifier.to_owned(), record);
    }

    fn shown(&self) -> &BTreeMap<String, Record> {
        self.mirror.as_ref().map_or(&self.records, |(_, records)| records)
    }

    fn date_secs(&self, now_secs: i64) -> i64 {
        self.mirror.as_ref().map_or(now_secs + self.lead_secs, |(secs, _)| *secs)
    }

    fn stamp(&self, secs: i64) -> String {
        from_secs(UnixSecs(secs), self.granularity)
    }

    fn item(&self, verb: Verb, identifier: &str, record: &Record) -> String {
        let status = if record.is_deleted { " status=\"deleted\"" } else { "" };
        let sets: String = record.sets.iter().map(|set| format!("<setSpec>{set}</setSpec>")).collect();
        let stamp = self.stamp(record.secs);
        let header = format!(
            "<header{status}><identifier>{identifier}</identifier><datestamp>{stamp}</datestamp>{sets}</header>"
        );
        if verb == Verb::ListIdentifiers {
            return header;
        }
        let metadata = if record.is_deleted {
            String::new()
        } else {
            format!("<metadata><v xmlns=\"urn:v\">{}</v></metadata>", record.version)
        };
        format!("<record>{header}{metadata}</record>")
    }

    fn answer(&self, request: &Request, echo_url: &str, now_secs: i64) -> Page {
        let whole = |content: String| Page::Content { content, items: 1, token: None, latest: None };
        let argument = |name| request.argument(name);
        match request.verb() {
            Verb::Identify => whole(format!(
                "<repositoryName>n</repositoryName><baseURL>{echo_url}</baseURL><protocolVersion>2.0</protocolVersion>\
                 <adminEmail>a@x.example</adminEmail><earliestDatestamp>{}</earliestDatestamp>\
                 <deletedRecord>{}</deletedRecord><granularity>{}</granularity>",
                self.stamp(START_SECS - 100_000),
                self.deleted_record,
                self.granularity.name()
            )),
            Verb::ListMetadataFormats => match argument(Argument::Identifier) {
                Some(identifier) if !self.shown().contains_key(identifier) => Page::Error(ErrorCode::IdDoesNotExist),
                _ => whole(self.formats.iter().map(|prefix| format!(
                    "<metadataFormat><metadataPrefix>{prefix}</metadataPrefix><schema>http://x.example/{prefix}.xsd</schema>\
                     <metadataNamespace>urn:{prefix}</metadataNamespace></metadataFormat>"
                )).collect()),
            },
            Verb::ListSets if self.sets.is_empty() => Page::Error(ErrorCode::NoSetHierarchy),
            Verb::ListSets => self.sets_from(request.request_token().parse().unwrap_or(0)),
            Verb::GetRecord => {
                let identifier = argument(Argument::Identifier).unwrap_or_default();
                match self.shown().get(identifier) {
                    None => Page::Error(ErrorCode::IdDoesNotExist),
                    Some(_) if !self.formats.contains(&argument(Argument::MetadataPrefix).unwrap_or_default()) => {
                        Page::Error(ErrorCode::CannotDisseminateFormat)
                    }
                    Some(record) => whole(self.item(Verb::GetRecord, identifier, record)),
                }
            }
            Verb::ListRecords | Verb::ListIdentifiers => self.list(request, now_secs),
        }
    }

    fn sets_from(&self, at: usize) -> Page {
        let shown = self.sets.iter().skip(at).take(self.page_records);
        let content =
            shown.map(|set| format!("<set><setSpec>{set}</setSpec><setName>{set}</setName></set>")).collect();
        let next = at + self.page_records;
        let token = (next < self.sets.len()).then(|| next.to_string());
        Page::Content { content, items: 1, token, latest: None }
    }

    /// A token is the arguments of the list and the position of its last record.
    fn list(&self, request: &Request, _: i64) -> Page {
        let token = request.argument(Argument::ResumptionToken);
        if token.is_some() && self.fault == Fault::LosesTokens {
            return Page::Error(ErrorCode::BadResumptionToken);
        }
        let parts: Vec<String> = match token {
            Some(token) => token.split('|').map(str::to_owned).collect(),
            None => {
                let arguments = [Argument::MetadataPrefix, Argument::Set, Argument::From, Argument::Until];
                let mut parts =
                    arguments.map(|name| request.argument(name).unwrap_or_default().to_owned()).to_vec();
                parts.extend([i64::MIN.to_string(), String::new()]);
                parts
            }
        };
        let [prefix, set, from, until, after_secs, after_id] = parts.try_into().expect("six parts");
        for date in [&from, &until] {
            assert!(date.len() <= self.granularity.len_bytes(), "a source with days refuses {date}");
        }
        if !self.formats.contains(&prefix.as_str()) {
            return Page::Error(ErrorCode::CannotDisseminateFormat);
        }
        if !set.is_empty() && self.sets.is_empty() {
            return Page::Error(ErrorCode::NoSetHierarchy);
        }
        let from_secs = to_secs(&from).map_or(i64::MIN, |secs| secs.0);
        let until_secs = to_last_second(&until).map_or(i64::MAX, |secs| secs.0);
        let after = (after_secs.parse::<i64>().expect("a number"), after_id);
        let mut listed: Vec<_> = self
            .shown()
            .iter()
            .map(|(id, record)| ((record.secs, id.clone()), record))
            .filter(|((secs, _), _)| (from_secs..=until_secs).contains(secs))
            .filter(|(_, record)| set.is_empty() || record.sets.contains(&set))
            .filter(|(position, _)| *position > after)
            .collect();
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        if listed.is_empty() {
            return Page::Error(ErrorCode::NoRecordsMatch);
        }
        let has_more = listed.len() > self.page_records;
        listed.truncate(self.page_records);
        let content = listed.iter().map(|((_, id), record)| self.item(request.verb(), id, record)).collect();
        let last = &listed.last().expect("one record").0;
        let next = format!("{prefix}|{set}|{from}|{until}|{}|{}", last.0, last.1);
        let token = match (self.fault, token) {
            (Fault::Loops, Some(token)) => Some(token.to_owned()),
            _ => has_more.then_some(next),
        };
        let latest = Some(self.stamp(last.0));
        Page::Content { content, items: listed.len() as u64, token, latest }
    }
}

/// A clock that a test sets.
#[derive(Debug, Default)]
pub(crate) struct TestClock {
    secs: AtomicI64,
    /// Whether deadlines are over at once.
    pub(crate) is_late: AtomicBool,
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        let secs = u64::try_from(self.secs.load(Ordering::SeqCst)).expect("a time after 1970");
        SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
    }

    fn pause(&self, _: Duration) -> BoxFuture<'static, ()> {
        tokio::task::yield_now().boxed()
    }

    fn deadline(&self, _: Duration) -> BoxFuture<'static, ()> {
        if self.is_late.load(Ordering::SeqCst) {
            // Everything that needs no wait comes before it.
            async {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            .boxed()
        } else {
            std::future::pending().boxed()
        }
    }
}

/// The sources and the time.
pub(crate) struct World {
    pub(crate) sources: Arc<Mutex<BTreeMap<String, Source>>>,
    pub(crate) clock: Arc<TestClock>,
    joined: BTreeMap<String, i64>,
    pub(crate) on_failure: OnFailure,
    pub(crate) located: Option<Vec<String>>,
    state: Arc<FederationState>,
    spans: SpanTable,
}

struct Members {
    sources: Arc<Mutex<BTreeMap<String, Source>>>,
    clock: Arc<TestClock>,
}

#[async_trait]
impl MemberRepositories for Members {
    async fn open(&self, id: &str) -> Result<Box<dyn Repository>, Failure> {
        let (sources, clock) = (Arc::clone(&self.sources), Arc::clone(&self.clock));
        Ok(Box::new(SourceRepository { id: id.to_owned(), sources, clock }))
    }

    fn granularity(&self, _: &str) -> Option<Granularity> {
        None
    }
}

struct Located(Vec<String>);

#[async_trait]
impl RecordLocator for Located {
    fn covers(&self, _: &str) -> bool {
        true
    }

    async fn locate(&self, _: &str) -> Vec<String> {
        self.0.clone()
    }
}

struct SourceRepository {
    id: String,
    sources: Arc<Mutex<BTreeMap<String, Source>>>,
    clock: Arc<TestClock>,
}

impl Repository for SourceRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let (sender, events) = mpsc::channel(4);
        let (id, sources, clock) = (self.id.clone(), Arc::clone(&self.sources), Arc::clone(&self.clock));
        let session = async move {
            let now_secs = clock.now_secs().0;
            let source = {
                let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
                sources.get_mut(&id).map(|source| {
                    source.requests.push(request.request.query().to_owned());
                    source.clone()
                })
            };
            let source = source.unwrap_or(Source { fault: Fault::Down, ..Source::default() });
            for event in written(&source, &request, now_secs) {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
            if source.fault == Fault::Hangs {
                std::future::pending::<()>().await;
            }
        };
        EventStream::new(events, Box::pin(session))
    }
}

/// The events of a response.
fn written(source: &Source, request: &RepositoryRequest, now_secs: i64) -> Vec<Event> {
    let failed = || Event::Failed(Failure::new(Reason::ConnectionRefused, "it is down"), Box::default());
    match source.fault {
        Fault::Down => return vec![failed()],
        Fault::Hangs => return Vec::new(),
        _ => {}
    }
    let date_secs = UnixSecs(source.date_secs(now_secs));
    let date = from_secs(date_secs, Granularity::Second);
    let list = source
        .mirror
        .is_none()
        .then_some(ListAge { state_secs: date_secs.minus(1), response_date_secs: date_secs });
    let head = Event::Head(ResponseHead { answered_by: AnsweredBy::Source(200), length: None, list });
    let mut summary = Box::new(ResponseSummary::default());
    summary.page.response_date = Some(date.clone());
    let (content, token) = match source.answer(&request.request, &request.echo.base_url, now_secs) {
        Page::Error(code) => {
            summary.page.error = Some(code);
            let body = error_response(&request.echo, &date, code, "it says <so>");
            return vec![head, Event::Body(body.into()), Event::End(summary)];
        }
        Page::Content { content, items, token, latest } => {
            summary.items.set_sent(items);
            summary.page.token.clone_from(&token);
            summary.page.latest_datestamp = latest;
            (content, token)
        }
    };
    let verb = request.request.verb().name();
    let is_token_page = request.request.is_resumption();
    let end = match token {
        Some(token) => format!("<resumptionToken completeListSize=\"9\">{token}</resumptionToken>"),
        None if is_token_page => "<resumptionToken/>".to_owned(),
        None => String::new(),
    };
    let start = format!("{}<{verb}>", response_head(&request.echo, &date, true));
    let body = format!("{start}{content}{end}</{verb}></OAI-PMH>\n");
    let mut events = vec![head];
    if request.reports_records {
        events.push(Event::Records(vec![DeliveredRecord {
            identifier: String::new(),
            datestamp: String::new(),
            deleted: false,
            set_specs: Vec::new(),
            xml: content.clone(),
            datestamp_at: 0..0,
            repairs: oaimend_store::RecordRepairs::default(),
        }]));
    }
    if source.fault == Fault::BreaksOff && request.request.verb().is_list() {
        let cut = content.find("</header>").map_or(content.len(), |at| at + 5);
        events.push(Event::Body(body.as_bytes()[..start.len() + cut].to_vec().into()));
        events.push(failed());
        return events;
    }
    // In two pieces, somewhere in the content.
    let half = (start.len() + content.len() / 2).min(body.len());
    let (one, other) = body.as_bytes().split_at(half);
    events.extend([
        Event::Body(one.to_vec().into()),
        Event::Body(other.to_vec().into()),
        Event::End(summary),
    ]);
    events
}

/// The response of the federation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    pub(crate) body: String,
    pub(crate) token: Option<String>,
    pub(crate) failure: Option<Failure>,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) identifier: String,
    pub(crate) datestamp: String,
    pub(crate) sets: Vec<String>,
    pub(crate) version: u64,
}

impl World {
    pub(crate) fn new(sources: impl IntoIterator<Item = (&'static str, Source)>) -> Self {
        let clock = Arc::new(TestClock::default());
        clock.secs.store(START_SECS, Ordering::SeqCst);
        let mut world = Self {
            sources: Arc::default(),
            clock,
            joined: BTreeMap::new(),
            on_failure: OnFailure::Fail,
            located: None,
            state: Arc::default(),
            spans: SpanTable::new(Memory::default().open()),
        };
        for (id, source) in sources {
            world.join(id, source, START_SECS - 50_000);
        }
        world
    }

    pub(crate) fn join(&mut self, id: &str, source: Source, joined_secs: i64) {
        self.joined.insert(id.to_owned(), joined_secs);
        self.sources.lock().expect("not poisoned").insert(id.to_owned(), source);
    }

    pub(crate) fn leave(&mut self, id: &str) {
        self.joined.remove(id);
    }

    pub(crate) fn change(&self, id: &str, change: impl FnOnce(&mut Source)) {
        change(self.sources.lock().expect("not poisoned").get_mut(id).expect("a source"));
    }

    pub(crate) fn now_secs(&self) -> i64 {
        self.clock.secs.load(Ordering::SeqCst)
    }

    pub(crate) fn pass_time(&self, secs: i64) {
        self.clock.secs.fetch_add(secs, Ordering::SeqCst);
    }

    pub(crate) fn federation(&self) -> FederationRepository {
        self.federation_named("_federation")
    }

    pub(crate) fn federation_named(&self, name: &str) -> FederationRepository {
        let member =
            |(id, joined): (&String, &i64)| Member { id: id.clone(), joined_secs: UnixSecs(*joined) };
        let settings = FederationSettings {
            name: name.to_owned(),
            repository_name: "All & more".to_owned(),
            description: Some("What <all> have".to_owned()),
            admin_emails: Vec::new(),
            on_failure: self.on_failure,
            members: Member::in_index_order(self.joined.iter().map(member).collect()),
            spool_bytes_max: 1 << 20,
        };
        let (sources, clock) = (Arc::clone(&self.sources), Arc::clone(&self.clock));
        let locator = self.located.clone().map(|ids| Arc::new(Located(ids)) as Arc<dyn RecordLocator>);
        let services = FederationServices {
            repositories: Arc::new(Members { sources, clock: Arc::clone(&clock) }),
            locator,
            state: Arc::clone(&self.state),
            spans: self.spans.clone(),
            token_key: TokenKey::new([7; 32]),
            clock,
        };
        FederationRepository::new(settings, services)
    }

    pub(crate) fn ask(&self, query: &str) -> Answered {
        ask(&self.federation(), query)
    }

    /// A valid response of the federation.
    #[track_caller]
    pub(crate) fn valid(&self, query: &str) -> Answered {
        let answered = self.ask(query);
        assert_eq!(answered.failure, None, "{query}");
        answered.check();
        answered
    }

    /// All items of a list, each page valid.
    #[track_caller]
    pub(crate) fn list(&self, arguments: &str) -> Vec<Item> {
        let mut page = self.valid(&format!("verb=ListRecords{arguments}"));
        let mut items = page.items();
        while let Some(token) = page.token.clone() {
            assert!(items.len() < 10_000, "the list does not end");
            page = self.valid(&format!("verb=ListRecords&resumptionToken={token}"));
            assert_ne!(page.items(), Vec::new(), "a token leads to a page without records");
            items.extend(page.items());
        }
        items
    }
}

pub(crate) fn ask(repository: &dyn Repository, query: &str) -> Answered {
    let request = Request::parse(query.as_bytes()).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let echo = Arc::new(request.to_echo("http://proxy.example/_federation"));
    let request = RepositoryRequest {
        request,
        echo,
        via: String::new(),
        harvester: HarvesterTraits::default(),
        in_one_piece: false,
        reports_records: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut answered = Answered::default();
    runtime.block_on(async {
        let mut events = repository.answer(request);
        while let Some(event) = events.next().await {
            match event {
                Event::Body(bytes) => answered.body.push_str(&String::from_utf8_lossy(&bytes)),
                Event::End(summary) => answered.token = summary.page.token,
                Event::Failed(failure, _) => answered.failure = Some(failure),
                Event::Head(_) | Event::Records(_) | Event::Quarantined(_) => {}
            }
        }
    });
    answered
}

impl Answered {
    #[track_caller]
    pub(crate) fn check(&self) {
        judge(self.body.as_bytes(), Strictness::Schema)
            .unwrap_or_else(|wrong| panic!("{wrong}\n{}", self.body));
    }

    fn verb(&self) -> Element {
        let root = strict::read(self.body.as_bytes()).expect("well-formed");
        root.children.into_iter().last().expect("a verb element")
    }

    /// The code of the error, or the name of the verb element.
    pub(crate) fn kind(&self) -> String {
        let verb = self.verb();
        let code =
            verb.attributes.iter().find(|(_, name, _)| name == "code").map(|(_, _, code)| code.clone());
        code.unwrap_or(verb.name)
    }

    pub(crate) fn items(&self) -> Vec<Item> {
        self.verb().children.iter().filter_map(item).collect()
    }

    /// The text of an element.
    pub(crate) fn text(&self, name: &str) -> String {
        let start = format!("<{name}>");
        let from = self.body.find(&start).map_or(0, |at| at + start.len());
        self.body[from..].split('<').next().unwrap_or_default().to_owned()
    }
}

fn child<'e>(element: &'e Element, name: &str) -> Option<&'e Element> {
    element.children.iter().find(|child| child.name == name)
}

fn item(element: &Element) -> Option<Item> {
    let header = if element.name == "header" { element } else { child(element, "header")? };
    let text = |name| child(header, name).map_or_else(String::new, |child| child.text.clone());
    let sets = header.children.iter().filter(|child| child.name == "setSpec");
    let version = child(element, "metadata").and_then(|metadata| child(metadata, "v"));
    Some(Item {
        identifier: text("identifier"),
        datestamp: text("datestamp"),
        sets: sets.map(|set| set.text.clone()).collect(),
        version: version.map_or(0, |version| version.text.parse().expect("a number")),
    })
}

pub(crate) fn identifiers(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.identifier.as_str()).collect()
}

pub(crate) const DC: &str = "&metadataPrefix=oai_dc";
