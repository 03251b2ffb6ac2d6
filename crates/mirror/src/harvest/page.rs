//! A repository that is harvested, and one page of it.

use crate::harvest::turns::HarvestTurn;
use crate::stamps::Stamps;
use bytes::Bytes;
use oaimend_base::clock::Clock;
use oaimend_oai::{Request, UnixSecs, datestamp};
use oaimend_repair::QuarantineReason;
use oaimend_repository::{
    DeliveredRecord, Event, Failure, HarvesterTraits, Reason, Repository, RepositoryRequest, ResponseSummary,
};
use oaimend_rules::{GAP_IDENTIFIER_BYTES_MAX, GAPS_MAX, MissingItem};
use oaimend_store::{
    DuplicateCounts, MirrorError, MirrorStore, NewRecord, QuarantinedRecord, RecordStatus, RepositoryId,
    content_hash,
};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

/// Harvests one repository into the store.
#[derive(Clone)]
pub struct Harvester {
    /// The id of the repository.
    pub id: String,
    /// The repository that is harvested.
    pub source: Arc<dyn Repository>,
    /// The store.
    pub store: Arc<dyn MirrorStore>,
    /// The stamps of the store.
    pub stamps: Arc<Stamps>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The `Via` header for the source.
    pub via: String,
    /// The baseURL in stored descriptions.
    pub base_url: String,
    /// Its turn among other harvests.
    pub turn: HarvestTurn,
}

/// Longest response that is held in one piece, in bytes: Identify, and lists of formats and sets.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// Why a harvest ends early.
#[derive(Debug)]
pub(crate) enum Interruption {
    /// The source failed.
    Source(Failure),
    /// The store failed.
    Store(MirrorError),
}

impl From<MirrorError> for Interruption {
    fn from(error: MirrorError) -> Self {
        Self::Store(error)
    }
}

/// A page that was received.
pub(crate) struct ReceivedPage {
    /// The number of its records.
    pub(crate) count: u64,
    /// Items that are missing: in quarantine, too long, or beyond a limit of the store.
    pub(crate) missing: MissingItems,
    /// The records whose identifier came before in the lists.
    pub(crate) duplicates: DuplicateCounts,
    /// The known gaps whose records are on this page.
    pub(crate) recovered: Vec<String>,
    pub(crate) summary: ResponseSummary,
    /// Our clock when the request was sent, in seconds since 1970.
    pub(crate) sent_at_secs: UnixSecs,
    /// A datestamp before `from`, and one after `until` of the request.
    pub(crate) outside: Outside,
    /// The hash of the identifiers so far.
    identifiers: DefaultHasher,
}

/// Whether records of a page are outside the requested window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outside {
    pub(crate) before: bool,
    pub(crate) after: bool,
}

impl Harvester {
    /// The key of its records in the store.
    pub(crate) fn repository(&self) -> RepositoryId<'_> {
        RepositoryId(&self.id)
    }

    pub(crate) fn now_secs(&self) -> UnixSecs {
        self.clock.now_secs()
    }

    /// Pauses before the next request. Returns whether other harvests had their turns meanwhile.
    pub(crate) async fn pause(&self, time: Duration) -> bool {
        self.turn.pause(time, &*self.clock).await
    }

    pub(crate) fn request(&self, request: Request, reports_records: bool) -> RepositoryRequest {
        let echo = Arc::new(request.to_echo(&self.base_url));
        let (via, harvester) = (self.via.clone(), HarvesterTraits::OF_MIRROR);
        RepositoryRequest { request, echo, via, harvester, in_one_piece: false, reports_records }
    }

    /// The whole response to a request, and its summary.
    pub(crate) async fn document(&self, request: Request) -> Result<(Bytes, ResponseSummary), Interruption> {
        let mut events = self.source.answer(self.request(request, false));
        let mut body = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Event::Body(piece) if body.len() + piece.len() > DOCUMENT_BYTES_MAX => {
                    let details = format!("{} sent a description of itself longer than 16 MiB", self.id);
                    return Err(Interruption::Source(Failure::new(Reason::TooLarge, details)));
                }
                Event::Body(piece) => body.extend_from_slice(&piece),
                Event::End(summary) => return Ok((body.into(), *summary)),
                Event::Failed(failure, _) => return Err(Interruption::Source(failure)),
                Event::Head(_) | Event::Records(_) | Event::Quarantined(_) => {}
            }
        }
        Err(Interruption::Source(stopped(&self.id)))
    }

    /// Receives a page of headers, and returns them too. Nothing of it is stored.
    pub(crate) async fn receive_headers(
        &self,
        request: Request,
    ) -> Result<(Vec<NewRecord>, ReceivedPage), Interruption> {
        let mut page = ReceivedPage::new(self.now_secs());
        let mut headers = Vec::new();
        let mut events = self.source.answer(self.request(request, true));
        while let Some(event) = events.next().await {
            match event {
                Event::Records(records) => {
                    for record in records {
                        page.note_record(&record.identifier);
                        headers.push(to_new_record(record));
                    }
                }
                Event::Quarantined(items) => page.missing.add_quarantined(items),
                Event::End(summary) => {
                    page.summary = *summary;
                    return Ok((headers, page));
                }
                Event::Failed(_, summary) if summary.end.has_only_quarantined => {
                    page.summary = *summary;
                    return Ok((headers, page));
                }
                Event::Failed(failure, _) => return Err(Interruption::Source(failure)),
                Event::Head(_) | Event::Body(_) => {}
            }
        }
        Err(Interruption::Source(stopped(&self.id)))
    }
}

