//! Deliberately invalid requests, and the expected errors.

use super::identify::Identity;
use crate::exchange::{CheckRequest, CheckResponse, Received};
use crate::findings::Findings;
use crate::rules::Rule;
use oaimend_oai::ErrorCode;

/// An invalid request and the errors that it should get.
pub(crate) struct InvalidRequest {
    pub(crate) rule: Rule,
    pub(crate) request: CheckRequest,
    codes: &'static [ErrorCode],
}

const BAD_VERB: &[ErrorCode] = &[ErrorCode::BadVerb];
const BAD_ARGUMENT: &[ErrorCode] = &[ErrorCode::BadArgument];
const NO_ITEM: &[ErrorCode] = &[ErrorCode::IdDoesNotExist];
const NO_ITEM_OR_ARGUMENT: &[ErrorCode] = &[ErrorCode::IdDoesNotExist, ErrorCode::BadArgument];
const NO_FORMAT: &[ErrorCode] = &[ErrorCode::CannotDisseminateFormat];
const NO_MATCH: &[ErrorCode] = &[ErrorCode::NoRecordsMatch];
const BAD_TOKEN: &[ErrorCode] = &[ErrorCode::BadResumptionToken];
const TOKEN_OR_NO_SETS: &[ErrorCode] = &[ErrorCode::BadResumptionToken, ErrorCode::NoSetHierarchy];
const TOKEN_OR_ARGUMENT: &[ErrorCode] = &[ErrorCode::BadArgument, ErrorCode::BadResumptionToken];

/// An identifier, a format and a token that no source has.
const UNKNOWN_IDENTIFIER: &str = "oai:oaimend.invalid:no-such-item";
const UNKNOWN_FORMAT: &str = "oaimend_no_such_format";
const UNKNOWN_TOKEN: &str = "oaimend-no-such-token";
/// A day that does not exist, in the form of a date.
const NO_DAY: &str = "2024-02-31";

/// What invalid requests contain of the repository, so that only one argument is invalid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidArguments<'a> {
    pub(crate) identity: &'a Identity,
    /// The identifier of an existing item, if one is known.
    pub(crate) identifier: Option<&'a str>,
    /// A token of ListIdentifiers, if there was one.
    pub(crate) token: Option<&'a str>,
}

