//! The outcome of one response, and its counts.

use crate::catalog::{NotOai, RepairCounts};
use std::fmt;

/// The outcome of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The output equals the input, except for the proxy's own values.
    Clean,
    /// Complete and valid, with repairs or quarantined items.
    Repaired,
    /// The input ended early, or an item was too long to be repaired. The output is not the complete list.
    Truncated,
    /// Not an OAI-PMH response, or without usable content. Nothing was written.
    NotOai(NotOai),
}

impl Outcome {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Repaired => "repaired",
            Self::Truncated => "truncated",
            Self::NotOai(_) => "not-oai",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOai(why) => write!(f, "{}: {why}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

/// The outcome and the counts of one response.
///
/// ```
/// use oaimend_repair::Outcome;
///
/// let page = b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><error code='badVerb'>a & b</error></OAI-PMH>";
/// let summary = oaimend_repair::repair(page).summary;
/// assert_eq!((summary.outcome, summary.lost), (Outcome::Repaired, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The outcome.
    pub outcome: Outcome,
    /// The protocol version of the response: `"2.0"`, `"1.0"` or `"1.1"`. `None` if it is not OAI-PMH.
    pub version: Option<&'static str>,
    /// Emitted items: records, headers, sets or formats.
    pub records: u64,
    /// Quarantined items.
    pub quarantined: u64,
    /// Lost items: oversized items that were emitted incompletely or not at all, records of GetRecord that
    /// were not requested, and `unread`.
    pub lost: u64,
    /// Quarantined texts with an unreadable item or resumptionToken between items, and quarantined items
    /// without an identifier in broken ones. They count in `quarantined` and in `lost` too.
    pub unread: u64,
    /// Items inside closed sections, which are content. Perhaps their section lost its end mark.
    pub swallowed: u64,
    /// Fields that violate the schema and stay unchanged, because their value is unknown.
    pub unresolved: u64,
    /// The number of repairs of each kind.
    pub repairs: RepairCounts,
    /// The charset that the text was decoded from. `"UTF-8"` if no decoding was necessary.
    pub decoded_as: &'static str,
    /// Maximum number of bytes held at any time, to check the limits.
    pub held_bytes_peak: usize,
}
