//! The summary of a response: its items and their repairs, its page and how it ended.

use crate::Secrets;
use crate::failure::Failure;
use oaimend_oai::{ErrorCode, UnixSecs};
use oaimend_repair::{Outcome, Repair, RepairCounts, RepairId, Summary};
use oaimend_store::{Excerpt, RecordRepair, plain_identifier};
use std::collections::VecDeque;

/// The summary of the response to a request of a harvester. It counts all attempts at the source.
#[derive(Clone, Debug, Default)]
pub struct ResponseSummary {
    /// The items and their repairs.
    pub items: ItemCounts,
    /// What the response says.
    pub page: PageFacts,
    /// How the response ended.
    pub end: ResponseOutcome,
    attempts: u32,
    set_collisions: u64,
}

/// Counts the items of a response and their repairs.
#[derive(Clone, Debug, Default)]
pub struct ItemCounts {
    sent: u64,
    repaired: u64,
    quarantined: u64,
    oversized: u64,
    repairs: RepairCounts,
    /// The last repairs, oldest first.
    last_repairs: VecDeque<RepairMade>,
}

/// What a response says about its page and its list.
#[derive(Clone, Debug, Default)]
pub struct PageFacts {
    /// Protocol version of the source's response.
    pub version: Option<&'static str>,
    /// `responseDate` of the page.
    pub response_date: Option<String>,
    /// The HTTP header `Date` of the source, in seconds since 1970.
    pub http_date_secs: Option<UnixSecs>,
    /// The highest datestamp of the page.
    pub latest_datestamp: Option<String>,
    /// The fields of the response to `Identify`.
    pub identify: Option<IdentifyFields>,
    /// The code of the error, if the response is one.
    pub error: Option<ErrorCode>,
    /// The resumptionToken of the page, if the list continues.
    pub token: Option<String>,
    /// `expirationDate` of the token on the page, as written in the XML.
    pub token_expires: Option<String>,
    /// `cursor` and `completeListSize` of the page, as received.
    pub progress: (Option<u64>, Option<u64>),
    /// `totalElements` of the token: the number of all records of the source in the format.
    pub total_elements: Option<u64>,
    /// Whether the page may be another one for other harvests, because the token of the request leads to several pages,
    /// or the list was restarted.
    pub is_ambiguous: bool,
    /// Whether the page was filtered by the window of its list: the same token may belong to a list with
    /// another window.
    pub within_a_window: bool,
}

/// How a response ended.
#[derive(Clone, Debug, Default)]
pub struct ResponseOutcome {
    /// The outcome of the last attempt; `None` without a response to repair.
    pub outcome: Option<Outcome>,
    /// Whether the page was whole, and all its items are in quarantine. Such a page is a failure for harvesters.
    pub has_only_quarantined: bool,
    /// Whether the last token of the source was removed from the page, because all items of the list were delivered and
    /// the token fails. What such a list does not contain may still exist.
    pub has_concluded_end: bool,
    /// Why the response ends with a token of ours, if it does.
    pub continued: Option<Failure>,
    /// Why the mirror answered in place of the source, if it did.
    pub failed_over: Option<Failure>,
}

/// The fields of an Identify response that describe its repository. A missing field is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentifyFields {
    /// `earliestDatestamp`.
    pub earliest_datestamp: String,
    /// `deletedRecord`.
    pub deleted_record: String,
    /// `granularity`.
    pub granularity: String,
}

/// One repair, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairMade {
    /// Its name.
    pub name: &'static str,
    /// Its offset, in bytes of the text.
    pub offset: u64,
    /// Identifier of the item, as text; in a list of sets its setSpec.
    pub record: Option<String>,
    /// The original bytes.
    pub original: Excerpt,
    /// The bytes in their place.
    pub replacement: Excerpt,
}

impl ResponseSummary {
    /// Counts a request to the source.
    pub fn add_attempt(&mut self) {
        self.attempts += 1;
    }

    /// The requests to the source.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Counts setSpecs that two sets of the source share.
    pub fn add_set_collisions(&mut self, count: usize) {
        self.set_collisions += count as u64;
    }

    /// The setSpecs that two sets of the source share.
    pub fn set_collisions(&self) -> u64 {
        self.set_collisions
    }

