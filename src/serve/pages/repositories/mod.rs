//! The overview and the pages of repositories: from the stores and the cache.

pub(crate) mod aggregate;
mod check_report;
pub(super) mod description;
pub(crate) mod federation;
pub(crate) mod overview;
pub(crate) mod repository;
mod summary;
