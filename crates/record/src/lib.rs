//! What a record says, from the XML of a stored record.
//!
//! [`RecordDocument`] lists the elements of any format. The crosswalks read [`DublinCore`] and [`WorkDescription`] from
//! them: what is known of the work, for pages, search and exports.
//!
//! Pure: no I/O, no clock. Everything in a record is untrusted. Texts of a record are never HTML here, and nothing but an
//! absolute `http` or `https` URL is a [`Link`].

mod agent;
mod citation;
mod container;
mod crosswalks;
mod document;
mod dublin_core;
mod json_ld;
mod language;
mod limits;
mod links;
mod publication_date;
mod standard_number;
mod text;
mod work;
mod work_fields;
mod work_type;

pub use agent::{Agent, AgentKind, Orcid};
pub use citation::{bibtex, csl_json, ris};
pub use container::Container;
pub use crosswalks::{References, format_with_references, readable_richest_first, richest_first};
pub use document::{Field, FieldAttribute, RecordDocument, UnreadableRecord};
pub use dublin_core::DublinCore;
pub use json_ld::{json_ld, json_ld_same_as};
pub use language::{Direction, language_tag};
pub use limits::{shorten, shown_size};
pub use links::{Link, LinkKind, RecordLinks};
pub use publication_date::PublicationDate;
pub use standard_number::read_isbn;
pub use text::{Text, on_one_line};
pub use work::WorkDescription;
pub use work_type::WorkType;
