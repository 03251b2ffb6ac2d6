//! Fetches single records: in place of a page that fails, of a broken record, or of a missing datestamp.

pub(crate) mod headers;
pub(crate) mod page_fallback;
pub(crate) mod refetch;
mod refetch_datestamp;
mod refetch_record;
pub(crate) mod substitute_page;
pub(crate) mod torn_sections;
