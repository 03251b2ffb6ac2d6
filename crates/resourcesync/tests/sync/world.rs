//! A mirror whose records change, and its ResourceSync documents.

use oaimend_oai::UnixSecs;
use oaimend_resourcesync::{
    FormatAddress, Limits, ListDocument, ListUrls, PartStream, Resources, SyncError, SyncTarget,
    SyncedCollection, capability_list,
};
use oaimend_rules::{PendingCommit, StampClock};
use oaimend_store::{
    CompleteHarvest, MirrorError, MirrorStore, NewRecord, PageCommit, Prefix, RecordRepairs, RecordStatus,
    RepositoryId, StoredRecord, content_hash,
};
use oaimend_store_local::RecordLog;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

pub(crate) const BASE: &str = "http://mirror.example";
const PART_RECORDS: u64 = 4;
const WHOLE_CHANGES: usize = 8;

/// The metadata of the test are the bytes of the records.
#[derive(Debug)]
pub(crate) struct Bodies;

impl Resources for Bodies {
    fn url(&self, identifier: &str) -> String {
        url(identifier)
    }

    fn record_url(&self, identifier: &str) -> String {
        format!("{BASE}/x?identifier={identifier}")
    }

    fn metadata(&self, record: &StoredRecord) -> Result<Option<String>, MirrorError> {
        let text = String::from_utf8_lossy(&record.bytes).into_owned();
        Ok(if text.is_empty() { None } else { Some(text) })
    }

    fn media_type(&self) -> &'static str {
        "application/xml"
    }
}

/// The URL of a record, in which each byte is readable.
pub(crate) fn url(identifier: &str) -> String {
    let encoded: String = identifier.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{BASE}/x/record/{encoded}?raw=p")
}

pub(crate) fn urls() -> ListUrls {
    let format = FormatAddress { repository: "x".to_owned(), prefix: "p".to_owned() };
    ListUrls { base: BASE.to_owned(), format, repository: format!("{BASE}/x") }
}

