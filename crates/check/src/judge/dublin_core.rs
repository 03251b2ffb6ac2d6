//! Rules for the content of records in oai_dc: the structure of oai_dc.xsd, and advice on the fields that users of
//! aggregators need.
//!
//! The structure is checked by hand, because the schema is small and fixed: simple elements in one namespace.

use crate::exchange::CheckResponse;
use crate::findings::Findings;
use crate::headers::Header;
use crate::rules::Rule;
use crate::tree::{Attribute, Element};
use oaimend_oai::datestamp;
use url::Url;

/// Judges the dc element of a record.
pub(crate) fn judge(response: &CheckResponse, header: &Header, dc: &Element, findings: &mut Findings) {
    let identifier = &header.identifier;
    match find_violation(dc) {
        Some(violation) => findings.fail(Rule::DcSchema, response, format!("{violation} of {identifier}")),
        None => findings.pass(Rule::DcSchema, response, format!("{} elements", dc.children.len())),
    }
    let title = values(dc, "title").find(|title| !title.is_empty());
    findings.advise(Rule::DcTitle, title.is_some(), response, title.unwrap_or(identifier));
    let url = values(dc, "identifier").find(|value| is_web_url(value));
    let received = url.map_or_else(|| format!("no URL in {identifier}"), str::to_owned);
    findings.advise(Rule::DcIdentifier, url.is_some(), response, received);
    for language in values(dc, "language") {
        let received = format!("\"{language}\" in {identifier}");
        findings.advise(Rule::DcLanguage, is_language(language), response, received);
    }
    let wrong = values(dc, "date").find(|date| !is_date(date));
    let has_date = values(dc, "date").next().is_some();
    let received = match wrong {
        Some(date) => format!("\"{date}\" in {identifier}"),
        None if has_date => identifier.clone(),
        None => format!("no date in {identifier}"),
    };
    findings.advise(Rule::DcDate, has_date && wrong.is_none(), response, received);
    if header.sets.iter().any(|set| set == "openaire" || set.starts_with("openaire:")) {
        let missing = find_missing_field(dc);
        let received =
            missing.map_or_else(|| identifier.clone(), |field| format!("no {field} in {identifier}"));
        findings.judge(Rule::OpenaireFields, missing.is_none(), response, received);
    }
}

/// The first field that OpenAIRE demands and the record lacks.
fn find_missing_field(dc: &Element) -> Option<&'static str> {
    let is_filled = |name| values(dc, name).any(|value| !value.is_empty());
    let missing =
        ["title", "creator", "date", "type", "identifier"].into_iter().find(|name| !is_filled(name));
    let has_right = values(dc, "rights").any(|value| value.starts_with("info:eu-repo/semantics/"));
    missing.or_else(|| (!has_right).then_some("rights with info:eu-repo/semantics"))
}

/// The texts of the elements with this name.
fn values<'a>(dc: &'a Element, name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = dc.children.iter().filter(move |child| child.name == name && child.namespace == DC);
    named.map(|child| child.text.trim())
}

/// The first violation of oai_dc.xsd and simpledc20021212.xsd.
fn find_violation(dc: &Element) -> Option<String> {
    let text = dc.text.trim();
    if !text.is_empty() {
        return Some(format!("the text \"{text}\" between the elements"));
    }
    if let Some(attribute) = dc.attributes.iter().find(|attribute| !is_schema_attribute(attribute)) {
        return Some(format!("the attribute {} of dc", attribute.name));
    }
    dc.children.iter().find_map(|child| {
        let name = &child.name;
        if child.namespace != DC || !ELEMENTS.contains(&name.as_str()) {
            return Some(format!("<{name}> in \"{}\"", child.namespace));
        }
        if let Some(inner) = child.children.first() {
            return Some(format!("<{}> in <{name}>", inner.name));
        }
        let is_language = |attribute: &&Attribute| attribute.namespace == XML && attribute.name == "lang";
        let other = child.attributes.iter().find(|attribute| !is_language(attribute));
        other.map(|attribute| format!("the attribute {} of <{name}>", attribute.name))
    })
}

