//! The records of a saved OAI-PMH response, or of a document that is one record.

use oaimend_oai::datestamp;
use oaimend_repair::{
    EnvelopeFacts, Outcome, Quarantined, RecordFacts, RepairConfig, Repairer, Sink, Summary, TokenFacts,
};
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::xml::{XmlEvent, XmlReader, unescape};
use oaimend_tape::TapeRecord;

/// Bytes at the beginning of a file that are read to see what it is.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// What the beginning of a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The start of the document element if the document is one record.
    pub(super) record_at: Option<usize>,
    /// The local name of the verb element.
    pub(super) verb: String,
    /// The metadataPrefix of the request.
    pub(super) prefix: Option<String>,
    /// The resumptionToken of the request.
    pub(super) token: Option<String>,
}

impl Head {
    /// Reads the beginning of a document, as far as it is well-formed.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => bytes
                .get(..error.valid_up_to())
                .and_then(|valid| str::from_utf8(valid).ok())
                .unwrap_or_default(),
        };
        let (mut head, mut reader) = (Self::default(), XmlReader::new(text));
        while let Ok(Some(event)) = reader.read() {
            let XmlEvent::Start(tag) = event else { continue };
            match (reader.depth(), tag.local_name()) {
                (0, "record") => {
                    head.record_at = Some(reader.span().start);
                    return head;
                }
                (1, "request") => {
                    let value = |name| tag.attribute(name).ok().flatten().map(Into::into);
                    (head.prefix, head.token) = (value("metadataPrefix"), value("resumptionToken"));
                }
                (1, "responseDate") | (0, _) => {}
                (1, verb) => {
                    head.verb = verb.to_owned();
                    return head;
                }
                _ => {}
            }
        }
        head
    }
}

/// A response that passes through the engine.
pub(super) struct SavedResponse {
    repairer: Repairer,
    records: Collected,
    is_record: bool,
}

/// What the engine found.
#[derive(Default)]
struct Collected {
    scope: NamespaceScope,
    /// Whether the response is a list of headers or another one without records.
    has_no_records: bool,
    found: Vec<FoundRecord>,
    quarantined: u64,
    next_token: Option<String>,
    error: Option<oaimend_oai::ErrorCode>,
}

/// A record of the response.
pub(super) struct FoundRecord {
    pub(super) identifier: String,
    /// The element with all its declarations.
    pub(super) xml: String,
    has_datestamp: bool,
}

/// The end of a response.
pub(super) struct ResponseEnd {
    /// The number of records that are missing, or at least one.
    pub(super) missing: u64,
    /// The token of the next page.
    pub(super) next_token: Option<String>,
    /// Why the file has no records; `None` if it may have some.
    pub(super) problem: Option<String>,
}

const RECORD_BEFORE: &[u8] = b"<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><responseDate>1970-01-01T00:00:00Z</responseDate>\
    <request>http://file.invalid/</request><ListRecords>";
const RECORD_AFTER: &[u8] = b"</ListRecords></OAI-PMH>";

impl SavedResponse {
    /// Begins a file with this head.
    pub(super) fn new(head: &Head) -> Self {
        let is_record = head.record_at.is_some();
        let config = RepairConfig::default();
        let mut response =
            Self { repairer: Repairer::new(&config), records: Collected::default(), is_record };
        if is_record {
            response.push(RECORD_BEFORE);
        }
        response
    }

