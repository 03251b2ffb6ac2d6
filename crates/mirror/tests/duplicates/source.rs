//! A source whose lists can contain an identifier several times, and a mirror of it.

use oaimend_base::clock::Clock;
use oaimend_mirror::Stamps;
use oaimend_mirror::harvest::{DeletionLimits, HarvestSettings, HarvestSummary, HarvestTurn, Harvester};
use oaimend_oai::datestamp::{Granularity, from_secs, to_secs};
use oaimend_oai::{Argument, ErrorCode, Request, UnixSecs, Verb};
use oaimend_repair::QuarantineReason;
use oaimend_repository::{
    DeliveredRecord, Event, EventStream, Failure, IdentifyFields, Reason, Repository, RepositoryRequest,
    ResponseSummary,
};
use oaimend_store::{
    Duplicates, ListFilter, ListQuery, MirrorStore, QuarantinedRecord, RecordRepairs, RecordStatus,
};
use oaimend_store_local::RecordLog;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Notify, mpsc};

/// The time of the first harvest, 2021-01-01, in seconds since 1970.
pub(crate) const START_SECS: i64 = 1_609_459_200;

/// A clock that only pauses and the test move.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn pass(&self, secs: i64) {
        self.0.fetch_add(secs, Ordering::SeqCst);
    }

    pub(crate) fn secs(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.secs().unsigned_abs())
    }

    fn pause(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.pass(time.as_secs().cast_signed());
        futures::future::ready(()).boxed()
    }

    fn deadline(&self, _: Duration) -> BoxFuture<'static, ()> {
        futures::future::pending().boxed()
    }
}

/// One record in the lists of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) identifier: String,
    pub(crate) secs: i64,
    /// Its title; `None`: it is deleted.
    pub(crate) title: Option<String>,
    /// Whether it cannot be read.
    pub(crate) is_broken: bool,
}

/// A record with a title.
pub(crate) fn live(identifier: &str, secs: i64, title: &str) -> Listed {
    let (identifier, title) = (identifier.to_owned(), Some(title.to_owned()));
    Listed { identifier, secs, title, is_broken: false }
}

/// A deleted record.
pub(crate) fn deleted(identifier: &str, secs: i64) -> Listed {
    Listed { identifier: identifier.to_owned(), secs, title: None, is_broken: false }
}

/// What happens at a page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The page fails after half of its records.
    Half,
    /// The source has forgotten its tokens.
    Forgotten,
    /// The process of the mirror ends.
    Kill,
}

/// The lists of the source, and its faults.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) records: Vec<Listed>,
    pub(crate) page_len: usize,
    /// Whether it lists deleted records for ever.
    pub(crate) is_persistent: bool,
    /// The faults by the number of the page of a list of records, which all harvests count.
    pub(crate) faults: BTreeMap<u64, Fault>,
    /// Replaces the records before this page.
    pub(crate) change_before: Option<(u64, Vec<Listed>)>,
    pages: u64,
}

/// The source.
#[derive(Debug)]
pub(crate) struct Source {
    lists: Mutex<Lists>,
    clock: Arc<TestClock>,
    killed: Notify,
}

