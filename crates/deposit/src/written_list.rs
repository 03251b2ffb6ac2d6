//! A list of records that a writer sends as one document: a response to ListRecords.

use crate::bad_xml::BadXml;
use crate::deposit::{Deposit, Payload, problem_of_quarantine, problem_of_repair, schema_of};
use crate::error::DepositError;
use oaimend_oai::UnixSecs;
use oaimend_repair::{
    EnvelopeFacts, Outcome, Quarantined, RecordFacts, Repair, RepairConfig, Repairer, Sink,
};
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::xml::{NamespaceReader, XmlEvent, XmlReader, unescape};

/// Maximum number of records of a list, which are stored together.
pub const LIST_RECORDS_MAX: usize = 10_000;

/// Longest content of a record with the declarations of namespaces around it, in bytes. An element may have few bytes and
/// long declarations around it.
const RECORD_CONTENT_BYTES_MAX: usize = 16 << 20;
/// The same of all records of a list.
const LIST_CONTENT_BYTES_MAX: usize = 256 << 20;

/// Reads the records of a response to ListRecords. Their datestamps do not matter, because the commit has its own stamp.
///
/// # Errors
///
/// It is no such response, it ends early, or a record is not correct: the first fault is named with its place.
pub fn read_list(document: &[u8]) -> Result<Vec<Deposit>, DepositError> {
    let mut list = List::default();
    let mut repairer = Repairer::new(&RepairConfig::default());
    repairer.push(document, &mut list);
    let summary = repairer.finish(&mut list);
    if let Some((offset, problem)) = list.problem {
        let place = usize::try_from(offset).unwrap_or(usize::MAX);
        return Err(BadXml::at(document, place, problem).into());
    }
    match summary.outcome {
        Outcome::NotOai(why) => return Err(BadXml::at(document, 0, why.message()).into()),
        Outcome::Truncated => {
            let problem = "the document ends early, or a record is too long";
            return Err(BadXml::at(document, document.len(), problem).into());
        }
        Outcome::Clean | Outcome::Repaired => {}
    }
    if !list.has_records {
        return Err(BadXml::at(document, 0, "expected a response to ListRecords or GetRecord").into());
    }
    if list.found.len() > LIST_RECORDS_MAX {
        let text = format!("a list has at most {LIST_RECORDS_MAX} records; send it in parts");
        return Err(DepositError::Unfit(text));
    }
    let mut deposits = Vec::with_capacity(list.found.len());
    let mut content_bytes = 0;
    for found in list.found {
        let place = usize::try_from(found.offset).unwrap_or_default();
        let bad = |problem: &str| BadXml::at(document, place, problem);
        let payload = if found.deleted {
            None
        } else {
            let content = read_content(&found.xml, &list.scope).map_err(|problem| bad(&problem))?;
            content_bytes += content.xml.len();
            if content_bytes > LIST_CONTENT_BYTES_MAX {
                let text = "with the declarations of namespaces around its records the list is too long; send it in parts";
                return Err(DepositError::Unfit(text.to_owned()));
            }
            Some(content)
        };
        deposits.push(Deposit::new(&found.identifier, &found.set_specs, payload)?);
    }
    Ok(deposits)
}

/// The records as a document that [`read_list`] reads. Their datestamps are those of 1970, because the commit has its own.
pub fn write_list<'d>(deposits: impl IntoIterator<Item = &'d Deposit>) -> Vec<u8> {
    let mut document = BEFORE.as_bytes().to_vec();
    for deposit in deposits {
        document.extend_from_slice(&deposit.to_record(UnixSecs(0)).bytes);
        document.push(b'\n');
    }
    document.extend_from_slice(AFTER.as_bytes());
    document
}

/// The document around the records of a list.
const BEFORE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    <responseDate>1970-01-01T00:00:00Z</responseDate>\n<request>http://local.invalid/</request>\n<ListRecords>\n";
const AFTER: &str = "</ListRecords>\n</OAI-PMH>\n";

/// What the engine found.
#[derive(Default)]
struct List {
    scope: Vec<(String, String)>,
    /// Whether it is a response to ListRecords or GetRecord.
    has_records: bool,
    found: Vec<Found>,
    /// The first place of a record that the engine would change.
    problem: Option<(u64, String)>,
}

/// A record of the document.
struct Found {
    offset: u64,
    identifier: String,
    set_specs: Vec<String>,
    deleted: bool,
    xml: String,
}

impl Sink for List {
    fn write(&mut self, _bytes: &[u8]) {}

    fn envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
        let Some(list) = &envelope.list else { return };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let tag = text(list.verb_tag);
        self.has_records = ["ListRecords", "GetRecord"].iter().any(|verb| tag.contains(verb));
        // The innermost declaration comes first, and the last one counts.
        self.scope = list.namespaces.iter().rev().map(|(prefix, uri)| (text(prefix), text(uri))).collect();
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        // The envelope is not stored.
        if repair.record.is_some() {
            self.problem.get_or_insert_with(|| (repair.offset, problem_of_repair(repair)));
        }
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        let text = |bytes: &[u8]| unescape(str::from_utf8(bytes).unwrap_or_default()).unwrap_or_default();
        let set_specs = facts.spans.set_specs.iter().map(|span| text(span.slice(bytes)).trim().to_owned());
        self.found.push(Found {
            offset: facts.offset,
            identifier: text(facts.identifier).trim().to_owned(),
            set_specs: set_specs.collect(),
            deleted: facts.deleted,
            xml: String::from_utf8_lossy(bytes).into_owned(),
        });
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.problem.get_or_insert_with(|| (quarantined.offset, problem_of_quarantine(quarantined)));
    }
}

/// The metadata of a record element and what follows it, with all declarations that a list of our own lacks. `around` are
/// the declarations around the record.
fn read_content(record: &str, around: &[(String, String)]) -> Result<Payload, String> {
    let mut reader = XmlReader::new(record);
    let (mut scope, mut child, mut xml) = (None, None, String::new());
    while let Some(event) = reader.read().map_err(|error| error.to_string())? {
        let place = reader.span();
        match (event, reader.depth()) {
            (XmlEvent::Start(tag), 0) => {
                let declared = tag.declarations();
                let all = around.iter().chain(&declared);
                scope = Some(NamespaceScope::new(all.map(|(prefix, uri)| (prefix.as_str(), uri.as_str()))));
            }
            (XmlEvent::Start(tag), 1) if tag.local_name() != "header" => child = Some(place.start),
            (XmlEvent::End(_), 1) => {
                if let (Some(start), Some(scope)) = (child.take(), &scope) {
                    let element = record.get(start..place.end).unwrap_or_default();
                    xml.push_str(&scope.rebase(element, NamespaceScope::of_own_list()));
                    if xml.len() > RECORD_CONTENT_BYTES_MAX {
                        return Err("with its declarations of namespaces the record is too long".to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    let mut reader = NamespaceReader::new(XmlReader::of_part(&xml));
    while let Some(event) = reader.read().map_err(|error| error.to_string())? {
        if let (XmlEvent::Start(tag), 1) = (event, reader.depth()) {
            let namespace = reader.namespace(tag).map_err(|error| error.to_string())?.to_owned();
            if namespace.is_empty() {
                return Err("the root element of the metadata has no namespace".to_owned());
            }
            let schema = schema_of(tag, &namespace);
            return Ok(Payload { xml, namespace, schema });
        }
    }
    Err("the record has no metadata".to_owned())
}
