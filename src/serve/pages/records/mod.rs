//! The pages of records, their lists, and the sitemaps: from the store of the mirror, and the pages of records that are
//! not mirrored from the responses of their source. `source_list` lists them from memory.

pub(crate) mod collection;
pub(in crate::serve::pages) mod item;
pub(crate) mod lists;
pub(crate) mod live_record;
pub(in crate::serve::pages) mod newest;
pub(crate) mod record;
pub(crate) mod record_cache;
mod record_xml;
pub(crate) mod related;
mod set_lists;
pub(crate) mod sitemaps;
pub(crate) mod source_list;

pub(crate) use record_xml::{metadata_of, raw_metadata};
