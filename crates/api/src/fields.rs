//! The parts of records that a request selects.

use oaimend_oai::named_enum;

named_enum! {
    /// A part of a record that a request can select.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RecordField {
        /// The identifier, which is always there.
        Identifier = "identifier",
        /// The datestamp.
        Datestamp = "datestamp",
        /// Whether the record is deleted.
        Deleted = "deleted",
        /// The setSpecs.
        Sets = "sets",
        /// The metadata as XML.
        Metadata = "metadata",
        /// The content of the `about` elements as XML.
        About = "about",
        /// The fields of Dublin Core that a crosswalk finds in the metadata.
        DublinCore = "dublinCore",
    }
}

/// The parts of records that a request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFields<'r>(Option<&'r [String]>);

impl<'r> RecordFields<'r> {
    /// The parts with these names; `None` for the common ones.
    pub const fn of(names: Option<&'r [String]>) -> Self {
        Self(names)
    }

    /// Whether a part is selected. Without a selection it is the header and the metadata.
    pub fn contains(self, field: RecordField) -> bool {
        match self.0 {
            Some(names) => names.iter().any(|name| name == field.name()),
            None => !matches!(field, RecordField::About | RecordField::DublinCore),
        }
    }

    /// Whether headers are enough.
    pub fn are_of_header(self) -> bool {
        use RecordField::{About, DublinCore, Metadata};
        ![Metadata, About, DublinCore].into_iter().any(|field| self.contains(field))
    }
}
