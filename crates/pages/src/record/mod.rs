//! What the page of a record contains, from the XML of a stored record.
//!
//! [`RecordDocument`] lists the elements of any format. [`DublinCore`] and [`WorkDescription`] are the known fields of
//! simple Dublin Core. `meta_tags`, [`json_ld`] and [`signposting`] express them for search engines, reference managers
//! and crawlers. [`RecordAddress`] contains the URLs of a record.
//!
//! Pure: no I/O, no clock. Texts of a record are never HTML here, and nothing but an absolute `http` or `https` URL is a
//! [`Link`].

mod address;
mod document;
mod dublin_core;
mod json_ld;
mod language;
mod limits;
mod links;
mod meta_tags;
mod publication_date;
mod signposting;
mod text;
mod work;
mod work_type;
mod xml_tokens;

pub(crate) use address::encoded_segment;
pub use address::{PLAN_CHART_PATH, QuarantineAddress, RecordAddress, RepositoryAddress, STATUS_PATH};
pub use document::{Field, FieldAttribute, RecordDocument, UnreadableRecord};
pub use dublin_core::DublinCore;
pub use json_ld::json_ld;
pub(crate) use json_ld::script_text;
pub use language::Direction;
pub(crate) use language::language_tag;
pub use limits::shorten;
pub(crate) use limits::shown_size;
pub use links::{Link, LinkKind, RecordLinks};
pub use meta_tags::MetaTag;
pub(crate) use meta_tags::meta_tags;
pub use publication_date::PublicationDate;
pub use signposting::signposting;
pub use text::Text;
pub use work::WorkDescription;
pub use work_type::WorkType;
pub(crate) use xml_tokens::xml_tokens;
pub use xml_tokens::{XmlToken, XmlTokenKind};
