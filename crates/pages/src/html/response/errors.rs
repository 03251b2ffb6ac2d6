//! Errors of OAI-PMH with advice.

use super::super::super::oai_page::OaiError;
use super::super::fields_table::left_out;
use super::links::RequestLinks;
use crate::texts::response as texts;
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
        Some(ErrorCode::BadArgument) => texts::BAD_ARGUMENT_TITLE,
        Some(ErrorCode::BadResumptionToken) => texts::BAD_TOKEN_TITLE,
        Some(ErrorCode::BadVerb) => texts::BAD_VERB_TITLE,
        Some(ErrorCode::CannotDisseminateFormat) => texts::NO_FORMAT_TITLE,
        Some(ErrorCode::IdDoesNotExist) => texts::NO_RECORD_TITLE,
        Some(ErrorCode::NoRecordsMatch) => texts::NO_MATCH_TITLE,
        Some(ErrorCode::NoMetadataFormats) => texts::NO_FORMATS_TITLE,
        Some(ErrorCode::NoSetHierarchy) => texts::NO_SETS_TITLE,
        None => texts::ERROR_TITLE,
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
                    (texts::BAD_ARGUMENT)
                },
                Some(ErrorCode::BadResumptionToken) => {
                    (texts::bad_token(&links.url_of(&first_page)))
                },
                Some(ErrorCode::BadVerb) => {
                    (texts::BAD_VERB)
                },
                Some(ErrorCode::CannotDisseminateFormat) => {
                    (texts::no_format(&links.url_of(&Request::list_metadata_formats(identifier))))
                },
                Some(ErrorCode::IdDoesNotExist) => {
                    (texts::no_record(&links.url_of(&whole_list.to_list_identifiers())))
                },
                Some(ErrorCode::NoRecordsMatch) => {
                    (texts::no_match(&links.url_of(&whole_list)))
                },
                Some(ErrorCode::NoMetadataFormats) => { (texts::NO_FORMATS) },
                Some(ErrorCode::NoSetHierarchy) => {
                    (texts::no_sets(&links.url_of(&whole_list)))
                },
                None => { (texts::UNKNOWN_ERROR) },
            }
        }
    }
}