    /// Forgets a response of which nothing was sent, and keeps the number of attempts.
    pub fn forget_response(&mut self) {
        *self = Self { attempts: self.attempts, ..Self::default() };
    }

    /// Notes the outcome of an attempt.
    pub fn note(&mut self, summary: &Summary) {
        self.end.outcome = Some(summary.outcome);
        self.page.version = summary.version.or(self.page.version);
    }
}

impl ItemCounts {
    /// Counts items that were sent, and how many of them were repaired.
    pub fn add_sent(&mut self, sent: u64, repaired: u64) {
        self.sent += sent;
        self.repaired += repaired;
    }

    /// Sets the number of items that were sent, if another response is sent in place of one that failed.
    pub fn set_sent(&mut self, sent: u64) {
        self.sent = sent;
    }

    /// Counts quarantined items.
    pub fn add_quarantined(&mut self, count: u64) {
        self.quarantined += count;
    }

    /// Counts items that are too long to be reported as records.
    pub fn add_oversized(&mut self, count: u64) {
        self.oversized += count;
    }

    /// Counts a repair, and keeps it if people may want to see it.
    pub fn add_repair(&mut self, id: RepairId, made: Option<RepairMade>) {
        self.repairs.add(id);
        let Some(made) = made else { return };
        if self.last_repairs.len() == REPAIRS_KEPT {
            self.last_repairs.pop_front();
        }
        self.last_repairs.push_back(made);
    }

    /// Items that were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Items that were sent with repairs.
    pub fn repaired(&self) -> u64 {
        self.repaired
    }

    /// Items that were sent without repairs.
    pub fn passed(&self) -> u64 {
        self.sent.saturating_sub(self.repaired)
    }

    /// Quarantined items.
    pub fn quarantined(&self) -> u64 {
        self.quarantined
    }

    /// Items that were sent or quarantined.
    pub fn delivered(&self) -> u64 {
        self.sent + self.quarantined
    }

    /// Items that were too long to be reported as records: they are in the body only.
    pub fn oversized(&self) -> u64 {
        self.oversized
    }

    /// The number of each repair, rewrites included.
    pub fn repairs(&self) -> &RepairCounts {
        &self.repairs
    }

    /// The number of repairs, without rewrites.
    pub fn repairs_made(&self) -> u64 {
        self.repairs.iter().filter(|(id, _)| !id.is_rewrite()).map(|(_, count)| count).sum()
    }

    /// The last repairs, oldest first.
    pub fn last_repairs(&self) -> impl Iterator<Item = &RepairMade> {
        self.last_repairs.iter()
    }
}

impl PageFacts {
    /// Notes the `responseDate` of a page. That of the first page counts.
    pub fn note_response_date(&mut self, date: &str) {
        if self.response_date.is_none() && !date.is_empty() {
            self.response_date = Some(date.to_owned());
        }
    }

    /// Notes the HTTP date of a response. That of the first one counts.
    pub fn note_http_date(&mut self, date_secs: Option<UnixSecs>) {
        self.http_date_secs = self.http_date_secs.or(date_secs);
    }

    /// Notes the datestamp of an item.
    pub fn note_datestamp(&mut self, datestamp: &str) {
        if self.latest_datestamp.as_deref().is_none_or(|latest| latest < datestamp) {
            self.latest_datestamp = Some(datestamp.to_owned());
        }
    }
}

impl RepairMade {
    /// `None` for a rewrite, which is no repair. The texts are without the secrets, which the source may echo.
    pub fn from_repair(repair: &Repair<'_>, secrets: &Secrets) -> Option<Self> {
        (!repair.id.is_rewrite()).then(|| Self {
            name: repair.id.name(),
            offset: repair.offset,
            record: repair.record.map(|bytes| plain_identifier(&String::from_utf8_lossy(bytes)).into_owned()),
            original: Excerpt::new(&secrets.mask(repair.original)),
            replacement: Excerpt::new(&secrets.mask(repair.replacement)),
        })
    }
}

impl From<&RepairMade> for RecordRepair {
    fn from(made: &RepairMade) -> Self {
        Self { name: made.name.to_owned(), before: made.original.clone(), after: made.replacement.clone() }
    }
}

/// Last repairs of a request that are kept for operators.
const REPAIRS_KEPT: usize = 50;
