//! Responses. The elements of SRU 1 and SRU 2.0 have other namespaces, and a few other names.

use crate::request::{POSITION_MAX, Version};
use crate::{Diagnostic, Envelope, RecordSchema};
use oaimend_oai::escape;

/// The namespaces of a version.
struct Namespaces {
    response: &'static str,
    scan: &'static str,
    diagnostic: &'static str,
}

impl Version {
    const fn namespaces(self) -> Namespaces {
        match self {
            Self::V1_1 | Self::V1_2 => Namespaces {
                response: "http://www.loc.gov/zing/srw/",
                scan: "http://www.loc.gov/zing/srw/",
                diagnostic: "http://www.loc.gov/zing/srw/diagnostic/",
            },
            Self::V2_0 => Namespaces {
                response: "http://docs.oasis-open.org/ns/search-ws/sruResponse",
                scan: "http://docs.oasis-open.org/ns/search-ws/scan",
                diagnostic: "http://docs.oasis-open.org/ns/search-ws/diagnostic",
            },
        }
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultList {
    /// The number of all found records.
    pub total: u64,
    /// Whether `total` is estimated.
    pub is_estimate: bool,
    /// The number of records before those of this response.
    pub offset: usize,
    /// The records of this response.
    pub records: Vec<FoundRecord>,
}

impl ResultList {
    /// The position of the record after those of this response, from 1. `None` at the end, and after the last position
    /// that the server sends.
    fn next_position(&self) -> Option<usize> {
        let next = self.offset + self.records.len() + 1;
        let is_last = self.records.is_empty() || next as u64 > self.total || next > POSITION_MAX;
        (!is_last).then_some(next)
    }
}

/// A found record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// Its identifier.
    pub identifier: String,
    /// Its metadata, an XML element that declares its namespaces, or why it is not sent.
    pub metadata: Result<String, Diagnostic>,
}

/// A value of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedTerm {
    /// The value.
    pub value: String,
    /// The number of records that have it.
    pub records: u64,
}

impl Envelope {
    /// The media type of the response.
    pub const fn content_type(&self) -> &'static str {
        self.content_type
    }

    /// The response to a search.
    pub fn records(&self, schema: RecordSchema, list: &ResultList) -> String {
        let mut xml = self.start("searchRetrieveResponse");
        element("numberOfRecords", &list.total.to_string(), &mut xml);
        if !list.records.is_empty() {
            xml.push_str("<records>\n");
            for (index, record) in list.records.iter().enumerate() {
                self.write_record(schema, list.offset + index + 1, record, &mut xml);
            }
            xml.push_str("</records>\n");
        }
        if let Some(next) = list.next_position() {
            element("nextRecordPosition", &next.to_string(), &mut xml);
        }
        self.write_echo("echoedSearchRetrieveRequest", &mut xml);
        if !self.version.is_first() {
            let precision = if list.is_estimate { "estimate" } else { "exact" };
            let precision = format!("info:srw/vocabulary/resultCountPrecision/1/{precision}");
            element("resultCountPrecision", &precision, &mut xml);
        }
        xml.push_str("</searchRetrieveResponse>\n");
        xml
    }

    /// The response to a scan.
    pub fn terms(&self, terms: &[ScannedTerm]) -> String {
        let mut xml = self.start("scanResponse");
        if !terms.is_empty() {
            // yaz-client 5.34 takes a space between two terms for a term, and crashes.
            xml.push_str("<terms>");
            for term in terms {
                xml.push_str("<term>");
                element("value", &term.value, &mut xml);
                element("numberOfRecords", &term.records.to_string(), &mut xml);
                xml.push_str("</term>");
            }
            xml.push_str("</terms>\n");
        }
        self.write_echo("echoedScanRequest", &mut xml);
        xml.push_str("</scanResponse>\n");
        xml
    }

    /// The response to a request that failed.
    pub fn failure(&self, diagnostic: &Diagnostic) -> String {
        let (name, echo) = if self.is_scan {
            ("scanResponse", "echoedScanRequest")
        } else {
            ("searchRetrieveResponse", "echoedSearchRetrieveRequest")
        };
        let mut xml = self.start(name);
        if !self.is_scan {
            element("numberOfRecords", "0", &mut xml);
        }
        self.write_echo(echo, &mut xml);
        xml.push_str("<diagnostics>");
        xml.push_str(&self.diagnostic(diagnostic));
        xml.push_str(&format!("</diagnostics>\n</{name}>\n"));
        xml
    }

    /// The start of a response with this element.
    pub(crate) fn start(&self, name: &str) -> String {
        let namespaces = self.version.namespaces();
        let is_new_scan = name == "scanResponse" && !self.version.is_first();
        let namespace = if is_new_scan { namespaces.scan } else { namespaces.response };
        let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{name} xmlns=\"{namespace}\">\n");
        if !is_new_scan {
            element("version", self.version.name(), &mut xml);
        }
        xml
    }

    fn write_record(&self, schema: RecordSchema, position: usize, record: &FoundRecord, xml: &mut String) {
        let diagnostic;
        let (schema, data) = match &record.metadata {
            Ok(metadata) => (schema.uri(), metadata),
            Err(problem) => {
                diagnostic = self.diagnostic(problem);
                ("info:srw/schema/1/diagnostics-v1.1", &diagnostic)
            }
        };
        xml.push_str("<record>");
        element("recordSchema", schema, xml);
        self.write_data(data, xml);
        // Only SRU 1.2 has a place for the identifier.
        if self.version == Version::V1_2 {
            element("recordIdentifier", &record.identifier, xml);
        }
        element("recordPosition", &position.to_string(), xml);
        xml.push_str("</record>\n");
    }

    /// The element with an XML element, as XML or as an escaped text.
    pub(crate) fn write_data(&self, data: &str, xml: &mut String) {
        let name = if self.version.is_first() { "recordPacking" } else { "recordXMLEscaping" };
        element(name, if self.is_string { "string" } else { "xml" }, xml);
        if self.is_string {
            return element("recordData", data, xml);
        }
        xml.push_str("<recordData>");
        xml.push_str(data);
        xml.push_str("</recordData>");
    }

    fn diagnostic(&self, diagnostic: &Diagnostic) -> String {
        let mut xml = format!("<diagnostic xmlns=\"{}\">", self.version.namespaces().diagnostic);
        let code = diagnostic.code;
        element("uri", &format!("info:srw/diagnostic/1/{}", code.number()), &mut xml);
        if !diagnostic.details.is_empty() {
            element("details", &diagnostic.details, &mut xml);
        }
        element("message", code.message(), &mut xml);
        xml.push_str("</diagnostic>");
        xml
    }

    pub(crate) fn write_echo(&self, name: &str, xml: &mut String) {
        // The schema of SRU 2.0 has no scan without a clause.
        if self.is_scan && self.echo.is_empty() {
            return;
        }
        xml.push_str(&format!("<{name}>"));
        for (parameter, value) in &self.echo {
            element(parameter, value, xml);
        }
        xml.push_str(&format!("</{name}>\n"));
    }
}

