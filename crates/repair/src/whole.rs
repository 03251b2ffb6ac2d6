//! The repair of a response that is in memory as a whole.

use crate::output::journal::Entry;
use crate::{Outcome, Quarantined, Repair, RepairConfig, Repairer, Sink, Summary};

/// A repaired response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// The valid response. Empty if the input is not an OAI-PMH response.
    pub bytes: Vec<u8>,
    /// All changes, in the order of the text. [`journal::undo`](crate::journal::undo) takes them back.
    pub journal: Vec<Entry>,
    /// The outcome and the counts.
    pub summary: Summary,
}

impl Repaired {
    /// Whether the output contains everything that the input contained: no item is quarantined or lost, and the input
    /// did not end early.
    pub fn is_complete(&self) -> bool {
        let is_whole = matches!(self.summary.outcome, Outcome::Clean | Outcome::Repaired);
        is_whole && self.summary.quarantined == 0 && self.summary.lost == 0
    }
}

/// Repairs a response with the default configuration. Needs memory for the response and its journal; [`Repairer`] works
/// with bounded memory.
///
/// No input is an error: [`Summary::outcome`] says whether the input is an OAI-PMH response, and whether it is complete.
///
/// ```
/// use oaimend_repair::Outcome;
///
/// let page = br#"<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListSets><set><setSpec>a</setSpec>
/// <setName>R & D</setName></set></ListSets></OAI-PMH>"#;
/// let repaired = oaimend_repair::repair(page);
/// assert_eq!(repaired.summary.outcome, Outcome::Repaired);
/// for entry in &repaired.journal {
///     println!("{:?} at byte {}", entry.change, entry.offset);
/// }
/// ```
pub fn repair(response: &[u8]) -> Repaired {
    repair_with(&RepairConfig::default(), response)
}

/// Repairs a response, as [`repair`] does, with a configuration.
///
/// ```
/// use oaimend_repair::{Outcome, RepairConfig, repair_with};
///
/// let mut config = RepairConfig::default();
/// config.limits.record_bytes_max = 1 << 20;
/// let repaired = repair_with(&config, b"<html>Service unavailable</html>");
/// assert_eq!(repaired.summary.outcome.name(), "not-oai");
/// assert!(repaired.bytes.is_empty());
/// ```
pub fn repair_with(config: &RepairConfig, response: &[u8]) -> Repaired {
    let mut whole = WholeOutput { bytes: Vec::with_capacity(response.len()), journal: Vec::new() };
    let mut repairer = Repairer::new(config);
    repairer.push(response, &mut whole);
    let summary = repairer.finish(&mut whole);
    Repaired { bytes: whole.bytes, journal: whole.journal, summary }
}

/// The output and the journal, in memory.
struct WholeOutput {
    bytes: Vec<u8>,
    journal: Vec<Entry>,
}

impl Sink for WholeOutput {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        self.journal.push(repair.into());
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.journal.push(quarantined.into());
    }
}
