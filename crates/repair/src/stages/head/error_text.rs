//! The intended code of an error whose code is illegal: first by its spelling, then by its text.
//!
//! [`repair_error`](super::error_element::repair_error) uses it.
//!
//! Harvesters act on the code. A wrong code can tell them that records are deleted or unchanged. Therefore
//! a text counts only if it describes the request. It never counts if it describes a temporary failure.

use crate::lex::known_namespaces::is_within_distance;
use crate::stages::request::RequestFacts;
use oaimend_oai::{ErrorCode, Verb};

const ERROR_CODES: [ErrorCode; 8] = [
    ErrorCode::BadArgument,
    ErrorCode::BadResumptionToken,
    ErrorCode::BadVerb,
    ErrorCode::CannotDisseminateFormat,
    ErrorCode::IdDoesNotExist,
    ErrorCode::NoRecordsMatch,
    ErrorCode::NoMetadataFormats,
    ErrorCode::NoSetHierarchy,
];

/// Words of a failure at the source. An error with such a word does not describe the request.
const TROUBLE: &[&str] = &[
    "unavailable",
    "internal",
    "exception",
    "stack trace",
    "timeout",
    "timed out",
    "time out",
    "try again",
    "temporar",
    "later",
    "maintenance",
    "overload",
    "too many requests",
    "rate limit",
    "busy",
    "database",
    "sql",
    "connection",
    "server error",
    "unexpected",
    "fatal",
    "denied",
    "forbidden",
    "authori",
];

/// A text with a word of both groups has this code. The first match wins.
const WORDS: &[(ErrorCode, &[&str], &[&str])] = &[
    (
        ErrorCode::BadResumptionToken,
        &["resumptiontoken", "resumption token"],
        &["invalid", "not valid", "expired", "unknown", "illegal", "bad ", "malformed", "not recognized"],
    ),
    (
        ErrorCode::CannotDisseminateFormat,
        &["metadataprefix", "metadata prefix", "metadata format", "metadataformat"],
        &["not supported", "unsupported", "unknown", "not available", "disseminat", "does not exist"],
    ),
    (
        ErrorCode::IdDoesNotExist,
        &["identifier"],
        &["does not exist", "doesn't exist", "not found", "unknown", "no such", "no item", "no record"],
    ),
    (
        ErrorCode::NoSetHierarchy,
        &["set hierarch", "sets"],
        &["not support", "does not have", "no set", "unsupported"],
    ),
    (ErrorCode::NoMetadataFormats, &["metadata format"], &["no metadata format", "there are no"]),
    (
        ErrorCode::NoRecordsMatch,
        &["no record", "no matching record", "no item", "no result", "empty list", "empty result"],
        &["match", "found", "criteria", "empty", "returned", "no result", "combination", "available"],
    ),
    (ErrorCode::BadVerb, &["verb argument", "oai-pmh verb", "oai verb", "illegal verb", "bad verb"], &[""]),
    (
        ErrorCode::BadArgument,
        &["argument", "parameter"],
        &[
            "illegal",
            "invalid",
            "missing",
            "required",
            "unknown",
            "repeated",
            "bad ",
            "not allowed",
            "syntax",
        ],
    ),
];

/// Returns the code intended by a possibly illegal code and the text of the error.
pub(crate) fn intended_error(code: &str, text: &str) -> Option<ErrorCode> {
    nearest_code(code).or_else(|| code_by_text(code, text))
}

/// Returns the code for the same problem that the requested verb allows (OAI-PMH 2.0, section 4).
///
/// Returns the code itself if the verb allows it, if no other code has the same meaning, or if the request is only
/// known from the response, which proves nothing.
pub(crate) fn code_for_request(code: ErrorCode, request: &RequestFacts) -> ErrorCode {
    use ErrorCode::{
        BadArgument, BadResumptionToken, CannotDisseminateFormat, IdDoesNotExist, NoMetadataFormats,
        NoRecordsMatch, NoSetHierarchy,
    };
    let (Some(verb), true) = (request.verb, request.is_configured) else { return code };
    match (verb, code) {
        // A token is the only argument then, so the token is the bad argument.
        (Verb::ListRecords | Verb::ListIdentifiers | Verb::ListSets, BadArgument | IdDoesNotExist)
            if request.resumes =>
        {
            BadResumptionToken
        }
        (Verb::GetRecord, NoRecordsMatch) => IdDoesNotExist,
        (Verb::GetRecord | Verb::ListRecords | Verb::ListIdentifiers, NoMetadataFormats) => {
            CannotDisseminateFormat
        }
        (Verb::ListRecords | Verb::ListIdentifiers, IdDoesNotExist) => NoRecordsMatch,
        (Verb::ListMetadataFormats, NoRecordsMatch) if request.identifier.is_some() => IdDoesNotExist,
        (Verb::ListMetadataFormats, CannotDisseminateFormat) => NoMetadataFormats,
        (Verb::ListSets, NoRecordsMatch) => NoSetHierarchy,
        _ => code,
    }
}

/// Returns the intended code: it differs only in case and blanks, or in at most two letters.
fn nearest_code(written: &str) -> Option<ErrorCode> {
    let written = written.trim().to_ascii_lowercase();
    let exact = ERROR_CODES.into_iter().find(|code| code.name().eq_ignore_ascii_case(&written));
    exact.or_else(|| {
        ERROR_CODES.into_iter().find(|code| {
            is_within_distance(code.name().to_ascii_lowercase().as_bytes(), written.as_bytes(), 2)
        })
    })
}

