//! Fetches single records: in place of a page that fails, of a broken record, of a missing datestamp.

pub(crate) mod headers;
pub(crate) mod page_fallback;
pub(crate) mod refetch_datestamp;
pub(crate) mod refetch_record;
pub(crate) mod torn_sections;
