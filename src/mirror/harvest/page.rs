//! One page of a list: requested from the repository, and stored in parts of bounded size.

use crate::clock::{self, Clock};
use crate::mirror::stamps::Stamps;
use crate::oai::Request;
use crate::oai::datestamp;
use crate::repository::{Account, DeliveredRecord, Event, Failure, Reason, Repository, RepositoryRequest};
use crate::store::{
    Committed, HarvestProgress, MirrorError, MirrorStore, NewRecord, PageCommit, RecordStatus, content_hash,
};
use bytes::Bytes;
use std::sync::Arc;

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
}

/// Records that wait for a commit, in bytes of XML.
const COMMIT_BYTES_MAX: usize = 16 << 20;
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

/// A page that was received and stored, except the records of its last part.
pub(crate) struct ReceivedPage {
    /// The records that are not stored yet.
    pub(crate) records: Vec<NewRecord>,
    /// The number of all records of the page.
    pub(crate) count: u64,
    /// Items that are missing: in quarantine, or too long.
    pub(crate) missing: u64,
    pub(crate) account: Account,
    /// Our clock when the request was sent, in seconds since 1970.
    pub(crate) sent_at_secs: i64,
    /// A datestamp before `from`, and one after `until` of the request.
    pub(crate) outside: Outside,
}

/// Whether records of a page are outside the requested window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outside {
    pub(crate) before: bool,
    pub(crate) after: bool,
}

impl Harvester {
    pub(crate) fn now_secs(&self) -> i64 {
        i64::try_from(clock::secs(self.clock.now())).unwrap_or(i64::MAX)
    }

    fn request(&self, request: Request, reports_records: bool) -> RepositoryRequest {
        let own = Arc::new(request.to_echo(&self.base_url));
        RepositoryRequest { request, own, via: self.via.clone(), in_one_piece: false, reports_records }
    }

    /// The whole response to a request, and its account.
    pub(crate) async fn document(&self, request: Request) -> Result<(Bytes, Account), Interruption> {
        let mut events = self.source.answer(self.request(request, false));
        let mut body = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Event::Body(piece) if body.len() + piece.len() > DOCUMENT_BYTES_MAX => {
                    let details = format!("{} sent a description of itself longer than 16 MiB", self.id);
                    return Err(Interruption::Source(Failure::new(Reason::TooLarge, details)));
                }
                Event::Body(piece) => body.extend_from_slice(&piece),
                Event::End(account) => return Ok((body.into(), *account)),
                Event::Failed(failure, _) => return Err(Interruption::Source(failure)),
                Event::Head(_) | Event::Records(_) | Event::Quarantined(_) => {}
            }
        }
        Err(Interruption::Source(stopped(&self.id)))
    }

    /// Receives a page of a list. Full parts of it are stored with the unchanged progress, whose revision is
    /// updated. `window` is the requested one, in seconds since 1970.
    pub(crate) async fn receive_page(
        &self,
        request: Request,
        prefix: &str,
        window: (Option<i64>, Option<i64>),
        progress: &mut HarvestProgress,
        counts: &mut Committed,
    ) -> Result<ReceivedPage, Interruption> {
        let mut page = ReceivedPage::new(self.now_secs());
        let mut held_bytes = 0;
        let mut events = self.source.answer(self.request(request, true));
        while let Some(event) = events.next().await {
            match event {
                Event::Records(records) => {
                    for record in records {
                        held_bytes += record.xml.len();
                        page.count += 1;
                        let record = to_new_record(record);
                        page.outside.note(record.datestamp_secs, window);
                        page.records.push(record);
                    }
                    if held_bytes >= COMMIT_BYTES_MAX {
                        let records = std::mem::take(&mut page.records);
                        self.commit(prefix, records, progress, counts).await?;
                        held_bytes = 0;
                    }
                }
                Event::Quarantined(items) => page.missing += items.len() as u64,
                Event::End(account) => {
                    page.missing += account.oversized;
                    page.account = *account;
                    return Ok(page);
                }
                Event::Failed(failure, _) => return Err(Interruption::Source(failure)),
                Event::Head(_) | Event::Body(_) => {}
            }
        }
        Err(Interruption::Source(stopped(&self.id)))
    }

    /// Receives a page of headers. Nothing of it is stored.
    pub(crate) async fn receive_headers(&self, request: Request) -> Result<ReceivedPage, Interruption> {
        let mut page = ReceivedPage::new(self.now_secs());
        let mut events = self.source.answer(self.request(request, true));
        while let Some(event) = events.next().await {
            match event {
                Event::Records(records) => page.records.extend(records.into_iter().map(to_new_record)),
                Event::Quarantined(items) => page.missing += items.len() as u64,
                Event::End(account) => {
                    page.account = *account;
                    return Ok(page);
                }
                Event::Failed(failure, _) => return Err(Interruption::Source(failure)),
                Event::Head(_) | Event::Body(_) => {}
            }
        }
        Err(Interruption::Source(stopped(&self.id)))
    }

    /// Stores records together with the progress, and updates its revision.
    pub(crate) async fn commit(
        &self,
        prefix: &str,
        records: Vec<NewRecord>,
        progress: &mut HarvestProgress,
        counts: &mut Committed,
    ) -> Result<(), Interruption> {
        let page = PageCommit {
            repository: self.id.clone(),
            prefix: prefix.to_owned(),
            stamp_secs: 0,
            records,
            progress: progress.clone(),
        };
        let committed = self.stamps.commit(page, self.now_secs()).await?;
        progress.revision = committed.revision;
        counts.add(committed);
        Ok(())
    }
}

impl ReceivedPage {
    fn new(sent_at_secs: i64) -> Self {
        Self {
            records: Vec::new(),
            count: 0,
            missing: 0,
            account: Account::default(),
            sent_at_secs,
            outside: Outside::default(),
        }
    }
}

impl Outside {
    fn note(&mut self, datestamp_secs: i64, (from, until): (Option<i64>, Option<i64>)) {
        // Sources may compare in their own time zone.
        self.before |= from.is_some_and(|from| datestamp_secs < from.saturating_sub(ZONE_SECS_MAX));
        self.after |= until.is_some_and(|until| datestamp_secs > until.saturating_add(ZONE_SECS_MAX));
    }
}

/// Largest difference between a time zone and UTC that is accepted, in seconds: a day and a half.
const ZONE_SECS_MAX: i64 = 36 * 3_600;

/// The record for the store. A datestamp that is not legal counts as the earliest one.
fn to_new_record(record: DeliveredRecord) -> NewRecord {
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
    }
}

fn stopped(id: &str) -> Failure {
    Failure::new(Reason::Incomplete, format!("the response of {id} stopped without an end"))
}
