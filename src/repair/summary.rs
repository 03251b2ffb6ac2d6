//! The result of one response: its outcome and its counts.

use crate::repair::catalog::{NotOai, RepairId};

/// How a response came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Byte for byte as it came, but for what the proxy says of itself.
    Clean,
    /// Whole and valid, with repairs or items put aside.
    Repaired,
    /// The input ended early, or an item was too long to be mended: what went
    /// out is not the whole list.
    Truncated,
    /// No OAI-PMH 2.0 response, or nothing of it could be kept: nothing was written.
    NotOai(NotOai),
}

impl Outcome {
    /// The word used in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Repaired => "repaired",
            Self::Truncated => "truncated",
            Self::NotOai(_) => "not-oai",
        }
    }
}

/// The account of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How it came out.
    pub outcome: Outcome,
    /// Protocol version of the response, `"2.0"` or `"1.0"`, `"1.1"`; `None` when it is not OAI-PMH.
    pub version: Option<&'static str>,
    /// Items that left: records, headers, sets or formats.
    pub records: u64,
    /// Items that were put aside.
    pub quarantined: u64,
    /// Items that left incomplete or not at all because they were too long to be held, records of
    /// GetRecord that nobody asked for, and `unread`.
    pub lost: u64,
    /// Pieces of text that were put aside because they hold an item or a resumptionToken that could
    /// not be read. They are counted in `quarantined` and in `lost`.
    pub unread: u64,
    /// Items inside sections that are closed and taken for content: perhaps their section lost its end mark.
    pub swallowed: u64,
    /// What stayed although the schema wants it otherwise: no value was known, and none is invented.
    pub unresolved: u64,
    /// How often each repair was made; index with `RepairId as usize`.
    pub repairs: [u64; RepairId::COUNT],
    /// The charset the text was decoded from; `"UTF-8"` when it was taken as it came.
    pub decoded_as: &'static str,
    /// Most bytes held at once, for the limits to be judged by.
    pub held_bytes_peak: usize,
}
