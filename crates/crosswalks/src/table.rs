//! The table of the built-in crosswalks.

use crate::builtin::{datacite, didl, dublin_core, json_ld, mets, mods};
use crate::conversion::{Conversion, NotConverted};
use crate::source_choice::SourceChoice;
use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use async_trait::async_trait;
use std::sync::Arc;

/// A built-in crosswalk.
#[derive(Debug)]
pub struct BuiltIn {
    /// The metadataPrefix.
    pub prefix: &'static str,
    /// The schema of the format.
    pub schema: SchemaPlace,
    /// The namespace of the format.
    pub namespace: &'static str,
    /// The formats that it reads.
    pub source: SourceChoice,
    /// The version of the function. It grows with every change of what the function writes, so that harvesters of
    /// mirrored repositories receive all records again.
    pub version: u32,
    /// Makes the metadata of a record.
    convert: Function,
}

/// The function of a crosswalk.
#[derive(Clone, Copy, Debug)]
enum Function {
    /// Needs the record alone.
    OfRecord(fn(&SourceRecord<'_>) -> Result<String, Unconverted>),
    /// Also needs the URL of this server.
    OnServer(fn(&SourceRecord<'_>, &str) -> Result<String, Unconverted>),
}

/// Where the schema of a format is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaPlace {
    /// At this URL.
    Elsewhere(&'static str),
    /// At this path of this server.
    Here(&'static str),
}

/// All built-in crosswalks that read one record alone. [`LinksSource`](crate::LinksSource) makes that to `oaimend_links`.
pub const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        prefix: "oai_dc",
        schema: SchemaPlace::Elsewhere(dublin_core::SCHEMA),
        namespace: dublin_core::NAMESPACE,
        source: SourceChoice::Richest,
        version: 1,
        convert: Function::OfRecord(dublin_core::convert),
    },
    BuiltIn {
        prefix: "oai_datacite",
        schema: SchemaPlace::Elsewhere(datacite::WRAPPER_SCHEMA),
        namespace: datacite::WRAPPER_NAMESPACE,
        source: SourceChoice::DublinCore,
        version: 1,
        convert: Function::OfRecord(datacite::convert),
    },
    BuiltIn {
        prefix: "mods",
        schema: SchemaPlace::Elsewhere(mods::SCHEMA),
        namespace: mods::NAMESPACE,
        source: SourceChoice::DublinCore,
        version: 1,
        convert: Function::OfRecord(mods::convert),
    },
    BuiltIn {
        prefix: "didl",
        schema: SchemaPlace::Elsewhere(didl::SCHEMA),
        namespace: didl::NAMESPACE,
        source: SourceChoice::Any,
        version: 1,
        convert: Function::OfRecord(didl::convert),
    },
    BuiltIn {
        prefix: "DIDL.identifiers",
        schema: SchemaPlace::Elsewhere(didl::SCHEMA),
        namespace: didl::NAMESPACE,
        source: SourceChoice::DublinCore,
        version: 1,
        convert: Function::OfRecord(didl::convert_identifiers),
    },
    BuiltIn {
        prefix: "mets",
        schema: SchemaPlace::Elsewhere(mets::SCHEMA),
        namespace: mets::NAMESPACE,
        source: SourceChoice::Any,
        version: 1,
        convert: Function::OfRecord(mets::convert),
    },
    BuiltIn {
        prefix: "schema_org",
        schema: SchemaPlace::Here(json_ld::SCHEMA_PATH),
        namespace: json_ld::NAMESPACE,
        source: SourceChoice::DublinCore,
        version: 1,
        convert: Function::OnServer(json_ld::convert),
    },
];

/// The row of a metadataPrefix.
pub fn find_built_in(prefix: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|row| row.prefix == prefix)
}

/// The legal name of a format. The paper calls a format `DIDL:identifiers`, but a metadataPrefix has no colon (OAI-PMH
/// 2.0, section 3.4).
pub fn legal_prefix(prefix: &str) -> &str {
    match prefix {
        "DIDL:identifiers" => "DIDL.identifiers",
        prefix => prefix,
    }
}

/// A crosswalk that is turned on for a repository.
#[derive(Clone, Debug)]
pub struct Crosswalk {
    /// The metadataPrefix.
    pub prefix: String,
    /// The URL of the schema of the format.
    pub schema: String,
    /// The namespace of the format.
    pub namespace: String,
    /// The formats that it reads.
    pub source: SourceChoice,
    /// The version of the conversion. Another one makes another collection of records.
    pub version: String,
    /// Whether the conversion reads other records too, so that its result changes without the record.
    pub reads_other_records: bool,
    /// Makes the metadata of a record.
    pub conversion: Arc<dyn Conversion>,
}

impl Crosswalk {
    /// A crosswalk of the table. `public_url` is the URL of this server.
    pub fn built_in(row: &'static BuiltIn, public_url: &str) -> Self {
        Self {
            prefix: row.prefix.to_owned(),
            schema: match row.schema {
                SchemaPlace::Elsewhere(url) => url.to_owned(),
                SchemaPlace::Here(path) => format!("{public_url}{path}"),
            },
            namespace: row.namespace.to_owned(),
            source: row.source.clone(),
            version: row.version.to_string(),
            reads_other_records: false,
            conversion: Arc::new(BuiltInConversion { row, public_url: public_url.to_owned() }),
        }
    }
}

/// The function of a row.
#[derive(Debug)]
struct BuiltInConversion {
    row: &'static BuiltIn,
    public_url: String,
}

#[async_trait]
impl Conversion for BuiltInConversion {
    async fn convert(&self, record: &SourceRecord<'_>) -> Result<String, NotConverted> {
        Ok(match self.row.convert {
            Function::OfRecord(convert) => convert(record)?,
            Function::OnServer(convert) => convert(record, &self.public_url)?,
        })
    }
}
