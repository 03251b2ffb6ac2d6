//! The eight error codes, and a complete response with one of them.

use crate::envelope::{escape, response_head};
use crate::named_enum;
use crate::request_echo::RequestEcho;

named_enum! {
    /// An error code of OAI-PMH 2.0, section 3.6.
    ///
    /// ```
    /// use oaimend_oai::{ErrorCode, RequestEcho, error_response};
    ///
    /// let request = RequestEcho { base_url: "http://example.org/oai".to_owned(), arguments: Vec::new() };
    /// let page = error_response(&request, "2026-01-02T03:04:05Z", ErrorCode::BadVerb, "the verb is missing");
    /// assert!(page.contains("<error code=\"badVerb\">the verb is missing</error>"));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ErrorCode {
        /// Illegal, missing, repeated or excluded arguments.
        BadArgument = "badArgument",
        /// The resumptionToken is invalid or expired.
        BadResumptionToken = "badResumptionToken",
        /// The verb is missing, repeated or unknown.
        BadVerb = "badVerb",
        /// The item is not available in the requested format.
        CannotDisseminateFormat = "cannotDisseminateFormat",
        /// The item does not exist.
        IdDoesNotExist = "idDoesNotExist",
        /// No record matches from, until, set and metadataPrefix.
        NoRecordsMatch = "noRecordsMatch",
        /// The item has no formats.
        NoMetadataFormats = "noMetadataFormats",
        /// The repository has no sets.
        NoSetHierarchy = "noSetHierarchy",
    }
}

impl ErrorCode {
    /// Whether `request` must not have attributes in a response with this error (OAI-PMH 2.0,
    /// section 3.2).
    pub const fn forbids_attributes(self) -> bool {
        matches!(self, Self::BadVerb | Self::BadArgument)
    }
}

/// Writes a complete, valid response with one error.
///
/// `response_date` has the form `YYYY-MM-DDThh:mm:ssZ` and is not checked. The attributes of
/// `request` are left out if the code forbids them.
pub fn error_response(request: &RequestEcho, response_date: &str, code: ErrorCode, text: &str) -> String {
    let mut xml = response_head(request, response_date, !code.forbids_attributes());
    xml.push_str("  <error code=\"");
    xml.push_str(code.name());
    xml.push_str("\">");
    escape(text, &mut xml);
    xml.push_str("</error>\n</OAI-PMH>\n");
    xml
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::is_xml_char;

    fn get_record() -> RequestEcho {
        RequestEcho {
            base_url: "http://proxy.example/x?a=1&b=2".into(),
            arguments: vec![
                ("verb".into(), "GetRecord".into()),
                ("identifier".into(), "oai:x:\"1\" <&>\u{1}".into()),
            ],
        }
    }

    #[test]
    fn request_attributes_are_escaped_and_left_out_for_bad_arguments() {
        let date = "2026-01-02T03:04:05Z";
        let xml = error_response(&get_record(), date, ErrorCode::IdDoesNotExist, "no <such> item\u{0}");
        assert!(xml.contains(
            "<request verb=\"GetRecord\" identifier=\"oai:x:&quot;1&quot; &lt;&amp;&gt;\u{FFFD}\">\
             http://proxy.example/x?a=1&amp;b=2</request>"
        ));
        assert!(xml.contains("<error code=\"idDoesNotExist\">no &lt;such&gt; item\u{FFFD}</error>"));
        let xml = error_response(&get_record(), date, ErrorCode::BadArgument, "");
        assert!(xml.contains("<request>http://proxy.example/x?a=1&amp;b=2</request>"));
    }

    #[test]
    fn error_responses_are_well_formed_for_any_text() {
        for text in ["]]>", "<!--", "&#0;", "\u{FFFE}\u{FFFF}\u{B}", "é\u{1F600}"] {
            let xml = error_response(&get_record(), text, ErrorCode::BadVerb, text);
            let mut reader = quick_xml::Reader::from_str(&xml);
            let mut event = reader.read_event();
            while event.as_ref().is_ok_and(|event| *event != quick_xml::events::Event::Eof) {
                event = reader.read_event();
            }
            assert_eq!(event.err().map(|error| error.to_string()), None, "{xml}");
            assert!(xml.chars().all(is_xml_char));
        }
    }
}
