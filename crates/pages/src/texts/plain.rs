//! The lines in place of pages, in responses of plain text.

pub const RECORD_DELETED: &str = "the record was deleted";
pub const UNKNOWN_RECORD: &str = "no such record";
pub const RECORD_AT_SOURCE: &str = "the record is at its source";
pub const LIST_MOVED: &str = "this list has another URL";
pub const UNKNOWN_STYLE_SHEET: &str = "no such style sheet";
pub const UNKNOWN_SYNC_DOCUMENT: &str = "no such document; see /.well-known/resourcesync";
pub const UNKNOWN_SITEMAP: &str = "no such sitemap; see /sitemap.xml";
pub const REPOSITORY_REMOVED: &str = "this server no longer has the records of this repository";
pub const UNREADABLE_VIEW: &str = "the records of the view cannot be read now";
pub const UNREADABLE_MIRROR: &str = "the mirror cannot be read";
pub const NOT_RENDERED: &str = "oaimend failed to render this page; add /xml to its path";
pub const NO_PLAN: &str = "no mapping has a [mirror] table";

/// In place of the plot of the plan.
pub fn plan_failed(problem: &str) -> String {
    format!("no plan can be drawn: {problem}")
}