impl Source {
    pub(crate) fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().expect("no test panics while it holds this")
    }

    fn summary(&self) -> ResponseSummary {
        let mut summary = ResponseSummary::default();
        summary.page.response_date = Some(from_secs(UnixSecs(self.clock.secs()), Granularity::Second));
        summary
    }

    fn error(&self, code: ErrorCode) -> Vec<Event> {
        let mut summary = self.summary();
        summary.page.error = Some(code);
        vec![Event::End(Box::new(summary))]
    }

    fn identify(&self) -> Vec<Event> {
        let mut summary = self.summary();
        summary.page.identify = Some(IdentifyFields {
            earliest_datestamp: "2000-01-01T00:00:00Z".to_owned(),
            deleted_record: if self.lists().is_persistent { "persistent" } else { "no" }.to_owned(),
            granularity: "YYYY-MM-DDThh:mm:ssZ".to_owned(),
        });
        vec![Event::End(Box::new(summary))]
    }

    fn formats(&self) -> Vec<Event> {
        let xml = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><ListMetadataFormats><metadataFormat>\
            <metadataPrefix>oai_dc</metadataPrefix><schema>http://x.example/s.xsd</schema>\
            <metadataNamespace>http://x.example/</metadataNamespace></metadataFormat></ListMetadataFormats></OAI-PMH>";
        vec![Event::Body(xml.into()), Event::End(Box::new(self.summary()))]
    }

    /// The newest version of a record; of equal ones, the last.
    fn record(&self, identifier: &str) -> Vec<Event> {
        let lists = self.lists();
        let of_identifier = lists.records.iter().filter(|record| record.identifier == identifier);
        match of_identifier.max_by_key(|record| record.secs) {
            Some(record) => {
                let mut events = to_events(std::slice::from_ref(record));
                events.push(Event::End(Box::new(self.summary())));
                events
            }
            None => self.error(ErrorCode::IdDoesNotExist),
        }
    }

    /// A page of a list. Its token is the number of records before it, and the window.
    fn page(&self, request: &Request) -> Option<Vec<Event>> {
        let mut lists = self.lists();
        let mut fault = None;
        if request.verb() == Verb::ListRecords {
            lists.pages += 1;
            let page = lists.pages;
            fault = lists.faults.remove(&page);
            if let Some((_, records)) = lists.change_before.take_if(|(before, _)| *before == page) {
                lists.records = records;
            }
        }
        let token = request.argument(Argument::ResumptionToken);
        let (start, from, until) = match token {
            Some(token) => {
                let mut parts = token.split('/').map(|part| part.parse().ok());
                let mut next = || parts.next().flatten();
                (next().unwrap_or(0), next(), next())
            }
            None => {
                let secs = |argument| request.argument(argument).and_then(to_secs).map(|secs| secs.0);
                (0, secs(Argument::From), secs(Argument::Until))
            }
        };
        match fault {
            Some(Fault::Kill) => return None,
            Some(Fault::Forgotten) if token.is_some() => {
                return Some(self.error(ErrorCode::BadResumptionToken));
            }
            _ => {}
        }
        let is_listed = |record: &&Listed| {
            from.is_none_or(|from: i64| record.secs >= from)
                && until.is_none_or(|until: i64| record.secs <= until)
        };
        let all: Vec<Listed> = lists.records.iter().filter(is_listed).cloned().collect();
        if all.is_empty() {
            return Some(self.error(ErrorCode::NoRecordsMatch));
        }
        let start = usize::try_from(start).expect("a small number").min(all.len());
        let end = (start + lists.page_len).min(all.len());
        if fault == Some(Fault::Half) {
            let mut events = to_events(&all[start..start + (end - start) / 2]);
            let failure = Failure::new(Reason::ConnectionLost, "the connection is lost");
            events.push(Event::Failed(failure, Box::default()));
            return Some(events);
        }
        let mut events = to_events(&all[start..end]);
        let mut summary = self.summary();
        if end < all.len() {
            let part = |secs: Option<i64>| secs.map(|secs| secs.to_string()).unwrap_or_default();
            summary.page.token = Some(format!("{end}/{}/{}", part(from), part(until)));
        }
        events.push(Event::End(Box::new(summary)));
        Some(events)
    }
}

impl Repository for Source {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let request = request.request;
        let events = match request.verb() {
            Verb::Identify => Some(self.identify()),
            Verb::ListMetadataFormats => Some(self.formats()),
            Verb::ListSets => Some(self.error(ErrorCode::NoSetHierarchy)),
            Verb::GetRecord => Some(self.record(request.argument(Argument::Identifier).unwrap_or_default())),
            Verb::ListRecords | Verb::ListIdentifiers => self.page(&request),
        };
        let Some(events) = events else {
            self.killed.notify_one();
            let (sender, receiver) = mpsc::channel(1);
            return EventStream::new(receiver, Box::pin(async move { sender.closed().await }));
        };
        let (sender, receiver) = mpsc::channel(events.len());
        for event in events {
            sender.try_send(event).expect("there is room");
        }
        EventStream::new(receiver, futures::future::ready(()).boxed())
    }
}

