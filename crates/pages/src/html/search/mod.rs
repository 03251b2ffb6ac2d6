//! The pages of a search: the invitation, the results with their facets, and the pages in place of results.
//!
//! All their sentences are in [`texts::search`](crate::texts::search).

mod facets;
mod notice;
pub(super) mod results;
mod search_page;
#[cfg(test)]
mod tests;

pub use notice::{SearchNotice, SearchNoticePage};
pub use search_page::{SearchPage, Shown};
