//! Checks a document against the OAI-PMH 2.0 schema, with any payloads.
//!
//! The verdict is the same as that of libxml2 with tests/xsd, for machines without libxml2 and for
//! the fuzzers. Of the anyURI values only baseURL is checked here.

use super::strict::Element;

/// The namespace of the envelope.
pub const OAI: &str = "http://www.openarchives.org/OAI/2.0/";

/// Two exceptions from the schema; see [`check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Every list has an item.
    Schema,
    /// A list with only a token is accepted: all its records were quarantined, or it is the empty
    /// last page.
    TokenAlone,
}

/// Returns the first violation of the envelope's schema.
pub fn check(root: &Element, strictness: Strictness) -> Result<(), String> {
    named(root, "OAI-PMH")?;
    attributes(root, &[])?;
    let children = only_elements(root)?;
    let [date, request, verbs @ ..] = children else { return Err("too few children of the root".to_owned()) };
    leaf(date, "responseDate", &[]).and_then(|text| when(is_date_time(text), "responseDate"))?;
    leaf(request, "request", REQUEST)?;
    request_attributes(request)?;
    let [verb, rest @ ..] = verbs else { return Err("no verb element".to_owned()) };
    if verb.name == "error" {
        return verbs.iter().try_for_each(error);
    }
    when(rest.is_empty(), "one verb element")?;
    attributes(verb, &[])?;
    match verb.name.as_str() {
        "Identify" => identify(verb),
        "ListMetadataFormats" => list(verb, metadata_format, Strictness::Schema, false),
        "ListSets" => list(verb, set, strictness, true),
        "ListIdentifiers" => list(verb, header, strictness, true),
        "ListRecords" => list(verb, record, strictness, true),
        "GetRecord" => {
            when(verb.children.len() == 1, "one record in GetRecord")?;
            list(verb, record, Strictness::Schema, false)
        }
        other => Err(format!("verb element {other}")),
    }
}

const REQUEST: &[&str] = &["verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken"];
const VERBS: &[&str] =
    &["Identify", "ListMetadataFormats", "ListSets", "GetRecord", "ListIdentifiers", "ListRecords"];
const CODES: &[&str] = &[
    "cannotDisseminateFormat",
    "idDoesNotExist",
    "badArgument",
    "badVerb",
    "noMetadataFormats",
    "noRecordsMatch",
    "badResumptionToken",
    "noSetHierarchy",
];
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

fn when(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("not so: {what}")) }
}

fn named(element: &Element, name: &str) -> Result<(), String> {
    let found = (element.namespace.as_str(), element.name.as_str());
    if found == (OAI, name) { Ok(()) } else { Err(format!("{found:?} instead of {name}")) }
}

fn attributes(element: &Element, allowed: &[&str]) -> Result<(), String> {
    let foreign = element.attributes.iter().find(|(namespace, name, _)| {
        !(namespace == XSI && (name == "schemaLocation" || name == "noNamespaceSchemaLocation"))
            && !(namespace.is_empty() && allowed.contains(&name.as_str()))
    });
    foreign.map_or(Ok(()), |(_, name, _)| Err(format!("attribute {name} on {}", element.name)))
}

fn attribute<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    let found = element.attributes.iter().find(|entry| entry.0.is_empty() && entry.1 == name);
    found.map(|entry| entry.2.as_str())
}

fn only_elements(element: &Element) -> Result<&[Element], String> {
    when(element.text.trim_ascii().is_empty(), &format!("no text in {}", element.name))?;
    Ok(&element.children)
}

fn leaf<'a>(element: &'a Element, name: &str, allowed: &[&str]) -> Result<&'a str, String> {
    named(element, name)?;
    attributes(element, allowed)?;
    when(element.children.is_empty(), &format!("no element in {name}"))?;
    Ok(&element.text)
}