fn to_events(records: &[Listed]) -> Vec<Event> {
    let event = |record: &Listed| {
        if record.is_broken {
            return Event::Quarantined(vec![QuarantinedRecord {
                identifier: Some(record.identifier.clone()),
                why: QuarantineReason::ALL[0].name(),
                offset: 0,
                raw: format!("{record:?}").into_bytes(),
            }]);
        }
        let datestamp = from_secs(UnixSecs(record.secs), Granularity::Second);
        let status = if record.title.is_none() { " status=\"deleted\"" } else { "" };
        let before =
            format!("<record><header{status}><identifier>{}</identifier><datestamp>", record.identifier);
        let content = record.title.as_ref().map(|title| format!("<metadata><t>{title}</t></metadata>"));
        let content = content.unwrap_or_default();
        Event::Records(vec![DeliveredRecord {
            identifier: record.identifier.clone(),
            datestamp_at: before.len()..before.len() + datestamp.len(),
            xml: format!("{before}{datestamp}</datestamp></header>{content}</record>"),
            datestamp,
            deleted: record.title.is_none(),
            set_specs: Vec::new(),
            repairs: RecordRepairs::default(),
        }])
    };
    records.iter().map(event).collect()
}

/// A mirror of the source.
pub(crate) struct Mirror {
    pub(crate) source: Arc<Source>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) settings: HarvestSettings,
    folder: tempfile::TempDir,
}

impl Mirror {
    pub(crate) fn new(policy: Duplicates, records: Vec<Listed>) -> Self {
        let clock = Arc::new(TestClock(AtomicI64::new(START_SECS)));
        let lists = Lists { records, page_len: 3, ..Lists::default() };
        let source = Source { lists: Mutex::new(lists), clock: Arc::clone(&clock), killed: Notify::new() };
        let settings = HarvestSettings {
            duplicates: policy,
            deletions: DeletionLimits { share_max: 1.0, records_min: 1_000 },
            ..HarvestSettings::default()
        };
        let folder = tempfile::tempdir().expect("a folder");
        Self { source: Arc::new(source), clock, settings, folder }
    }

    fn store(&self) -> Arc<dyn MirrorStore> {
        Arc::new(RecordLog::open(Path::new(self.folder.path())).expect("a store"))
    }

    async fn harvester(&self, store: &Arc<dyn MirrorStore>) -> Harvester {
        Harvester {
            id: "x".to_owned(),
            source: Arc::clone(&self.source) as Arc<dyn Repository>,
            store: Arc::clone(store),
            stamps: Arc::new(Stamps::open(Arc::clone(store)).await.expect("stamps")),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            via: "1.1 test".to_owned(),
            base_url: "http://mirror.example/x".to_owned(),
            turn: HarvestTurn::default(),
        }
    }

    /// Harvests, and continues after each end of the process, until a harvest ends.
    pub(crate) async fn harvest(&self) -> HarvestSummary {
        loop {
            let store = self.store();
            let harvester = self.harvester(&store).await;
            let ended = tokio::select! {
                summary = harvester.run(&self.settings, &|_| {}) => Some(summary.expect("a harvest")),
                () = self.source.killed.notified() => None,
            };
            store.close();
            if let Some(summary) = ended {
                self.clock.pass(2 * 86_400);
                return summary;
            }
        }
    }

    /// The titles of the live records, by their identifiers. The header of each record contains its identifier.
    pub(crate) async fn content(&self) -> BTreeMap<String, String> {
        let store = self.store();
        let filter = ListFilter {
            repository: "x".to_owned(),
            prefix: "oai_dc".to_owned(),
            live_only: true,
            ..ListFilter::default()
        };
        let query =
            ListQuery { filter, after: None, count_max: 10_000, bytes_max: usize::MAX, with_bytes: true };
        let page = store.list(query).await.expect("readable");
        store.close();
        let title = |record: oaimend_store::StoredRecord| {
            assert_eq!(record.status, RecordStatus::Live);
            let xml = String::from_utf8_lossy(&record.bytes).into_owned();
            assert!(xml.contains(&format!("<identifier>{}</identifier>", record.identifier)), "{xml}");
            let title = xml.split_once("<t>").and_then(|(_, rest)| rest.split_once("</t>"));
            (record.identifier, title.expect("a live record").0.to_owned())
        };
        page.records.into_iter().map(title).collect()
    }

    pub(crate) async fn is_equal_to_source(&self) -> bool {
        let store = self.store();
        let harvester = self.harvester(&store).await;
        let comparison = harvester.compare(&self.settings, "oai_dc").await.expect("a comparison");
        store.close();
        comparison.is_equal()
    }
}
