//! What the page of a record contains beside its fields.
//!
//! `meta_tags` and [`Signposts`] express a [`WorkDescription`] for search engines, reference managers and
//! crawlers. [`RecordAddress`] contains the URLs of a record.
//!
//! [`Related`] are the records that it is linked with.
//!
//! [`WorkDescription`]: oaimend_record::WorkDescription

mod address;
mod limits;
mod meta_tags;
mod related;
mod script_text;
mod signposting;
mod xml_tokens;

pub(crate) use address::encoded_segment;
pub use address::{PLAN_CHART_PATH, QuarantineAddress, RecordAddress, RepositoryAddress, STATUS_PATH};
pub use limits::LINK_HEADERS_BYTES_MAX;
pub use meta_tags::MetaTag;
pub(crate) use meta_tags::{meta_tags, open_graph};
pub use related::{
    Related, RelatedRecord, RelatedRecords, RelatedWork, SAME_DESCRIPTION, SameRecord, related_json,
};
pub(crate) use script_text::script_text;
pub use signposting::Signposts;
pub(crate) use xml_tokens::xml_tokens;
pub use xml_tokens::{XmlToken, XmlTokenKind};
