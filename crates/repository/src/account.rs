//! Counts the items, the repairs and the exchanges of one request.

use crate::Secrets;
use crate::failure::Failure;
use oaimend_oai::ErrorCode;
use oaimend_repair::{Outcome, Repair, RepairCounts, RepairId, Summary};
use oaimend_store::{Excerpt, RecordRepair};
use std::collections::VecDeque;

/// The result of a request.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The outcome of the last attempt; `None` without a response to repair.
    pub outcome: Option<Outcome>,
    /// Protocol version of the source's response.
    pub version: Option<&'static str>,
    /// Items that were sent.
    pub records: u64,
    /// Items that were sent with repairs.
    pub repaired: u64,
    /// Quarantined items.
    pub quarantined: u64,
    /// Items that were fetched again by themselves, in place of broken ones.
    pub recalled: u64,
    /// setSpecs that two sets of the source share.
    pub set_collisions: u64,
    /// Listed items that the source does not know any more.
    pub withdrawn: u64,
    /// The number of each repair.
    pub counts: RepairCounts,
    /// The last repairs, oldest first.
    pub repairs: VecDeque<RepairMade>,
    /// Requests to the source.
    pub attempts: u32,
    /// `cursor` and `completeListSize` of the page, as received.
    pub progress: (Option<u64>, Option<u64>),
    /// `totalElements` of the token: the number of all records of the source in the format.
    pub total_elements: Option<u64>,
    /// `responseDate` of the page.
    pub response_date: Option<String>,
    /// The HTTP header `Date` of the source, in seconds since 1970.
    pub http_date_secs: Option<i64>,
    /// The highest datestamp of the page.
    pub latest_datestamp: Option<String>,
    /// The resumptionToken of the page, if the list continues.
    pub token: Option<String>,
    /// Items that were too long to be reported as records: they are in the body only.
    pub oversized: u64,
    /// Whether the page was whole, and all its items are in quarantine. Such a page is a failure for harvesters.
    pub has_only_quarantined: bool,
    /// The fields of the response to `Identify`.
    pub identify: Option<IdentifyFields>,
    /// The code of the error, if the response is one.
    pub error: Option<ErrorCode>,
    /// `expirationDate` of the token on the page, as written in the XML.
    pub token_expires: Option<String>,
    /// Whether the last token of the source was removed from the page, because all items of the list were delivered and
    /// the token fails. What such a list does not contain may still exist.
    pub has_concluded_end: bool,
    /// Whether the page may be another one for other harvests, because the token of the request leads to several pages,
    /// or the list was restarted.
    pub is_ambiguous: bool,
    /// Whether the page was filtered by the window of its list: the same token may belong to a list with
    /// another window.
    pub within_a_window: bool,
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
    /// Identifier of the item.
    pub record: Option<String>,
    /// The original bytes.
    pub original: Excerpt,
    /// The bytes in their place.
    pub replacement: Excerpt,
}

impl Account {
    /// The number of repairs, without rewrites.
    pub fn repairs_made(&self) -> u64 {
        self.counts.iter().filter(|(id, _)| !id.is_rewrite()).map(|(_, count)| count).sum()
    }

    /// Items that were sent or quarantined.
    pub fn items(&self) -> u64 {
        self.records + self.quarantined
    }

    /// Counts a repair, and keeps it if people may want to see it.
    pub fn add_repair(&mut self, id: RepairId, made: Option<RepairMade>) {
        self.counts.add(id);
        let Some(made) = made else { return };
        if self.repairs.len() == REPAIRS_KEPT {
            self.repairs.pop_front();
        }
        self.repairs.push_back(made);
    }

    /// Notes the outcome of an attempt.
    pub fn note(&mut self, summary: &Summary) {
        self.outcome = Some(summary.outcome);
        self.version = summary.version.or(self.version);
    }
}

impl RepairMade {
    /// `None` for a rewrite, which is no repair. The texts are without the secrets, which the source may echo.
    pub fn from_repair(repair: &Repair<'_>, secrets: &Secrets) -> Option<Self> {
        (!repair.id.is_rewrite()).then(|| Self {
            name: repair.id.name(),
            offset: repair.offset,
            record: repair.record.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
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
