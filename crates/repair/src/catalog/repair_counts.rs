//! The number of repairs of each kind.

use crate::catalog::repairs::{CATALOG, RepairId};

/// How often each repair was made.
///
/// ```
/// use oaimend_repair::RepairId;
///
/// let page = b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><error code='badVerb'>a & b</error></OAI-PMH>";
/// let counts = oaimend_repair::repair(page).summary.repairs;
/// assert_eq!(counts.of(RepairId::BareAmpersand), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairCounts([u64; RepairId::ALL.len()]);

impl Default for RepairCounts {
    fn default() -> Self {
        Self([0; RepairId::ALL.len()])
    }
}

impl RepairCounts {
    /// How often this repair was made.
    pub fn of(&self, id: RepairId) -> u64 {
        self.0.get(id as usize).copied().unwrap_or_default()
    }

    /// The repairs that were made, each with its number, in the order of the catalog.
    pub fn iter(&self) -> impl Iterator<Item = (RepairId, u64)> {
        CATALOG.iter().map(|entry| (entry.id, self.of(entry.id))).filter(|(_, count)| *count > 0)
    }

    /// Counts one repair.
    pub fn add(&mut self, id: RepairId) {
        if let Some(count) = self.0.get_mut(id as usize) {
            *count += 1;
        }
    }
}
