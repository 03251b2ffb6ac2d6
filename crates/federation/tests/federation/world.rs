//! A federation of sources in memory that change, fail and lie.

use crate::source::{LATE_YIELDS, Source, SourceRepository};
use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use oaimend_base::clock::Clock;
use oaimend_federation::{
    FederationRepository, FederationServices, FederationSettings, FederationState, Member,
    MemberRepositories, OnFailure, RecordLocator,
};
use oaimend_mirror::SpanTable;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{Request, UnixSecs};
use oaimend_repository::{Event, Failure, HarvesterTraits, Repository, RepositoryRequest};
use oaimend_store::TokenKey;
use oaimend_store_contract::Memory;
use oaimend_store_contract::mirror::fixtures::MirrorBackend as _;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge::judge;
use oaimend_test_support::strict::{self, Element};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

pub(crate) const START_SECS: i64 = 1_700_000_000;

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
                for _ in 0..LATE_YIELDS {
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

    /// The number of requests that a source has received.
    pub(crate) fn requests(&self, id: &str) -> usize {
        self.sources.lock().expect("not poisoned")[id].requests.len()
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

/// A request of a harvester.
pub(crate) fn request(query: &str) -> RepositoryRequest {
    let request = Request::parse(query.as_bytes()).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let echo = Arc::new(request.to_echo("http://proxy.example/_federation"));
    RepositoryRequest {
        request,
        echo,
        via: String::new(),
        harvester: HarvesterTraits::default(),
        in_one_piece: false,
        reports_records: false,
    }
}

pub(crate) fn ask(repository: &dyn Repository, query: &str) -> Answered {
    let request = request(query);
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