/// All invalid requests.
pub(crate) fn invalid_requests(valid: ValidArguments<'_>) -> Vec<InvalidRequest> {
    let ValidArguments { identity, identifier, token } = valid;
    let invalid = |rule, codes, arguments: &[(&'static str, &str)]| InvalidRequest {
        rule,
        request: CheckRequest::get(arguments),
        codes,
    };
    let list = |verb| [("verb", verb), ("metadataPrefix", "oai_dc")];
    let [records, headers] = [list("ListRecords"), list("ListIdentifiers")];
    let known = identifier;
    let identifier = identifier.unwrap_or(UNKNOWN_IDENTIFIER);
    let mut all = vec![
        invalid(Rule::NoVerb, BAD_VERB, &[]),
        invalid(Rule::UnknownVerb, BAD_VERB, &[("verb", "oaimendNoSuchVerb")]),
        invalid(Rule::MissingArgument, BAD_ARGUMENT, &[("verb", "GetRecord"), ("metadataPrefix", "oai_dc")]),
        invalid(Rule::MissingArgument, BAD_ARGUMENT, &[("verb", "GetRecord"), ("identifier", identifier)]),
        invalid(Rule::MissingArgument, BAD_ARGUMENT, &[("verb", "ListRecords")]),
        invalid(Rule::UnknownArgument, BAD_ARGUMENT, &[("verb", "Identify"), ("oaimend", "1")]),
        invalid(Rule::RepeatedArgument, BAD_ARGUMENT, &[headers[0], headers[1], headers[1]]),
        invalid(
            Rule::QuoteInIdentifier,
            NO_ITEM_OR_ARGUMENT,
            &[("verb", "GetRecord"), ("identifier", "invalid\"id"), ("metadataPrefix", "oai_dc")],
        ),
        invalid(
            Rule::UnknownIdentifier,
            NO_ITEM,
            &[("verb", "GetRecord"), ("identifier", UNKNOWN_IDENTIFIER), ("metadataPrefix", "oai_dc")],
        ),
        invalid(
            Rule::UnknownFormat,
            NO_FORMAT,
            &[("verb", "ListIdentifiers"), ("metadataPrefix", UNKNOWN_FORMAT)],
        ),
        invalid(
            Rule::UnknownIdentifier,
            NO_ITEM,
            &[("verb", "ListMetadataFormats"), ("identifier", UNKNOWN_IDENTIFIER)],
        ),
        invalid(
            Rule::UnknownFormat,
            NO_FORMAT,
            &[("verb", "ListRecords"), ("metadataPrefix", UNKNOWN_FORMAT)],
        ),
        invalid(Rule::BadDate, BAD_ARGUMENT, &[records[0], records[1], ("from", NO_DAY)]),
        invalid(Rule::BadDate, BAD_ARGUMENT, &[headers[0], headers[1], ("until", NO_DAY)]),
        invalid(Rule::BadDate, BAD_ARGUMENT, &[headers[0], headers[1], ("from", "junk")]),
        invalid(Rule::BadDate, BAD_ARGUMENT, &[headers[0], headers[1], ("until", "junk")]),
        invalid(Rule::BadDate, BAD_ARGUMENT, &[records[0], records[1], ("from", "junk")]),
        invalid(Rule::BadDate, BAD_ARGUMENT, &[records[0], records[1], ("until", "junk")]),
        invalid(Rule::BadToken, BAD_TOKEN, &[records[0], ("resumptionToken", UNKNOWN_TOKEN)]),
        invalid(Rule::BadToken, BAD_TOKEN, &[headers[0], ("resumptionToken", UNKNOWN_TOKEN)]),
        invalid(
            Rule::BadToken,
            TOKEN_OR_NO_SETS,
            &[("verb", "ListSets"), ("resumptionToken", UNKNOWN_TOKEN)],
        ),
        invalid(
            Rule::ExclusiveToken,
            TOKEN_OR_ARGUMENT,
            &[headers[0], ("resumptionToken", UNKNOWN_TOKEN), ("until", "2000-02-05")],
        ),
        invalid(
            Rule::ExclusiveToken,
            TOKEN_OR_ARGUMENT,
            &[records[0], ("resumptionToken", UNKNOWN_TOKEN), records[1], ("until", "1990-01-10")],
        ),
    ];
    if let Some(known) = known {
        let record = [("verb", "GetRecord"), ("identifier", known), ("metadataPrefix", UNKNOWN_FORMAT)];
        all.push(invalid(Rule::UnknownFormat, NO_FORMAT, &record));
    }
    if let Some(token) = token {
        let list = [headers[0], ("resumptionToken", token), headers[1]];
        all.push(invalid(Rule::ExclusiveToken, TOKEN_OR_ARGUMENT, &list));
    }
    all.extend(invalid_dates(identity));
    all
}

/// The invalid requests that depend on the granularity and on the lowest datestamp.
fn invalid_dates(identity: &Identity) -> Vec<InvalidRequest> {
    let invalid = |rule, codes, arguments: &[(&'static str, &str)]| InvalidRequest {
        rule,
        request: CheckRequest::get(arguments),
        codes,
    };
    let records = [("verb", "ListRecords"), ("metadataPrefix", "oai_dc")];
    let mut all = Vec::new();
    let day = identity.earliest.as_deref().and_then(|earliest| earliest.get(..10)).unwrap_or("2000-01-01");
    let second = format!("{day}T00:00:00Z");
    all.push(invalid(
        Rule::MixedGranularity,
        BAD_ARGUMENT,
        &[records[0], records[1], ("from", day), ("until", &second)],
    ));
    if identity.datestamp_chars == Some(10) {
        all.push(invalid(Rule::TooFine, BAD_ARGUMENT, &[records[0], records[1], ("from", &second)]));
    }
    // The window has the granularity of the repository, so that only its order is invalid.
    let date = identity.earliest.as_deref().unwrap_or("2000-01-01");
    if let Some(later) = shift_years(date, 1) {
        let window = [records[0], records[1], ("from", later.as_str()), ("until", date)];
        all.push(invalid(Rule::FromAfterUntil, BAD_ARGUMENT, &window));
    }
    if let Some(before) = identity.earliest.as_deref().and_then(|earliest| shift_years(earliest, -1)) {
        all.push(invalid(Rule::EmptyWindow, NO_MATCH, &[records[0], records[1], ("until", &before)]));
    }
    all
}

/// The same day of another year; February 29 becomes February 28.
fn shift_years(date: &str, years: i32) -> Option<String> {
    let (year, rest) = date.split_at_checked(4)?;
    let year = year.parse::<i32>().ok()? + years;
    let rest = rest.replacen("-02-29", "-02-28", 1);
    (1..=9999).contains(&year).then(|| format!("{year:04}{rest}"))
}

/// Judges whether the response contains an expected error.
pub(crate) fn judge(invalid: &InvalidRequest, response: &CheckResponse, findings: &mut Findings) {
    // For a quotation mark a malformed response is the very failure that the rule looks for.
    let judges_malformed =
        invalid.rule == Rule::QuoteInIdentifier && matches!(response.received, Received::Complete(_));
    if !judges_malformed && !findings.is_judgeable(invalid.rule, response) {
        return;
    }
    let codes = response.errors();
    let holds = invalid.codes.iter().any(|expected| codes.contains(&expected.name()));
    findings.judge(invalid.rule, holds, response, response.summarize());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifted_years_give_existing_days() {
        assert_eq!(shift_years("2024-02-29", 1).as_deref(), Some("2025-02-28"));
        assert_eq!(shift_years("1970-01-01T00:00:00Z", -1).as_deref(), Some("1969-01-01T00:00:00Z"));
        assert_eq!(shift_years("0001-01-01", -1), None);
    }
}