fn code_by_text(code: &str, text: &str) -> Option<ErrorCode> {
    let (code, text) = (code.to_ascii_lowercase(), text.to_ascii_lowercase());
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(TROUBLE) || TROUBLE.iter().any(|word| code.contains(word)) {
        return None;
    }
    let mut named = ERROR_CODES.into_iter().filter(|code| text.contains(&code.name().to_ascii_lowercase()));
    match (named.next(), named.next()) {
        (Some(code), None) => return Some(code),
        (Some(_), Some(_)) => return None,
        _ => {}
    }
    WORDS.iter().find(|(_, subject, fault)| has(subject) && has(fault)).map(|(code, ..)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The explanations of the codes in section 3.6 of the specification.
    #[test]
    fn the_words_of_the_specification_are_understood() {
        let explanations = [
            (
                ErrorCode::BadArgument,
                "The request includes illegal arguments, is missing required arguments, includes a repeated \
                 argument, or values for arguments have an illegal syntax.",
            ),
            (
                ErrorCode::BadResumptionToken,
                "The value of the resumptionToken argument is invalid or expired.",
            ),
            (
                ErrorCode::BadVerb,
                "Value of the verb argument is not a legal OAI-PMH verb, the verb argument is missing, or the \
                 verb argument is repeated.",
            ),
            (
                ErrorCode::CannotDisseminateFormat,
                "The metadata format identified by the value given for the metadataPrefix argument is not \
                 supported by the item or by the repository.",
            ),
            (
                ErrorCode::IdDoesNotExist,
                "The value of the identifier argument is unknown or illegal in this repository.",
            ),
            (
                ErrorCode::NoRecordsMatch,
                "The combination of the values of the from, until, set and metadataPrefix arguments results in \
                 an empty list. No records match.",
            ),
            (ErrorCode::NoMetadataFormats, "There are no metadata formats for the specified item."),
            (ErrorCode::NoSetHierarchy, "The repository does not support sets."),
        ];
        for (code, text) in explanations {
            assert_eq!(intended_error("error", text), Some(code), "{text}");
            assert_eq!(intended_error("", &text.to_uppercase()), Some(code), "{text}");
        }
    }

    #[test]
    fn what_passes_by_itself_says_nothing_of_the_request() {
        for text in [
            "Service temporarily unavailable",
            "No records found: connection to database timed out",
            "Internal error while reading argument set",
            "An error occurred",
            "",
        ] {
            assert_eq!(intended_error("undefinedError", text), None, "{text}");
        }
        assert_eq!(intended_error("serviceUnavailable", "No records match."), None);
        assert_eq!(intended_error("badArgument", "try again later"), Some(ErrorCode::BadArgument));
    }

    #[test]
    fn codes_that_a_verb_does_not_allow_become_those_it_allows() {
        let request = |verb, resumes, identifier: Option<&str>| RequestFacts {
            verb: Some(verb),
            identifier: identifier.map(|identifier| identifier.as_bytes().to_vec()),
            resumes,
            is_configured: true,
        };
        let record = request(Verb::GetRecord, false, Some("oai:x:1"));
        let (first, later) =
            (request(Verb::ListRecords, false, None), request(Verb::ListIdentifiers, true, None));
        let formats = request(Verb::ListMetadataFormats, false, Some("oai:x:1"));
        let sets = request(Verb::ListSets, true, None);
        for (request, written, expected) in [
            (&record, ErrorCode::NoRecordsMatch, ErrorCode::IdDoesNotExist),
            (&record, ErrorCode::NoMetadataFormats, ErrorCode::CannotDisseminateFormat),
            (&record, ErrorCode::BadArgument, ErrorCode::BadArgument),
            (&first, ErrorCode::IdDoesNotExist, ErrorCode::NoRecordsMatch),
            (&first, ErrorCode::BadArgument, ErrorCode::BadArgument),
            (&first, ErrorCode::NoSetHierarchy, ErrorCode::NoSetHierarchy),
            (&later, ErrorCode::BadArgument, ErrorCode::BadResumptionToken),
            (&later, ErrorCode::IdDoesNotExist, ErrorCode::BadResumptionToken),
            (&later, ErrorCode::NoRecordsMatch, ErrorCode::NoRecordsMatch),
            (&formats, ErrorCode::NoRecordsMatch, ErrorCode::IdDoesNotExist),
            (&formats, ErrorCode::CannotDisseminateFormat, ErrorCode::NoMetadataFormats),
            (&sets, ErrorCode::BadArgument, ErrorCode::BadResumptionToken),
            (&sets, ErrorCode::NoRecordsMatch, ErrorCode::NoSetHierarchy),
            (&RequestFacts::default(), ErrorCode::NoRecordsMatch, ErrorCode::NoRecordsMatch),
        ] {
            assert_eq!(code_for_request(written, request), expected, "{:?} {written:?}", request.verb);
        }
    }

    #[test]
    fn a_text_that_names_two_codes_names_none() {
        assert_eq!(intended_error("x", "badVerb or badArgument"), None);
        assert_eq!(intended_error("x", "OAI error noRecordsMatch"), Some(ErrorCode::NoRecordsMatch));
    }
}
