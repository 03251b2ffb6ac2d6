//! The forms of dumps.

use oaimend_oai::named_enum;

named_enum! {
    /// The form of a dump, by its name in requests.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum DumpForm {
        /// An XMLtape, compressed with gzip.
        XmlTape = "xmltape",
        /// One JSON object in each line.
        #[default]
        Jsonl = "jsonl",
        /// One row for each record, with its header and its Dublin Core.
        Csv = "csv",
    }
}

impl DumpForm {
    /// The media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::XmlTape => "application/gzip",
            Self::Jsonl => "application/jsonl",
            Self::Csv => "text/csv; charset=UTF-8; header=present",
        }
    }

    /// The end of the names of files, without a dot before it.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::XmlTape => "xml.gz",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }
}