/// Writes an element with a text.
pub(crate) fn element(name: &str, text: &str, xml: &mut String) {
    xml.push_str(&format!("<{name}>"));
    escape(text, xml);
    xml.push_str(&format!("</{name}>"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiagnosticCode, Request};

    fn envelope(query: &str) -> Envelope {
        match Request::parse(query.as_bytes()) {
            Ok(request) => request.envelope,
            Err(refused) => refused.envelope,
        }
    }

    fn record(metadata: Result<String, Diagnostic>) -> FoundRecord {
        FoundRecord { identifier: "oai:a&b".to_owned(), metadata }
    }

    fn list() -> ResultList {
        let gone = Diagnostic { code: DiagnosticCode::RecordDoesNotExist, details: String::new() };
        ResultList {
            total: 3,
            is_estimate: false,
            offset: 0,
            records: vec![record(Ok("<d xmlns=\"urn:d\">&amp;</d>".to_owned())), record(Err(gone))],
        }
    }

    #[test]
    fn records_of_sru_1_2() {
        let query = "operation=searchRetrieve&version=1.2&query=a<b%00&maximumRecords=2&startRecord=1&recordSchema=dc";
        assert_eq!(
            envelope(query).records(RecordSchema::DublinCore, &list()),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <searchRetrieveResponse xmlns=\"http://www.loc.gov/zing/srw/\">\n\
             <version>1.2</version><numberOfRecords>3</numberOfRecords><records>\n\
             <record><recordSchema>info:srw/schema/1/dc-v1.1</recordSchema><recordPacking>xml</recordPacking>\
             <recordData><d xmlns=\"urn:d\">&amp;</d></recordData>\
             <recordIdentifier>oai:a&amp;b</recordIdentifier><recordPosition>1</recordPosition></record>\n\
             <record><recordSchema>info:srw/schema/1/diagnostics-v1.1</recordSchema>\
             <recordPacking>xml</recordPacking>\
             <recordData><diagnostic xmlns=\"http://www.loc.gov/zing/srw/diagnostic/\">\
             <uri>info:srw/diagnostic/1/65</uri><message>Record does not exist</message></diagnostic></recordData>\
             <recordIdentifier>oai:a&amp;b</recordIdentifier><recordPosition>2</recordPosition></record>\n\
             </records>\n<nextRecordPosition>3</nextRecordPosition>\
             <echoedSearchRetrieveRequest><version>1.2</version><query>a&lt;b\u{fffd}</query>\
             <startRecord>1</startRecord><maximumRecords>2</maximumRecords><recordSchema>dc</recordSchema>\
             </echoedSearchRetrieveRequest>\n</searchRetrieveResponse>\n"
        );
    }

    #[test]
    fn records_of_sru_2_0() {
        let mut list = list();
        list.records.truncate(1);
        list.offset = 1;
        list.is_estimate = true;
        assert_eq!(
            envelope("query=a&recordXMLEscaping=string").records(RecordSchema::MarcXml, &list),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <searchRetrieveResponse xmlns=\"http://docs.oasis-open.org/ns/search-ws/sruResponse\">\n\
             <version>2.0</version><numberOfRecords>3</numberOfRecords><records>\n\
             <record><recordSchema>info:srw/schema/1/marcxml-v1.1</recordSchema>\
             <recordXMLEscaping>string</recordXMLEscaping>\
             <recordData>&lt;d xmlns=&quot;urn:d&quot;&gt;&amp;amp;&lt;/d&gt;</recordData>\
             <recordPosition>2</recordPosition></record>\n</records>\n\
             <nextRecordPosition>3</nextRecordPosition>\
             <echoedSearchRetrieveRequest><query>a</query><recordXMLEscaping>string</recordXMLEscaping>\
             </echoedSearchRetrieveRequest>\n\
             <resultCountPrecision>info:srw/vocabulary/resultCountPrecision/1/estimate</resultCountPrecision>\
             </searchRetrieveResponse>\n"
        );
    }

    #[test]
    fn the_last_records_have_no_next_position() {
        let next = |total, offset, count| {
            let gone = record(Err(Diagnostic::new(DiagnosticCode::RecordDoesNotExist, "")));
            ResultList { total, is_estimate: false, offset, records: vec![gone; count] }.next_position()
        };
        assert_eq!(next(20, 0, 10), Some(11));
        assert_eq!(next(20, 10, 10), None);
        assert_eq!(next(20, 0, 0), None, "only the number was requested");
        assert_eq!(next(1_000_000, 9_980, 19), Some(10_000));
        assert_eq!(next(1_000_000, 9_980, 20), None);
    }

    #[test]
    fn terms_are_listed_with_their_records() {
        let terms = [ScannedTerm { value: "a & b".to_owned(), records: 2 }];
        for (query, start) in [
            (
                "operation=scan&version=1.1&scanClause=dc.title=a",
                "<scanResponse xmlns=\"http://www.loc.gov/zing/srw/\">\n<version>1.1</version>",
            ),
            (
                "scanClause=dc.title=a",
                "<scanResponse xmlns=\"http://docs.oasis-open.org/ns/search-ws/scan\">\n",
            ),
        ] {
            let xml = envelope(query).terms(&terms);
            let term =
                "<terms><term><value>a &amp; b</value><numberOfRecords>2</numberOfRecords></term></terms>\n";
            assert!(xml.contains(&format!("{start}{term}<echoedScanRequest>")), "{xml}");
        }
        assert!(!envelope("scanClause=dc.title=a").terms(&[]).contains("<terms"));
    }

    #[test]
    fn a_failure_is_a_response_of_its_operation() {
        let diagnostic = Diagnostic::new(DiagnosticCode::UnsupportedIndex, "a&b");
        let xml = envelope("operation=searchRetrieve&version=1.1&query=x.y=a").failure(&diagnostic);
        let expected = "<numberOfRecords>0</numberOfRecords><echoedSearchRetrieveRequest><version>1.1</version>\
                        <query>x.y=a</query></echoedSearchRetrieveRequest>\n<diagnostics>\
                        <diagnostic xmlns=\"http://www.loc.gov/zing/srw/diagnostic/\">\
                        <uri>info:srw/diagnostic/1/16</uri><details>a&amp;b</details>\
                        <message>Unsupported index</message></diagnostic></diagnostics>\n</searchRetrieveResponse>\n";
        assert!(xml.ends_with(expected), "{xml}");
        let xml = envelope("scanClause=x").failure(&diagnostic);
        assert!(xml.contains("</diagnostics>\n</scanResponse>"), "{xml}");
        assert!(xml.contains("\"http://docs.oasis-open.org/ns/search-ws/diagnostic\""), "{xml}");
    }
}
