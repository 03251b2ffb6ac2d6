//! HTML pages, rendered on the server, without JavaScript.
//!
//! All pages share the layout and the style sheet of [`oaimend_html`]. maud escapes every text and attribute. The only text that is written
//! without escaping is JSON-LD, which contains no `<`. Links of records are [`Link`](oaimend_record::Link)s, which are
//! `http` or `https`. The pages need no script, inline style, image or font, as
//! [`CONTENT_SECURITY_POLICY`](oaimend_html::CONTENT_SECURITY_POLICY) requires.

mod byte_text;
mod fields_table;
mod list;
mod missing_record;
mod no_record_page;
mod operator;
mod record_page;
mod related_section;
mod repairs;
mod repository;
mod resolver_page;
mod response;
mod search;
#[cfg(test)]
mod tests;
mod xml_source;

pub use list::{
    BrowsePage, ListContent, ListNotice, ListNoticePage, ListPage, ListedFrom, MonthEntry, RecordLink,
    SetEntry, SetsPage,
};
pub use missing_record::{DeletedRecordPage, UnknownRecordPage};
pub use no_record_page::{NoRecordPage, NoRecordReason};
pub use operator::{
    HarvestRow, HarvestState, QuarantinePage, QuarantinedRecordPage, RequestRow, SourceRow, StatusPage,
    UnknownOperatorPage,
};
pub use record_page::{FormatTab, Provenance, RecordPage};
pub use repository::{
    AggregatePage, FederationPage, OverviewPage, RemovedRepositoryPage, RepositoryPage, UnknownPath,
    UnknownPathPage, ViewPage,
};
pub use resolver_page::{ResolverContent, ResolverPage};
pub use response::{NoResponseReason, ResponsePage, ShownResponse};
pub use search::{SearchNotice, SearchNoticePage, SearchPage, Shown};
