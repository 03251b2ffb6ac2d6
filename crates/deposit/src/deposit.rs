//! A record as a writer sends it.

use crate::bad_xml::BadXml;
use crate::error::DepositError;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{escape, set_spec};
use oaimend_repair::{Outcome, Quarantined, RecordFacts, Repair, RepairConfig, Repairer, Sink};
use oaimend_repository::xml::{NamespaceReader, StartTag, XmlEvent, XmlReader, XmlText};
use oaimend_store::{IDENTIFIER_BYTES_MAX, NewRecord, RecordRepairs, RecordStatus, content_hash};
use std::collections::BTreeSet;

/// A record as a writer sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposit {
    /// The identifier.
    pub identifier: String,
    /// The setSpecs, in order, each once.
    pub set_specs: Vec<String>,
    /// The metadata; `None` for a deleted record.
    pub payload: Option<Payload>,
}

/// Metadata that the engine leaves unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `metadata` and the `about` elements that follow it, with all declarations that a list of our own lacks.
    pub(crate) xml: String,
    /// The namespace of the root element.
    pub(crate) namespace: String,
    /// The schema that `xsi:schemaLocation` of the root element names for its namespace.
    pub(crate) schema: Option<String>,
}

/// Maximum number of setSpecs of a record.
const SETS_MAX: usize = 100;

impl Deposit {
    /// The deleted record.
    #[must_use]
    pub fn deleted(identifier: &str) -> Self {
        Self { identifier: identifier.to_owned(), set_specs: Vec::new(), payload: None }
    }

    /// A record with these values.
    ///
    /// # Errors
    ///
    /// The identifier is no legal one of OAI-PMH, or a setSpec.
    pub fn new(
        identifier: &str,
        set_specs: &[String],
        payload: Option<Payload>,
    ) -> Result<Self, DepositError> {
        check_identifier(identifier)?;
        let mut sets: Vec<String> = Vec::new();
        for set_spec in set_specs {
            if set_spec::read(set_spec.as_bytes()).is_none() {
                let text = format!(
                    "\"{}\" is not a setSpec; expected letters, digits and -_.!~*'() with colons between its parts",
                    set_spec.escape_debug()
                );
                return Err(DepositError::Unfit(text));
            }
            if !sets.contains(set_spec) {
                sets.push(set_spec.clone());
            }
        }
        if sets.len() > SETS_MAX {
            return Err(DepositError::Unfit(format!("a record has at most {SETS_MAX} sets")));
        }
        Ok(Self { identifier: identifier.to_owned(), set_specs: sets, payload })
    }

    /// The same record with another identifier.
    ///
    /// # Errors
    ///
    /// The identifier is no legal one of OAI-PMH.
    pub fn named(self, identifier: &str) -> Result<Self, DepositError> {
        check_identifier(identifier)?;
        Ok(Self { identifier: identifier.to_owned(), ..self })
    }

    /// The length of its metadata, in bytes.
    pub fn payload_bytes(&self) -> usize {
        self.payload.as_ref().map_or(0, |payload| payload.xml.len())
    }

    /// The record for the store. Its stamp is that of the commit.
    pub(crate) fn to_record(&self, stamp_secs: UnixSecs) -> NewRecord {
        let (status, attribute) = match self.payload {
            Some(_) => (RecordStatus::Live, ""),
            None => (RecordStatus::Deleted, " status=\"deleted\""),
        };
        let mut before = format!("<record><header{attribute}><identifier>");
        escape(&self.identifier, &mut before);
        before.push_str("</identifier><datestamp>");
        let mut after = "</datestamp>".to_owned();
        for set_spec in &self.set_specs {
            after.push_str(&format!("<setSpec>{set_spec}</setSpec>"));
        }
        after.push_str("</header>");
        after.push_str(self.payload.as_ref().map_or("", |payload| &payload.xml));
        after.push_str("</record>");
        let datestamp = from_secs(stamp_secs, Granularity::Second);
        NewRecord {
            identifier: self.identifier.clone(),
            datestamp_secs: stamp_secs,
            content_hash: content_hash(status, &self.set_specs, &[before.as_bytes(), after.as_bytes()]),
            set_specs: self.set_specs.clone(),
            status,
            bytes: format!("{before}{datestamp}{after}").into(),
            repairs: RecordRepairs::default(),
        }
    }
}