fn request_attributes(request: &Element) -> Result<(), String> {
    for (name, holds) in [
        ("verb", (|value| VERBS.contains(&value)) as fn(&str) -> bool),
        ("metadataPrefix", is_prefix),
        ("from", is_datestamp),
        ("until", is_datestamp),
        ("set", is_set_spec),
    ] {
        when(attribute(request, name).is_none_or(holds), &format!("request/@{name}"))?;
    }
    Ok(())
}

fn error(element: &Element) -> Result<(), String> {
    leaf(element, "error", &["code"])?;
    when(attribute(element, "code").is_some_and(|code| CODES.contains(&code)), "a legal error code")
}

type Check = fn(&Element) -> Result<(), String>;

fn list(verb: &Element, item: Check, strictness: Strictness, token_allowed: bool) -> Result<(), String> {
    let children = only_elements(verb)?;
    let (items, last) = match children.split_last() {
        Some((last, items)) if token_allowed && last.name == "resumptionToken" => (items, Some(last)),
        _ => (children, None),
    };
    last.map_or(Ok(()), token)?;
    let excused = strictness == Strictness::TokenAlone && last.is_some();
    when(!items.is_empty() || excused, &format!("an item in {}", verb.name))?;
    items.iter().try_for_each(item)
}

fn token(element: &Element) -> Result<(), String> {
    leaf(element, "resumptionToken", &["expirationDate", "completeListSize", "cursor"])?;
    let number = |value: &str| {
        let digits = value.trim_ascii().trim_start_matches('+');
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let positive = |value: &str| number(value) && value.bytes().any(|b| (b'1'..=b'9').contains(&b));
    when(attribute(element, "expirationDate").is_none_or(is_date_time), "expirationDate")?;
    when(attribute(element, "completeListSize").is_none_or(positive), "completeListSize")?;
    when(attribute(element, "cursor").is_none_or(number), "cursor")
}

fn record(element: &Element) -> Result<(), String> {
    named(element, "record")?;
    attributes(element, &[])?;
    let [head, rest @ ..] = only_elements(element)? else { return Err("a record without header".to_owned()) };
    header(head)?;
    let abouts = match rest {
        [metadata, abouts @ ..] if metadata.name == "metadata" => {
            payload(metadata, "metadata")?;
            abouts
        }
        _ => rest,
    };
    abouts.iter().try_for_each(|about| payload(about, "about"))
}

fn header(element: &Element) -> Result<(), String> {
    named(element, "header")?;
    attributes(element, &["status"])?;
    when(attribute(element, "status").is_none_or(|status| status == "deleted"), "header/@status")?;
    let [identifier, datestamp, sets @ ..] = only_elements(element)? else {
        return Err("a header that is too short".to_owned());
    };
    leaf(identifier, "identifier", &[])?;
    leaf(datestamp, "datestamp", &[]).and_then(|text| when(is_datestamp(text), "datestamp"))?;
    sets.iter()
        .try_for_each(|set| leaf(set, "setSpec", &[]).and_then(|text| when(is_set_spec(text), "setSpec")))
}

fn payload(element: &Element, name: &str) -> Result<(), String> {
    named(element, name)?;
    attributes(element, &[])?;
    when(only_elements(element)?.len() == 1, &format!("one element in {name}"))
}

fn set(element: &Element) -> Result<(), String> {
    named(element, "set")?;
    attributes(element, &[])?;
    let [spec, name, descriptions @ ..] = only_elements(element)? else {
        return Err("a set that is too short".to_owned());
    };
    leaf(spec, "setSpec", &[]).and_then(|text| when(is_set_spec(text), "setSpec"))?;
    leaf(name, "setName", &[])?;
    descriptions.iter().try_for_each(|description| payload(description, "setDescription"))
}

fn metadata_format(element: &Element) -> Result<(), String> {
    named(element, "metadataFormat")?;
    attributes(element, &[])?;
    let [prefix, schema, namespace] = only_elements(element)? else {
        return Err("a metadataFormat of another length".to_owned());
    };
    leaf(prefix, "metadataPrefix", &[]).and_then(|text| when(is_prefix(text), "metadataPrefix"))?;
    leaf(schema, "schema", &[])?;
    leaf(namespace, "metadataNamespace", &[]).map(|_| ())
}

fn identify(element: &Element) -> Result<(), String> {
    let mut children = only_elements(element)?.iter().peekable();
    let mut take = |name: &str| {
        let child = children.next().ok_or(format!("no {name}"))?;
        leaf(child, name, &[]).map(str::to_owned)
    };
    take("repositoryName")?;
    when(is_any_uri(&take("baseURL")?), "baseURL")?;
    when(take("protocolVersion")? == "2.0", "protocolVersion")?;
    when(is_email(&take("adminEmail")?), "adminEmail")?;
    while let Some(email) = children.next_if(|child| child.name == "adminEmail") {
        when(is_email(leaf(email, "adminEmail", &[])?), "adminEmail")?;
    }
    let mut take = |name: &str| {
        let child = children.next().ok_or(format!("no {name}"))?;
        leaf(child, name, &[]).map(str::to_owned)
    };
    when(is_datestamp(&take("earliestDatestamp")?), "earliestDatestamp")?;
    when(["no", "persistent", "transient"].contains(&take("deletedRecord")?.as_str()), "deletedRecord")?;
    let granularity = take("granularity")?;
    when(["YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ"].contains(&granularity.as_str()), "granularity")?;
    while let Some(compression) = children.next_if(|child| child.name == "compression") {
        leaf(compression, "compression", &[])?;
    }
    children.try_for_each(|description| payload(description, "description"))
}

/// libxml2's check of `xs:anyURI`, which accepts nearly every text.
fn is_any_uri(text: &str) -> bool {
    let text = text.trim_ascii();
    let is_escape = |rest: &str| rest.get(..2).is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let escapes = text.split('%').skip(1).all(is_escape);
    let scheme = text.split(['/', '?', '#']).next().and_then(|first| first.split_once(':'));
    let is_scheme = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    };
    let authority = text.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    let port = authority.and_then(|authority| authority.rsplit('@').next()?.split_once(':'));
    escapes
        && text.matches('#').count() <= 1
        && !text.contains(['[', ']'])
        && scheme.is_none_or(|(name, _)| is_scheme(name))
        && port.is_none_or(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// `\S+@(\S+\.)+\S+`, where `\S` is any character except the four blanks of XML.
fn is_email(text: &str) -> bool {
    let dotted = |host: &str| host.char_indices().any(|(at, c)| c == '.' && at > 0 && at + 1 < host.len());
    !text.contains([' ', '\t', '\r', '\n'])
        && text.char_indices().any(|(at, c)| c == '@' && at > 0 && dotted(&text[at + 1..]))
}

fn is_prefix(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&b))
}

fn is_set_spec(text: &str) -> bool {
    text.split(':').all(is_prefix)
}

/// A day, or a time in UTC.
fn is_datestamp(text: &str) -> bool {
    let text = text.trim_ascii();
    let zone = |rest: &str| rest.is_empty() || rest == "Z" || rest.starts_with(['+', '-']);
    let day = text.get(..10).is_some_and(is_day) && text.get(10..).is_some_and(zone);
    day || (text.ends_with('Z') && is_date_time(text))
}

fn is_day(text: &str) -> bool {
    chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok() && !text.starts_with("0000")
}

fn is_date_time(text: &str) -> bool {
    let text = text.trim_ascii();
    let Some((day, time)) = text.split_once('T') else { return false };
    let Some(clock) = time.get(..8) else { return false };
    let rest = time[8..].trim_start_matches('.').trim_start_matches(|c: char| c.is_ascii_digit());
    let zone = rest.is_empty()
        || rest == "Z"
        || (rest.len() == 6 && rest.starts_with(['+', '-']) && rest.as_bytes()[3] == b':');
    let whole = clock == "24:00:00" || chrono::NaiveTime::parse_from_str(clock, "%H:%M:%S").is_ok();
    is_day(day) && whole && !clock.ends_with("60") && zone
}
