//! The pages that lead to records: lists of records, lists of sets, and notices in their place.

pub(super) mod browse_page;
mod list_page;
mod notice;
mod sets_page;

pub use browse_page::BrowsePage;
pub use list_page::{ListContent, ListPage, ListedFrom, MonthEntry, RecordLink};
pub use notice::{ListNotice, ListNoticePage};
pub use sets_page::{SetEntry, SetsPage};
