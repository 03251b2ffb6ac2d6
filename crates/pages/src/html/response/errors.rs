//! Errors of OAI-PMH with advice.

use super::super::super::oai_page::OaiError;
use super::super::fields_table::left_out;
use super::links::RequestLinks;
use maud::{Markup, html};
use oaimend_oai::{Argument, ErrorCode, Request};

const CODES: [ErrorCode; 8] = [
    ErrorCode::BadArgument,
    ErrorCode::BadResumptionToken,
    ErrorCode::BadVerb,
    ErrorCode::CannotDisseminateFormat,
    ErrorCode::IdDoesNotExist,
    ErrorCode::NoRecordsMatch,
    ErrorCode::NoMetadataFormats,
    ErrorCode::NoSetHierarchy,
];

fn code_of(error: &OaiError) -> Option<ErrorCode> {
    CODES.into_iter().find(|code| code.name() == error.code)
}

/// The title of a page of errors.
pub(super) fn title(errors: &[OaiError]) -> &'static str {
    match errors.first().and_then(code_of) {
        Some(ErrorCode::BadArgument) => "Wrong arguments",
        Some(ErrorCode::BadResumptionToken) => "The list cannot be continued",
        Some(ErrorCode::BadVerb) => "No such request",
        Some(ErrorCode::CannotDisseminateFormat) => "Format not available",
        Some(ErrorCode::IdDoesNotExist) => "No such record",
        Some(ErrorCode::NoRecordsMatch) => "No matching records",
        Some(ErrorCode::NoMetadataFormats) => "No formats",
        Some(ErrorCode::NoSetHierarchy) => "No sets",
        None => "Error",
    }
}

pub(super) fn errors(links: RequestLinks<'_>, errors: &[OaiError]) -> Markup {
    html! {
        @for error in errors {
            section.error {
                h2 { code { (error.code) } }
                @if !error.text.value.is_empty() {
                    p lang=(error.text.lang()) dir=(error.text.direction().name()) {
                        (error.text.value) (left_out(&error.text))
                    }
                }
                (advice(links, error))
            }
        }
    }
}

/// What the code means, and what a person can do now.
fn advice(links: RequestLinks<'_>, error: &OaiError) -> Markup {
    let identifier = links.request.and_then(|request| request.argument(Argument::Identifier));
    let link = |request: &Request, text: &str| html! { a href=(links.url_of(request)) { (text) } };
    let formats = Request::list_metadata_formats(None);
    let whole_list = Request::list_records(links.format(), None, None, None);
    let first_page = match links.request.filter(|request| request.verb().is_harvest()) {
        Some(request) if request.verb() == oaimend_oai::Verb::ListIdentifiers => {
            whole_list.to_list_identifiers()
        }
        _ => whole_list.clone(),
    };
    html! {
        p {
            @match code_of(error) {
                Some(ErrorCode::BadArgument) => {
                    "An argument of the URL is missing, unknown, repeated or not legal. Compare the URL below with \
                     the message above."
                },
                Some(ErrorCode::BadResumptionToken) => {
                    "The resumptionToken is not valid, or it has expired. "
                    (link(&first_page, "Start the list again")) "."
                },
                Some(ErrorCode::BadVerb) => {
                    "The URL names no request, or an unknown one. Choose one of the requests above."
                },
                Some(ErrorCode::CannotDisseminateFormat) => {
                    "The repository or the record does not have this format. Choose one of its "
                    (link(&identifier.map_or(formats, |name| Request::list_metadata_formats(Some(name))), "formats"))
                    "."
                },
                Some(ErrorCode::IdDoesNotExist) => {
                    "No record has this identifier. Compare it with the "
                    (link(&whole_list.to_list_identifiers(), "list of identifiers")) "."
                },
                Some(ErrorCode::NoRecordsMatch) => {
                    "No record has these dates, this set and this format. The request is correct. You can open the "
                    (link(&whole_list, "whole list")) "."
                },
                Some(ErrorCode::NoMetadataFormats) => { "No format of this record is available." },
                Some(ErrorCode::NoSetHierarchy) => {
                    "The repository has no sets. You can open the " (link(&whole_list, "list of all records")) "."
                },
                None => { "OAI-PMH 2.0 does not define this error code. The operator of the repository knows more." },
            }
        }
    }
}
