//! Where a broken item ends, and whether removed text contains items.

pub(crate) mod record_boundary;
pub(crate) mod removable;
pub(crate) mod removal;
pub(crate) mod swallowed;