/// The records, the last one of each identifier.
pub(crate) fn last_of_each(mut deposits: Vec<Deposit>) -> Vec<Deposit> {
    let mut seen = BTreeSet::new();
    deposits.reverse();
    deposits.retain(|deposit| seen.insert(deposit.identifier.clone()));
    deposits.reverse();
    deposits
}

/// Checks an identifier: a URI (OAI-PMH 2.0, section 2.4) that fits the store.
fn check_identifier(identifier: &str) -> Result<(), DepositError> {
    let has_scheme = identifier.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !rest.is_empty()
    });
    let is_text = identifier.chars().all(|c| c.is_ascii_graphic() && !"<>\"{}|\\^`".contains(c));
    if has_scheme && is_text && identifier.len() <= IDENTIFIER_BYTES_MAX {
        return Ok(());
    }
    let text = format!(
        "\"{}\" is not an identifier; expected a URI of at most {IDENTIFIER_BYTES_MAX} bytes, such as oai:example.org:1",
        identifier.chars().take(200).collect::<String>().escape_debug()
    );
    Err(DepositError::Unfit(text))
}

/// What a document consists of, of which a writer sends the metadata alone.
const BEFORE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    <responseDate>1970-01-01T00:00:00Z</responseDate>\n<request>http://local.invalid/</request>\n<ListRecords>\n\
    <record><header><identifier>oai:local.invalid:1</identifier><datestamp>1970-01-01</datestamp></header><metadata>";
const AFTER: &str = "</metadata></record>\n</ListRecords>\n</OAI-PMH>\n";

impl Payload {
    /// Reads metadata: a document with one element that has a namespace. `xsi` is bound if the document does not bind it. A
    /// byte order mark and an XML declaration are left out.
    ///
    /// # Errors
    ///
    /// It is not well-formed, or the engine would change it.
    pub fn read(document: &[u8]) -> Result<Self, BadXml> {
        let text = str::from_utf8(document)
            .map_err(|error| BadXml::at(document, error.valid_up_to(), "this byte is not UTF-8"))?;
        let start = prolog_end(text)?;
        let payload = text.get(start..).unwrap_or_default().trim_end();
        let root = read_root(document, start, payload)?;
        let mut checked = Checked::default();
        let mut repairer = Repairer::new(&RepairConfig::default());
        for part in [BEFORE, payload, AFTER] {
            repairer.push(part.as_bytes(), &mut checked);
        }
        let summary = repairer.finish(&mut checked);
        if let Some((offset, problem)) = checked.problem {
            let in_payload = usize::try_from(offset).unwrap_or_default().saturating_sub(BEFORE.len());
            return Err(BadXml::at(document, start + in_payload, problem));
        }
        if summary.outcome != Outcome::Clean || checked.records != 1 {
            return Err(BadXml::at(document, start, "it is not one element of well-formed XML"));
        }
        Ok(Self { xml: format!("<metadata>{payload}</metadata>"), ..root })
    }
}

/// The end of a byte order mark and an XML declaration.
fn prolog_end(text: &str) -> Result<usize, BadXml> {
    let mut start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let rest = text.get(start..).unwrap_or_default();
    if let Some(declaration) = rest.strip_prefix("<?xml").filter(|rest| rest.starts_with(char::is_whitespace))
    {
        let end = declaration
            .find("?>")
            .ok_or_else(|| BadXml::at(text.as_bytes(), start, "the XML declaration has no end"))?;
        let declared = declaration.get(..end).unwrap_or_default().to_ascii_lowercase();
        if declared.contains("encoding") && !declared.contains("utf-8") {
            let problem = "the XML declaration names another encoding; expected UTF-8";
            return Err(BadXml::at(text.as_bytes(), start, problem));
        }
        start += "<?xml".len() + end + "?>".len();
    }
    let blanks = text.get(start..).unwrap_or_default();
    Ok(start + (blanks.len() - blanks.trim_start().len()))
}