impl ReceivedPage {
    pub(crate) fn new(sent_at_secs: UnixSecs) -> Self {
        Self {
            count: 0,
            missing: MissingItems::default(),
            duplicates: DuplicateCounts::default(),
            recovered: Vec::new(),
            summary: ResponseSummary::default(),
            sent_at_secs,
            outside: Outside::default(),
            identifiers: DefaultHasher::new(),
        }
    }

    /// Counts a record.
    pub(crate) fn note_record(&mut self, identifier: &str) {
        self.count += 1;
        identifier.hash(&mut self.identifiers);
    }

    /// The hash of the identifiers of its records, in their order; `None` without a record.
    pub(crate) fn identifiers_hash(&self) -> Option<u64> {
        (self.count > 0).then(|| self.identifiers.finish())
    }
}

impl Outside {
    pub(crate) fn note(
        &mut self,
        datestamp_secs: UnixSecs,
        (from, until): (Option<UnixSecs>, Option<UnixSecs>),
    ) {
        // Sources may compare in their own time zone.
        self.before |= from.is_some_and(|from| datestamp_secs < from.minus(ZONE_SECS_MAX));
        self.after |= until.is_some_and(|until| datestamp_secs > until.plus(ZONE_SECS_MAX));
    }
}

/// Largest difference between a time zone and UTC that is accepted, in seconds: a day and a half.
const ZONE_SECS_MAX: i64 = 36 * 3_600;

/// The record for the store. A datestamp that is not legal counts as the earliest one.
pub(crate) fn to_new_record(record: DeliveredRecord) -> NewRecord {
    let status = if record.deleted { RecordStatus::Deleted } else { RecordStatus::Live };
    let xml = record.xml.as_bytes();
    let (before, after) = (xml.get(..record.datestamp_at.start), xml.get(record.datestamp_at.end..));
    let content = [before.unwrap_or(xml), after.unwrap_or_default()];
    NewRecord {
        content_hash: content_hash(status, &record.set_specs, &content),
        identifier: record.identifier,
        datestamp_secs: datestamp::to_secs(&record.datestamp).unwrap_or_default(),
        set_specs: record.set_specs,
        status,
        bytes: record.xml.into(),
        repairs: record.repairs,
    }
}

pub(crate) fn stopped(id: &str) -> Failure {
    Failure::new(Reason::Incomplete, format!("the response of {id} stopped without an end"))
}

/// The items that are missing on a page.
#[derive(Debug, Default)]
pub(crate) struct MissingItems {
    /// The first [`GAPS_MAX`] items, with the hash of their bytes; `None` without bytes of the item.
    pub(crate) items: Vec<(MissingItem, Option<u64>)>,
    /// The number of the other ones.
    pub(crate) more: u64,
    /// Whether a request for the identifier of an item can return another record, so that only a list shows the item.
    pub(crate) are_unnamed: bool,
}

impl MissingItems {
    /// The number of missing items.
    pub(crate) fn count(&self) -> u64 {
        (self.items.len() as u64).saturating_add(self.more)
    }

    /// Adds items that cannot be repaired.
    pub(crate) fn add_quarantined(&mut self, items: Vec<QuarantinedRecord>) {
        for item in items {
            let hash = hash_of(&item.raw);
            // A record for which the request failed has no bytes: the raw ones are those of an error page.
            let is_item = QuarantineReason::from_name(item.why).is_some();
            let is_whole = is_item && item.why != QuarantineReason::Truncated.name();
            self.add(item.plain_identifier().as_deref(), hash, is_whole.then_some(hash));
        }
    }

    /// Adds a record that exceeds a limit of the store.
    pub(crate) fn add_unfit(&mut self, id: &str, record: NewRecord, limit: &MirrorError) {
        let shown: String = record.identifier.chars().take(IDENTIFIER_CHARS_SHOWN).collect();
        tracing::warn!(repo = id, record = shown, details = %limit, "a record cannot be stored");
        self.add(Some(&record.identifier), record.content_hash, Some(record.content_hash));
    }

    /// Adds a record of which the mirror cannot store another one with the same identifier.
    pub(crate) fn add_unplaced(&mut self, record: &NewRecord) {
        self.add(None, record.content_hash, Some(record.content_hash));
    }

    /// Adds a record that was stored, and whose place another record has taken since. `hash` is that of its content.
    pub(crate) fn add_displaced(&mut self, hash: u64) {
        self.add(None, hash, Some(hash));
    }

    fn add(&mut self, identifier: Option<&str>, name_hash: u64, bytes: Option<u64>) {
        if self.items.len() >= GAPS_MAX {
            self.more += 1;
            return;
        }
        let item = match identifier {
            Some(identifier) if is_gap_name(identifier) && !self.are_unnamed => {
                MissingItem::Named(identifier.to_owned())
            }
            // The same error page can be all that is known of several records.
            Some(identifier) => MissingItem::Unnamed(name_hash ^ hash_of(identifier.as_bytes())),
            None => MissingItem::Unnamed(name_hash),
        };
        self.items.push((item, bytes));
    }
}

/// Maximum number of characters of an identifier in the log.
const IDENTIFIER_CHARS_SHOWN: usize = 200;

impl ReceivedPage {
    /// Counts the items of a whole page that were too long to be reported. They are known by their place.
    pub(crate) fn note_oversized(&mut self) {
        let page = self.identifiers_hash().unwrap_or_default();
        for number in 0..self.summary.items.oversized() {
            let hash = hash_of(format!("{page} {number}").as_bytes());
            self.missing.add(None, hash, Some(hash));
        }
    }
}

/// Whether a record can be requested alone by this identifier.
pub(crate) fn is_gap_name(identifier: &str) -> bool {
    (1..=GAP_IDENTIFIER_BYTES_MAX).contains(&identifier.len())
}

fn hash_of(bytes: &[u8]) -> u64 {
    content_hash(RecordStatus::Live, &[], &[bytes])
}
