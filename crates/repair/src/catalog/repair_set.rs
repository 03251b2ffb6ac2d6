//! A set of repairs of the catalog. A mapping uses one to turn repairs off, and one to turn repairs on.

use crate::catalog::repairs::RepairId;

/// A set of repairs.
///
/// ```
/// use oaimend_repair::{RepairId, RepairSet};
///
/// let off: RepairSet = [RepairId::BareAmpersand].into_iter().collect();
/// assert!(off.contains(RepairId::BareAmpersand) && !off.contains(RepairId::SetSpecEscape));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairSet(u128);

const _: () = assert!(RepairId::ALL.len() <= u128::BITS as usize, "each repair has a bit");

impl RepairSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Adds a repair.
    pub fn insert(&mut self, id: RepairId) {
        self.0 |= 1 << id as u8;
    }

    /// Whether the set contains the repair.
    pub fn contains(self, id: RepairId) -> bool {
        self.0 >> id as u8 & 1 == 1
    }
}

impl FromIterator<RepairId> for RepairSet {
    fn from_iter<I: IntoIterator<Item = RepairId>>(ids: I) -> Self {
        let mut set = Self::EMPTY;
        for id in ids {
            set.insert(id);
        }
        set
    }
}
