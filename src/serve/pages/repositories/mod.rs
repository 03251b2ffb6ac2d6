//! The overview and the pages of repositories: from the stores and the cache.

mod check_report;
pub(super) mod description;
pub(crate) mod overview;
pub(crate) mod repository;
mod summary;
