//! Some of the repairs of the catalogue: those that a mapping turns off, or on.

use crate::repair::catalog::repairs::RepairId;

/// A set of repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairSet(u128);

const _: () = assert!(RepairId::COUNT <= u128::BITS as usize, "each repair has a bit");

impl RepairSet {
    /// The set with no repair in it.
    pub const EMPTY: Self = Self(0);

    /// Whether no repair is in it.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Adds a repair.
    pub fn insert(&mut self, id: RepairId) {
        self.0 |= 1 << id as u8;
    }

    /// Whether the repair is in it.
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