/// Reads the root element, and checks that nothing but comments and instructions is beside it. Its `xml` is empty.
fn read_root(document: &[u8], start: usize, payload: &str) -> Result<Payload, BadXml> {
    let mut reader = NamespaceReader::new(XmlReader::new(payload));
    let (mut depth, mut root) = (0_usize, None);
    loop {
        let event = reader.read();
        // After an error, the span is that of the event before it.
        let place = start + if event.is_err() { reader.span().end } else { reader.span().start };
        let bad = |problem: &str| BadXml::at(document, place, problem);
        match event.map_err(|error| bad(&error.to_string()))? {
            Some(XmlEvent::Start(tag)) => {
                if depth == 0 {
                    if root.is_some() {
                        return Err(bad("a second element begins; expected one"));
                    }
                    let namespace =
                        reader.namespace(tag).map_err(|error| bad(&error.to_string()))?.to_owned();
                    if namespace.is_empty() {
                        return Err(bad(
                            "the root element has no namespace; expected xmlns with that of its format",
                        ));
                    }
                    let schema = schema_of(tag, &namespace);
                    root = Some(Payload { xml: String::new(), namespace, schema });
                }
                depth += 1;
            }
            Some(XmlEvent::End(_)) => depth = depth.saturating_sub(1),
            Some(XmlEvent::Doctype) => {
                return Err(bad("a document type declaration is not allowed in metadata"));
            }
            Some(XmlEvent::Text(text)) if depth == 0 && !is_blank(text) => {
                return Err(bad("text is beside the root element; expected one element"));
            }
            Some(XmlEvent::Text(_) | XmlEvent::Other) => {}
            None if depth > 0 => return Err(bad("the document ends inside an element")),
            None => return root.ok_or_else(|| bad("there is no element; expected one")),
        }
    }
}

fn is_blank(text: XmlText<'_>) -> bool {
    matches!(text, XmlText::Plain(text) if text.trim().is_empty())
}

/// The schema that `xsi:schemaLocation` names for a namespace.
pub(crate) fn schema_of(tag: StartTag<'_>, namespace: &str) -> Option<String> {
    let found = tag.attributes().filter_map(Result::ok);
    let location = found.into_iter().find(|(name, _)| name.ends_with(":schemaLocation"))?.1;
    let mut words = location.split_whitespace();
    while let (Some(of), Some(schema)) = (words.next(), words.next()) {
        if of == namespace {
            return Some(schema.to_owned());
        }
    }
    None
}

/// The first thing that the engine would change.
#[derive(Default)]
struct Checked {
    problem: Option<(u64, String)>,
    records: usize,
}

impl Sink for Checked {
    fn write(&mut self, _bytes: &[u8]) {}

    fn repaired(&mut self, repair: &Repair<'_>) {
        let problem = || (repair.offset, problem_of_repair(repair));
        self.problem.get_or_insert_with(problem);
    }

    fn record_committed(&mut self, _facts: &RecordFacts<'_>, _bytes: &[u8]) {
        self.records += 1;
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.problem.get_or_insert_with(|| (quarantined.offset, problem_of_quarantine(quarantined)));
    }
}

/// The text about a fault that the engine would repair.
pub(crate) fn problem_of_repair(repair: &Repair<'_>) -> String {
    let entry = repair.id.entry();
    format!("the XML needs the repair {} (oaimend explain {})", entry.name, entry.name)
}

/// The text about a record that has no safe repair.
pub(crate) fn problem_of_quarantine(quarantined: &Quarantined<'_>) -> String {
    format!("the XML cannot be read: {}", quarantined.why.name())
}
