//! Requests that are wrong on purpose, and the errors that are wanted.

use super::answer::{Answer, Asked, Came};
use super::findings::Findings;
use super::identify::Identity;
use super::rules::Rule;
use crate::oai::ErrorCode;

/// A request that is wrong, and the errors that answer it.
pub(super) struct Wrong {
    pub(super) rule: Rule,
    pub(super) asked: Asked,
    codes: &'static [ErrorCode],
}

const BAD_VERB: &[ErrorCode] = &[ErrorCode::BadVerb];
const BAD_ARGUMENT: &[ErrorCode] = &[ErrorCode::BadArgument];
const NO_ITEM: &[ErrorCode] = &[ErrorCode::IdDoesNotExist];
const NO_ITEM_OR_ARGUMENT: &[ErrorCode] = &[ErrorCode::IdDoesNotExist, ErrorCode::BadArgument];
const NO_FORMAT: &[ErrorCode] = &[ErrorCode::CannotDisseminateFormat];
const NO_MATCH: &[ErrorCode] = &[ErrorCode::NoRecordsMatch];
const BAD_TOKEN: &[ErrorCode] = &[ErrorCode::BadResumptionToken];
const TOKEN_OR_ARGUMENT: &[ErrorCode] = &[ErrorCode::BadArgument, ErrorCode::BadResumptionToken];

/// An identifier, a format and a token that nobody has given out.
const NOBODYS_IDENTIFIER: &str = "oai:oaimend.invalid:no-such-item";
const NOBODYS_FORMAT: &str = "oaimend_no_such_format";
const NOBODYS_TOKEN: &str = "oaimend-no-such-token";

/// All of them; `identifier` is one of an item that exists, if any is known.
pub(super) fn wrong_requests(identity: &Identity, identifier: Option<&str>) -> Vec<Wrong> {
    let wrong =
        |rule, codes, arguments: &[(&'static str, &str)]| Wrong { rule, asked: Asked::get(arguments), codes };
    let list = |verb| [("verb", verb), ("metadataPrefix", "oai_dc")];
    let [records, headers] = [list("ListRecords"), list("ListIdentifiers")];
    let item = identifier.unwrap_or(NOBODYS_IDENTIFIER);
    let mut all = vec![
        wrong(Rule::NoVerb, BAD_VERB, &[]),
        wrong(Rule::UnknownVerb, BAD_VERB, &[("verb", "oaimendNoSuchVerb")]),
        wrong(Rule::MissingArgument, BAD_ARGUMENT, &[("verb", "GetRecord"), ("metadataPrefix", "oai_dc")]),
        wrong(Rule::MissingArgument, BAD_ARGUMENT, &[("verb", "GetRecord"), ("identifier", item)]),
        wrong(Rule::MissingArgument, BAD_ARGUMENT, &[("verb", "ListRecords")]),
        wrong(Rule::UnknownArgument, BAD_ARGUMENT, &[("verb", "Identify"), ("oaimend", "1")]),
        wrong(Rule::RepeatedArgument, BAD_ARGUMENT, &[headers[0], headers[1], headers[1]]),
        wrong(
            Rule::QuoteInIdentifier,
            NO_ITEM_OR_ARGUMENT,
            &[("verb", "GetRecord"), ("identifier", "invalid\"id"), ("metadataPrefix", "oai_dc")],
        ),
        wrong(
            Rule::UnknownIdentifier,
            NO_ITEM,
            &[("verb", "GetRecord"), ("identifier", NOBODYS_IDENTIFIER), ("metadataPrefix", "oai_dc")],
        ),
        wrong(
            Rule::UnknownFormat,
            NO_FORMAT,
            &[("verb", "ListIdentifiers"), ("metadataPrefix", NOBODYS_FORMAT)],
        ),
        wrong(Rule::BadDate, BAD_ARGUMENT, &[headers[0], headers[1], ("from", "junk")]),
        wrong(Rule::BadDate, BAD_ARGUMENT, &[headers[0], headers[1], ("until", "junk")]),
        wrong(Rule::BadDate, BAD_ARGUMENT, &[records[0], records[1], ("from", "junk")]),
        wrong(Rule::BadDate, BAD_ARGUMENT, &[records[0], records[1], ("until", "junk")]),
        wrong(Rule::BadToken, BAD_TOKEN, &[records[0], ("resumptionToken", NOBODYS_TOKEN)]),
        wrong(Rule::BadToken, BAD_TOKEN, &[headers[0], ("resumptionToken", NOBODYS_TOKEN)]),
        wrong(
            Rule::ExclusiveToken,
            TOKEN_OR_ARGUMENT,
            &[headers[0], ("resumptionToken", NOBODYS_TOKEN), ("until", "2000-02-05")],
        ),
        wrong(
            Rule::ExclusiveToken,
            TOKEN_OR_ARGUMENT,
            &[records[0], ("resumptionToken", NOBODYS_TOKEN), records[1], ("until", "1990-01-10")],
        ),
    ];
    let day = identity.earliest.as_deref().and_then(|earliest| earliest.get(..10)).unwrap_or("2000-01-01");
    let second = format!("{day}T00:00:00Z");
    all.push(wrong(
        Rule::MixedGranularity,
        BAD_ARGUMENT,
        &[records[0], records[1], ("from", day), ("until", &second)],
    ));
    if identity.datestamp_chars == Some(10) {
        all.push(wrong(Rule::TooFine, BAD_ARGUMENT, &[records[0], records[1], ("from", &second)]));
    }
    // In the granularity of the repository, so that nothing else is wrong.
    let date = identity.earliest.as_deref().unwrap_or("2000-01-01");
    if let Some(later) = years_away(date, 1) {
        let window = [records[0], records[1], ("from", later.as_str()), ("until", date)];
        all.push(wrong(Rule::FromAfterUntil, BAD_ARGUMENT, &window));
    }
    if let Some(before) = identity.earliest.as_deref().and_then(|earliest| years_away(earliest, -1)) {
        all.push(wrong(Rule::EmptyWindow, NO_MATCH, &[records[0], records[1], ("until", &before)]));
    }
    all
}

/// The same day of another year, or the day before where there is none.
fn years_away(date: &str, years: i32) -> Option<String> {
    let (year, rest) = date.split_at_checked(4)?;
    let year = year.parse::<i32>().ok()? + years;
    let rest = rest.replacen("-02-29", "-02-28", 1);
    (1..=9999).contains(&year).then(|| format!("{year:04}{rest}"))
}

/// Whether the error is the one that is wanted.
pub(super) fn judge(wrong: &Wrong, answer: &Answer, findings: &mut Findings) {
    // Of a quotation mark that leads to no well-formed answer: that is the very point.
    let is_the_point = wrong.rule == Rule::QuoteInIdentifier && matches!(answer.came, Came::Whole(_));
    if !is_the_point && !findings.can_judge(wrong.rule, answer) {
        return;
    }
    let codes = answer.errors();
    let holds = wrong.codes.iter().any(|wanted| codes.contains(&wanted.name()));
    findings.judge(wrong.rule, holds, answer, answer.gist());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_away_is_a_day_that_exists() {
        assert_eq!(years_away("2024-02-29", 1).as_deref(), Some("2025-02-28"));
        assert_eq!(years_away("1970-01-01T00:00:00Z", -1).as_deref(), Some("1969-01-01T00:00:00Z"));
        assert_eq!(years_away("0001-01-01", -1), None);
    }
}
