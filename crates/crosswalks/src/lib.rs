//! Crosswalks: formats that are made of other formats on the fly, for any repository (the Digital Item Processing engine
//! of Jerez, Liu, Hochstenbach and Van de Sompel, "The multi-faceted use of the OAI-PMH in the LANL Repository", section 6).
//!
//! [`BUILT_IN`] is the table of the built-in crosswalks: a new one is a file in `builtin` and a row. [`CrosswalkChoices`]
//! is what an operator turns on. [`CrosswalkRepository`] wraps any repository and adds the formats that it lacks. A format
//! that the repository has itself is never replaced.
//!
//! A [`Conversion`] makes the metadata of one record. It is asynchronous, because a conversion can run in another process.
//! A record that it cannot convert goes to quarantine and costs no other record.

mod builtin;
mod choices;
mod conversion;
mod repository;
mod sheets;
mod source_choice;
mod source_record;
mod table;
mod unconverted;
mod xml_writer;

pub use builtin::json_ld::{SCHEMA as JSON_LD_SCHEMA, SCHEMA_PATH as JSON_LD_SCHEMA_PATH};
pub use builtin::links::{LINKS_PREFIX, LINKS_SCHEMA, LINKS_SCHEMA_PATH, LinksSource};
pub use choices::{CrosswalkChoice, CrosswalkChoices};
pub use conversion::{Conversion, NotConverted};
pub use repository::{
    ConvertedRecords, CrosswalkRepository, CrosswalkSettings, DerivedCollections, FormatsCache,
    QuarantineSettings,
};
pub use sheets::SheetCrosswalk;
pub use source_choice::SourceChoice;
pub use source_record::SourceRecord;
pub use table::{BUILT_IN, BuiltIn, Crosswalk, SchemaPlace, find_built_in, legal_prefix};
pub use unconverted::Unconverted;