/// Whether every element may have this attribute.
fn is_schema_attribute(attribute: &Attribute) -> bool {
    attribute.namespace == XSI
        && matches!(attribute.name.as_str(), "schemaLocation" | "noNamespaceSchemaLocation")
}

fn is_web_url(value: &str) -> bool {
    Url::parse(value).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Whether a text has the form of a code of ISO 639 or of a tag of BCP 47.
fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_code = parts.next().is_some_and(|code| {
        (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphabetic())
    });
    is_code
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Whether a text is a year, a month, a day or a time of a day, or a range of two of them.
fn is_date(text: &str) -> bool {
    let is_one = |text: &str| {
        let (day, time) = text.split_once('T').map_or((text, None), |(day, time)| (day, Some(time)));
        let day_is_whole = match day.len() {
            4 => format!("{day}-01-01"),
            7 => format!("{day}-01"),
            _ => day.to_owned(),
        };
        let is_time = time.is_none_or(|time| {
            day.len() == 10 && time.len() >= 5 && time.bytes().all(|byte| b"0123456789:.,+-Z".contains(&byte))
        });
        is_time && day_is_whole.len() == 10 && datestamp::is_legal(day_is_whole.as_bytes())
    };
    match text.split_once('/') {
        Some((from, until)) => is_one(from) && is_one(until),
        None => is_one(text),
    }
}

const DC: &str = "http://purl.org/dc/elements/1.1/";
const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
const ELEMENTS: [&str; 15] = [
    "title",
    "creator",
    "subject",
    "description",
    "publisher",
    "contributor",
    "date",
    "type",
    "format",
    "identifier",
    "source",
    "language",
    "relation",
    "coverage",
    "rights",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[track_caller]
    fn check(content: &str, expected: &str) {
        let xml = format!("<o:dc xmlns:o='o' xmlns='{DC}' xmlns:xsi='{XSI}' {content}</o:dc>");
        let dc = tree::parse(xml.as_bytes()).expect("it is well-formed");
        assert_eq!(find_violation(&dc).unwrap_or_default(), expected, "{content}");
    }

    #[test]
    fn violations_of_the_schema_are_named() {
        check(">", "");
        check("xsi:schemaLocation='a b'> <title xml:lang='en'>x<!-- --></title><title/>", "");
        check(">text<title/>", "the text \"text\" between the elements");
        check("version='1'>", "the attribute version of dc");
        check("><titel/>", "<titel> in \"http://purl.org/dc/elements/1.1/\"");
        check("><title xmlns='http://purl.org/dc/terms/'/>", "<title> in \"http://purl.org/dc/terms/\"");
        check("><title xmlns=''/>", "<title> in \"\"");
        check("><creator><title/></creator>", "<title> in <creator>");
        check("><title lang='en'/>", "the attribute lang of <title>");
        check("><title xsi:type='x'/>", "the attribute type of <title>");
    }

    #[test]
    fn languages_and_dates_have_known_forms() {
        for valid in ["en", "eng", "pt-BR", "zh-Hant-TW"] {
            assert!(is_language(valid), "{valid}");
        }
        for invalid in ["", "English", "e", "en_US", "en-", "1n"] {
            assert!(!is_language(invalid), "{invalid}");
        }
        for valid in
            ["2024", "2024-02", "2024-02-29", "2024-02-29T10:00", "2024-02-29T10:00:00+01:00", "2001/2003"]
        {
            assert!(is_date(valid), "{valid}");
        }
        for invalid in ["", "c. 1900", "31.12.2024", "2024-02-31", "2024-13", "24", "2024T10:00", "2001/"] {
            assert!(!is_date(invalid), "{invalid}");
        }
    }
}
