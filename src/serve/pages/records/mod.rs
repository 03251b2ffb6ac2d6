//! The pages of records, their lists, and the sitemaps: from the store of the mirror alone.

mod collection;
pub(crate) mod lists;
pub(crate) mod record;
pub(crate) mod record_cache;
mod set_lists;
pub(crate) mod sitemaps;
