//! The account of one request: what left, what was mended, how often the source was asked.

use crate::repair::catalog::CATALOG;
use crate::repair::{Outcome, Repair, RepairId, Summary};
use crate::upstream::failure::Failure;
use std::collections::VecDeque;

/// What became of a request.
#[derive(Clone, Debug)]
pub struct Account {
    /// The last attempt's outcome; `None` when the source gave nothing to mend.
    pub outcome: Option<Outcome>,
    /// Protocol version of the source's response.
    pub version: Option<&'static str>,
    /// Items that left.
    pub records: u64,
    /// Items that left with repairs.
    pub repaired: u64,
    /// Items that were put aside.
    pub quarantined: u64,
    /// Items that left in place of broken ones: they were had by themselves.
    pub recalled: u64,
    /// setSpecs that were found to be those of two sets.
    pub set_collisions: u64,
    /// Items that stood in the list and that the source does not know any more.
    pub withdrawn: u64,
    /// How often each repair was made; index with `RepairId as usize`.
    pub counts: [u64; RepairId::COUNT],
    /// The last repairs, oldest first.
    pub repairs: VecDeque<RepairMade>,
    /// How often the source was asked.
    pub attempts: u32,
    /// `cursor` and `completeListSize`, as the source said on the page.
    pub progress: (Option<u64>, Option<u64>),
    /// Whether the token of the request leads to other pages of the list too, or to other lists: the next
    /// answer to the same request may be another page.
    pub reuses_tokens: bool,
    /// The query for an earlier page of the list, where the token on this page leads back to it: the next
    /// answer to that query may be another page.
    pub leads_back_to: Option<String>,
    /// Whether what lies outside the window of its list was left out of a page that a token leads to: the same
    /// token may lead to it in a list of another window.
    pub within_a_window: bool,
    /// Why the answer ends with a token of ours, where it does.
    pub continued: Option<Failure>,
}

/// One repair, for people to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairMade {
    /// Its name.
    pub name: &'static str,
    /// Where it was made, in bytes of the text.
    pub offset: u64,
    /// Identifier of the item.
    pub record: Option<String>,
    /// What stood there, cut.
    pub original: String,
    /// What stands there now, cut.
    pub replacement: String,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            outcome: None,
            version: None,
            records: 0,
            repaired: 0,
            quarantined: 0,
            recalled: 0,
            set_collisions: 0,
            withdrawn: 0,
            counts: [0; RepairId::COUNT],
            repairs: VecDeque::new(),
            attempts: 0,
            progress: (None, None),
            reuses_tokens: false,
            leads_back_to: None,
            within_a_window: false,
            continued: None,
        }
    }
}

impl Account {
    /// Repairs made, without what is only our own word.
    pub fn repairs_made(&self) -> u64 {
        let repairs = CATALOG.iter().zip(self.counts).filter(|(entry, _)| !entry.id.is_rewrite());
        repairs.map(|(_, count)| count).sum()
    }

    /// Items that left or were put aside.
    pub(crate) fn items(&self) -> u64 {
        self.records + self.quarantined
    }

    /// Counts a repair, and keeps it if people may want to see it.
    pub(crate) fn add_repair(&mut self, id: RepairId, made: Option<RepairMade>) {
        if let Some(count) = self.counts.get_mut(id as usize) {
            *count += 1;
        }
        let Some(made) = made else { return };
        if self.repairs.len() == REPAIRS_KEPT {
            self.repairs.pop_front();
        }
        self.repairs.push_back(made);
    }

    /// Notes how an attempt came out.
    pub(crate) fn note(&mut self, summary: &Summary) {
        self.outcome = Some(summary.outcome);
        self.version = summary.version.or(self.version);
    }
}

impl RepairMade {
    /// `None` for what is no repair but our own word.
    pub(crate) fn of(repair: &Repair<'_>) -> Option<Self> {
        (!repair.id.is_rewrite()).then(|| Self {
            name: repair.id.name(),
            offset: repair.offset,
            record: repair.record.map(lossy),
            original: shown(repair.original),
            replacement: shown(repair.replacement),
        })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shown(bytes: &[u8]) -> String {
    lossy(bytes.get(..REPAIR_BYTES_SHOWN).unwrap_or(bytes))
}

/// Last repairs of a request that are kept for people to look at.
const REPAIRS_KEPT: usize = 50;
const REPAIR_BYTES_SHOWN: usize = 200;
