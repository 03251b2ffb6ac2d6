//! Crosswalks of operators: XSLT 1.0 sheets, which a worker process runs.

use crate::conversion::{Conversion, NotConverted};
use crate::source_choice::SourceChoice;
use crate::source_record::SourceRecord;
use crate::table::{Crosswalk, SchemaPlace, find_built_in};
use crate::unconverted::Unconverted;
use async_trait::async_trait;
use oaimend_repository::{Failure, Outlook, Reason, for_operators};
use oaimend_xslt::{FailureScope, Sheet, SheetFailure, XsltWorker};
use quick_xml::events::Event;
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::{NsReader, XmlVersion};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The namespace of the attributes by which the root of a sheet describes its format.
const DESCRIPTION: &str = "urn:x-oaimend:sheet:1";
/// The format that a sheet reads if it says nothing else.
const USUAL_SOURCE: &str = "oai_dc";
/// Seconds after which a harvester retries if the worker cannot run.
const RETRY_SECS: u64 = 60;

/// A sheet with what it says of its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetCrosswalk {
    sheet: Sheet,
    /// The metadataPrefix that it reads.
    source: String,
    schema: String,
    namespace: String,
}

impl SheetCrosswalk {
    /// Reads the text of a sheet that makes a format with this metadataPrefix.
    ///
    /// # Errors
    ///
    /// It is no sheet that the worker takes, or it does not describe its format, for the operator.
    pub fn read(prefix: &str, text: Vec<u8>) -> Result<Self, String> {
        if !is_prefix(prefix) {
            return Err(format!("{prefix:?} is no metadataPrefix (OAI-PMH 2.0, section 3.4)"));
        }
        let sheet = Sheet::read(text).map_err(|fault| fault.to_string())?;
        let mut described = description(sheet.text());
        let row = find_built_in(prefix);
        let known_schema = row.and_then(|row| match row.schema {
            SchemaPlace::Elsewhere(url) => Some(url.to_owned()),
            SchemaPlace::Here(_) => None,
        });
        let missing = |name: &str| {
            format!(
                "the sheet does not say the {name} of its format; write xmlns:oaimend=\"{DESCRIPTION}\" and \
                 oaimend:{name}=\"...\" on its root"
            )
        };
        Ok(Self {
            source: described.remove("source").unwrap_or_else(|| USUAL_SOURCE.to_owned()),
            schema: described.remove("schema").or(known_schema).ok_or_else(|| missing("schema"))?,
            namespace: described
                .remove("namespace")
                .or_else(|| row.map(|row| row.namespace.to_owned()))
                .ok_or_else(|| missing("namespace"))?,
            sheet,
        })
    }

    /// The crosswalk to this metadataPrefix.
    pub(crate) fn crosswalk(&self, prefix: &str, worker: &XsltWorker) -> Crosswalk {
        Crosswalk {
            prefix: prefix.to_owned(),
            schema: self.schema.clone(),
            namespace: self.namespace.clone(),
            source: SourceChoice::Named(self.source.clone()),
            version: format!("xslt {}", hex::encode(self.sheet.id().bytes())),
            reads_other_records: false,
            conversion: Arc::new(SheetConversion { worker: worker.clone(), sheet: self.sheet.clone() }),
        }
    }
}

/// Whether a text is a metadataPrefix (OAI-PMH 2.0, section 3.4).
fn is_prefix(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    !text.is_empty() && text.bytes().all(is_legal)
}

/// The attributes of the root in the namespace of descriptions, by their local names.
fn description(sheet: &[u8]) -> BTreeMap<String, String> {
    let mut reader = NsReader::from_str(std::str::from_utf8(sheet).unwrap_or_default());
    loop {
        match reader.read_event() {
            Ok(Event::Start(root) | Event::Empty(root)) => {
                let attributes = root.attributes().flatten().filter_map(|attribute| {
                    let (namespace, name) = reader.resolver().resolve_attribute(attribute.key);
                    let is_described = namespace == ResolveResult::Bound(Namespace(DESCRIPTION));
                    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
                    is_described.then(|| (name.as_ref().to_owned(), value.trim().to_owned()))
                });
                return attributes.filter(|(_, value)| !value.is_empty()).collect();
            }
            Ok(Event::Eof) | Err(_) => return BTreeMap::new(),
            Ok(_) => {}
        }
    }
}

/// Makes the metadata of a record by a sheet.
#[derive(Debug)]
struct SheetConversion {
    worker: XsltWorker,
    sheet: Sheet,
}

#[async_trait]
impl Conversion for SheetConversion {
    async fn convert(&self, record: &SourceRecord<'_>) -> Result<String, NotConverted> {
        let payload = record.standalone_payload()?;
        let transformed = self.worker.transform(&self.sheet, payload.into_bytes()).await;
        let output = transformed.map_err(|failure| not_converted(record.identifier, &failure))?;
        String::from_utf8(output).map_err(|_| Unconverted::SheetFailed.into())
    }
}

/// A failure of a sheet, by whose failure it is.
fn not_converted(identifier: &str, failure: &SheetFailure) -> NotConverted {
    let kind = failure.kind.name();
    let details = |what: &str| format!("{what}{}", for_operators(format_args!(" ({kind}: {failure})"), ""));
    match failure.scope() {
        FailureScope::Record => {
            tracing::info!(record = identifier, kind, details = %failure, "a sheet fails for a record");
            Unconverted::SheetFailed.into()
        }
        FailureScope::Sheet => {
            let text = details("the sheet of this format cannot be used; correct it");
            NotConverted::Now(Failure::new(Reason::Configuration, text))
        }
        FailureScope::Machine => {
            let text = details("the process that runs the sheet of this format cannot be started");
            let failure = Failure::new(Reason::Configuration, text);
            NotConverted::Now(Failure { outlook: Outlook::MayPass, retry_after_secs: RETRY_SECS, ..failure })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prefix: &str, attributes: &str) -> Result<SheetCrosswalk, String> {
        let text = format!(
            "<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform' \
             xmlns:o='{DESCRIPTION}' {attributes}/>"
        );
        SheetCrosswalk::read(prefix, text.into_bytes())
    }

    #[test]
    fn a_sheet_describes_its_format() {
        let sheet = read("marc21", "o:source='mods' o:schema='http://x/a.xsd' o:namespace='urn:a&amp;b'");
        let SheetCrosswalk { source, schema, namespace, .. } = sheet.expect("it is described");
        assert_eq!([source, schema, namespace], ["mods", "http://x/a.xsd", "urn:a&b"]);
    }

    #[test]
    fn known_formats_need_no_description() {
        let sheet = read("mods", "").expect("the table has it");
        assert_eq!(sheet.source, "oai_dc");
        assert_eq!(sheet.namespace, "http://www.loc.gov/mods/v3");
        assert!(sheet.schema.ends_with(".xsd"), "{}", sheet.schema);
    }

    #[test]
    fn a_sheet_without_a_description_is_refused() {
        for (prefix, attributes, missing) in [
            ("marc21", "", "schema"),
            ("marc21", "o:schema='http://x/a.xsd'", "namespace"),
            ("marc21", "o:schema=' ' o:namespace='urn:a'", "schema"),
            ("marc21", "schema='http://x/a.xsd' namespace='urn:a'", "schema"),
        ] {
            let refused = read(prefix, attributes).expect_err("it is not described");
            assert!(refused.contains(&format!("oaimend:{missing}=")), "{attributes}: {refused}");
        }
        assert!(read("a:b", "").expect_err("no prefix").contains("metadataPrefix"));
        assert!(SheetCrosswalk::read("mods", b"<a/>".to_vec()).is_err());
    }
}