    /// The next bytes of the file. A document that is one record begins with its start tag.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.repairer.push(bytes, &mut self.records);
    }

    /// The records that were found since the last call.
    pub(super) fn take_records(&mut self) -> Vec<FoundRecord> {
        std::mem::take(&mut self.records.found)
    }

    /// Ends the file. The last records are in `records`.
    pub(super) fn finish(mut self, records: &mut Vec<FoundRecord>) -> ResponseEnd {
        if self.is_record {
            self.push(RECORD_AFTER);
        }
        let summary = self.repairer.finish(&mut self.records);
        records.append(&mut self.records.found);
        let without_date = records.iter().filter(|record| !record.has_datestamp).count() as u64;
        records.retain(|record| record.has_datestamp);
        let Collected { quarantined, next_token, error, has_no_records, .. } = self.records;
        let mut missing = quarantined.max(summary.quarantined) + summary.lost + without_date;
        if summary.outcome == Outcome::Truncated {
            missing = missing.max(1);
        }
        ResponseEnd { missing, next_token, problem: problem(&summary, error, has_no_records) }
    }
}

fn problem(summary: &Summary, error: Option<oaimend_oai::ErrorCode>, has_no_records: bool) -> Option<String> {
    match (summary.outcome, error) {
        (Outcome::NotOai(why), _) => Some(why.message().to_owned()),
        (_, Some(oaimend_oai::ErrorCode::NoRecordsMatch)) => None,
        (_, Some(code)) => Some(format!("the response is the error {}", code.name())),
        (_, None) if has_no_records => {
            Some("the response holds no records, only headers or descriptions".to_owned())
        }
        (_, None) => None,
    }
}

impl Sink for Collected {
    fn write(&mut self, _bytes: &[u8]) {}

    fn envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
        let text = |bytes| str::from_utf8(bytes).unwrap_or_default();
        let Some(list) = &envelope.list else {
            self.has_no_records = true;
            return;
        };
        let verb = text(list.verb_tag);
        self.has_no_records = !["ListRecords", "GetRecord"].iter().any(|name| verb.contains(name));
        // The innermost declaration comes first, and the last one counts.
        let declared = list.namespaces.iter().rev();
        self.scope = NamespaceScope::new(declared.map(|(prefix, uri)| (text(prefix), text(uri))));
    }

    fn error(&mut self, code: oaimend_oai::ErrorCode) {
        self.error = Some(code);
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        if self.has_no_records {
            return;
        }
        let text = |bytes| str::from_utf8(bytes).unwrap_or_default();
        let identifier = unescape(text(facts.identifier)).unwrap_or_default();
        let xml = self.scope.rebase(text(bytes), NamespaceScope::of_own_list());
        let has_datestamp = datestamp::is_legal(facts.datestamp.trim_ascii());
        self.found.push(FoundRecord { identifier, xml, has_datestamp });
    }

    fn record_quarantined(&mut self, _quarantined: &Quarantined<'_>) {
        self.quarantined += 1;
    }

    fn resumption_token(&mut self, token: &TokenFacts<'_>) {
        let token = unescape(str::from_utf8(token.token).unwrap_or_default()).unwrap_or_default();
        self.next_token = Some(token).filter(|token| !token.is_empty());
    }
}

impl FoundRecord {
    /// The record for the tape, in this format.
    pub(super) fn to_tape_record(&self, prefix: &str) -> Result<TapeRecord, String> {
        let record = TapeRecord::from_oai(&self.identifier, prefix, &self.xml);
        record
            .map_err(|error| format!("the record {} cannot be read: {error}", self.identifier.escape_debug()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_says_what_a_file_is() {
        let page = b"<?xml version='1.0'?><o:OAI-PMH xmlns:o='o'><o:responseDate>x</o:responseDate>\
            <o:request verb='ListRecords' metadataPrefix='a' resumptionToken='t&amp;u'>http://a/</o:request><o:ListRecords>\xff";
        let head = Head::read(page);
        assert_eq!(
            (head.verb.as_str(), head.prefix.as_deref(), head.token.as_deref()),
            ("ListRecords", Some("a"), Some("t&u"))
        );
        assert_eq!(Head::read(b"<?xml version='1.0'?> <record xmlns='x'/>").record_at, Some(22));
        assert_eq!(Head::read(b"<html><body>"), Head { verb: "body".to_owned(), ..Head::default() });
        assert_eq!(Head::read(b""), Head::default());
    }
}