/// See the module.
pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) store: Arc<RecordLog>,
    clock: StampClock,
    pub(crate) now_secs: i64,
    pub(crate) random: fastrand::Rng,
    /// The content of each record by its URL; `None`: it is deleted.
    records: BTreeMap<String, Option<String>>,
    identifiers: Vec<String>,
    /// A commit that has its stamp and is not visible yet.
    begun: Option<(PendingCommit, Vec<NewRecord>)>,
    /// Whether records change while a destination reads.
    pub(crate) is_quiet: bool,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(RecordLog::open(folder.path()).expect("a store"));
        let mut clock = StampClock::resume(None, None);
        clock.reserve(UnixSecs::MAX);
        let hostile = ["../../etc/passwd", "/etc/passwd", "C:\\x", "a b?c#d&e%2F", "é漢", "<x y='\"'/>", "."];
        let identifiers = hostile.into_iter().map(str::to_owned).chain((0..20).map(|n| format!("oai:x:{n}")));
        Self {
            folder,
            store,
            clock,
            now_secs: 1_700_000_000,
            random: fastrand::Rng::with_seed(seed),
            records: BTreeMap::new(),
            identifiers: identifiers.collect(),
            begun: None,
            is_quiet: false,
        }
    }

    /// The content of all resources by their URLs.
    pub(crate) fn resources(&self) -> BTreeMap<String, String> {
        let live = self.records.iter().filter_map(|(url, text)| Some((url.clone(), text.clone()?)));
        live.filter(|(_, text)| !text.is_empty()).collect()
    }

    /// What a GET of a resource answers now; `None`: it is not there.
    pub(crate) fn resource(&self, url: &str) -> Option<String> {
        self.records.get(url).cloned().flatten().filter(|text| !text.is_empty())
    }

    fn new_record(&mut self) -> NewRecord {
        let identifier = self.random.choice(&self.identifiers).expect("there are some").clone();
        let text = match self.random.u8(..10) {
            0..=2 => None,
            // A record without metadata.
            3 => Some(String::new()),
            _ => Some(format!("<a>{}</a>", self.random.u32(..1_000_000))),
        };
        let status = if text.is_some() { RecordStatus::Live } else { RecordStatus::Deleted };
        let bytes = text.unwrap_or_default().into_bytes();
        NewRecord {
            identifier,
            datestamp_secs: UnixSecs(0),
            set_specs: Vec::new(),
            status,
            content_hash: content_hash(status, &[], &[&bytes]),
            bytes: bytes.into(),
            repairs: RecordRepairs::default(),
        }
    }

    /// Stores records with this stamp.
    async fn store_records(&mut self, stamp_secs: UnixSecs, records: Vec<NewRecord>) {
        let (repository, prefix) = ("x".to_owned(), "p".to_owned());
        let mut progress = self.store.progress(RepositoryId("x"), Prefix("p")).await.expect("readable");
        progress.last_complete = Some(CompleteHarvest { from_secs: UnixSecs(0), lead_secs: 0 });
        for record in &records {
            let text = String::from_utf8_lossy(&record.bytes).into_owned();
            let text = if record.status == RecordStatus::Live { Some(text) } else { None };
            self.records.insert(url(&record.identifier), text);
        }
        let page = PageCommit { repository, prefix, stamp_secs, records, progress, occurrences: Vec::new() };
        self.store.commit(page).await.expect("the commit is in order");
    }

    /// Commits records, or begins or ends a commit, or passes time, or nothing of it.
    pub(crate) async fn disturb(&mut self) {
        // Each commit waits for the disk.
        if self.is_quiet || self.random.u8(..3) > 0 {
            return;
        }
        self.now_secs += match self.random.u8(..8) {
            0 => -3,
            1..=3 => 1,
            _ => 0,
        };
        if let Some((commit, records)) = self.begun.take() {
            self.store_records(commit.stamp_secs(), records).await;
            self.clock.finish_commit(commit);
            return;
        }
        let records: Vec<NewRecord> = (0..self.random.usize(..4)).map(|_| self.new_record()).collect();
        // The store takes the last record with an identifier.
        let records: BTreeMap<String, NewRecord> =
            records.into_iter().map(|record| (record.identifier.clone(), record)).collect();
        let records: Vec<NewRecord> = records.into_values().collect();
        let commit = self.clock.begin_commit(UnixSecs(self.now_secs));
        if self.random.bool() {
            self.begun = Some((commit, records));
        } else {
            self.store_records(commit.stamp_secs(), records).await;
            self.clock.finish_commit(commit);
        }
    }

    /// Ends all changes, and passes the time that makes them visible in lists.
    pub(crate) async fn settle(&mut self) {
        while self.begun.is_some() {
            self.disturb().await;
        }
        self.is_quiet = true;
        self.now_secs += 60;
    }

    /// Commits this many records, with numbers from 0 on as identifiers.
    pub(crate) async fn fill(&mut self, count: usize) {
        self.fill_numbers(0..count).await;
    }

    /// Commits records with these identifiers.
    pub(crate) async fn fill_numbers(&mut self, numbers: Range<usize>) {
        let records = numbers.map(|number| NewRecord { identifier: number.to_string(), ..self.new_record() });
        let records: Vec<NewRecord> = records.collect();
        let commit = self.clock.begin_commit(UnixSecs(self.now_secs));
        self.store_records(commit.stamp_secs(), records).await;
        self.clock.finish_commit(commit);
    }

    /// Damages all records on disk, so that the next read of one finds it.
    pub(crate) fn damage(&self) {
        for file in std::fs::read_dir(self.folder.path().join("mirror")).expect("readable") {
            let path = file.expect("readable").path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let bytes = std::fs::read(&path).expect("readable");
                let damaged: Vec<u8> = bytes.into_iter().map(|byte| !byte).collect();
                std::fs::write(path, damaged).expect("writable");
            }
        }
    }

    pub(crate) async fn open(&mut self) -> Result<SyncedCollection, SyncError> {
        let times = self.clock.begin_list(UnixSecs(self.now_secs)).expect("the time is reserved");
        let store = Arc::clone(&self.store) as Arc<dyn MirrorStore>;
        let part_records_max = NonZeroU64::new(PART_RECORDS).expect("it is not zero");
        let limits = Limits { part_records_max, whole_changes_max: WHOLE_CHANGES, ..Limits::default() };
        SyncedCollection::open(store, ("x", "p"), times.response_date_secs, limits).await
    }

    /// The response to a request for a document.
    pub(crate) async fn get(&mut self, url: &str) -> Result<Vec<u8>, SyncError> {
        self.disturb().await;
        let segments: Vec<&str> = url.strip_prefix(BASE).expect("ours").split('/').collect();
        let ["", repository, "resourcesync", prefix, name] = segments[..] else { panic!("{url}") };
        let target = SyncTarget::read(repository, prefix, name).expect("a document");
        let collection = self.open().await?;
        // The store may have later records than the position.
        self.disturb().await;
        let resources = Arc::new(Bodies);
        let mut part = match target {
            SyncTarget::SourceDescription => panic!("it is at another place"),
            SyncTarget::CapabilityList(_) => return Ok(capability_list(&urls(), BASE).into_bytes()),
            SyncTarget::List(_, kind) => {
                match ListDocument::of(&collection, kind, &urls(), resources).await? {
                    ListDocument::Parts(xml) => return Ok(xml.into_bytes()),
                    ListDocument::Records(part) => *part,
                }
            }
            SyncTarget::Part(_, kind, part) => {
                PartStream::of_part(&collection, (kind, part), &urls(), resources).await?
            }
        };
        let mut body = Vec::new();
        while let Some(piece) = part.next_piece().await? {
            body.extend_from_slice(&piece);
            self.disturb().await;
        }
        Ok(body)
    }
}
