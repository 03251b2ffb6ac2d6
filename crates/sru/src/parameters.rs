//! The parameters of a request, decoded.

use crate::{Diagnostic, DiagnosticCode};
use percent_encoding::percent_decode;
use std::collections::BTreeMap;

/// The parameters that have an effect, or none by their definition.
const KNOWN: [&str; 17] = [
    "operation",
    "version",
    "query",
    "queryType",
    "startRecord",
    "maximumRecords",
    "recordPacking",
    "recordXMLEscaping",
    "recordSchema",
    "resultSetTTL",
    "sortKeys",
    "stylesheet",
    "renderedBy",
    "httpAccept",
    "scanClause",
    "responsePosition",
    "maximumTerms",
];

/// The parameters by their names. Names are compared with regard to case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    values: BTreeMap<&'static str, String>,
    /// The first thing that is wrong.
    pub(crate) fault: Option<Diagnostic>,
}

impl Parameters {
    /// Reads a query string or a form. Empty values are as none. Names that begin with `x-` belong to extensions, and are
    /// ignored.
    pub(crate) fn read(encoded: &[u8]) -> Self {
        let mut parameters = Self::default();
        for pair in encoded.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()) {
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let (name, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
            if let Err(fault) = parameters.add(&decode(name), &decode(value)) {
                parameters.fault.get_or_insert(fault);
            }
        }
        parameters
    }

    fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Diagnostic> {
        let Some(known) = KNOWN.into_iter().find(|known| known.as_bytes() == name) else {
            if name.starts_with(b"x-") {
                return Ok(());
            }
            let name = String::from_utf8_lossy(name);
            return Err(Diagnostic::new(DiagnosticCode::UnsupportedParameter, name));
        };
        let value = std::str::from_utf8(value).map_err(|_| match known {
            "query" | "scanClause" => Diagnostic::new(DiagnosticCode::QuerySyntaxError, "it is not UTF-8"),
            _ => Diagnostic::new(DiagnosticCode::UnsupportedParameterValue, known),
        })?;
        if value.is_empty() {
            return Ok(());
        }
        if self.values.insert(known, value.to_owned()).is_some() {
            return Err(Diagnostic::new(DiagnosticCode::UnsupportedParameterValue, known));
        }
        Ok(())
    }

    pub(crate) fn value(&self, name: &'static str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Whether nothing but the form of the response is given, as in a request for the description of the server.
    pub(crate) fn concerns_no_query(&self) -> bool {
        let forms =
            ["version", "recordPacking", "recordXMLEscaping", "stylesheet", "renderedBy", "httpAccept"];
        self.values.keys().all(|name| forms.contains(name))
    }

    /// A number that is not negative. One beyond 64 bits is the largest.
    pub(crate) fn number(&self, name: &'static str) -> Result<Option<u64>, Diagnostic> {
        let Some(value) = self.value(name) else { return Ok(None) };
        if value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Some(value.parse().unwrap_or(u64::MAX)));
        }
        let is_negative = value.strip_prefix('-').is_some_and(|value| value.parse::<u64>().is_ok());
        Err(match name {
            "startRecord" if is_negative => {
                Diagnostic::new(DiagnosticCode::FirstRecordPositionOutOfRange, value)
            }
            "maximumRecords" if is_negative => {
                Diagnostic::new(DiagnosticCode::NegativeNumberOfRecordsRequested, value)
            }
            _ => Diagnostic::new(DiagnosticCode::UnsupportedParameterValue, name),
        })
    }
}

fn decode(encoded: &[u8]) -> Vec<u8> {
    let spaces: Vec<u8> = encoded.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    percent_decode(&spaces).collect()
}
