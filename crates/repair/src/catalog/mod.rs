//! Every repair and every reason for quarantine, by name.

pub(crate) mod reasons;
pub(crate) mod repair_counts;
pub(crate) mod repair_set;
pub(crate) mod repairs;

pub use reasons::{NotOai, QuarantineReason};
pub use repair_counts::RepairCounts;
pub use repair_set::RepairSet;
pub use repairs::{CATALOG, CatalogEntry, Certainty, Effect, RepairId};
