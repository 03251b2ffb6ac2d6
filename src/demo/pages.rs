//! The responses of the demo provider: the broken pages of corpus/demo, and excerpts of them.

use super::http::Arguments;

/// The base URL in the pages.
const PLACEHOLDER_BASE_URL: &str = "http://demo.example.org/oai";
/// A token is this prefix and the number of its page.
const TOKEN: &str = "demo-";

const IDENTIFY: &[u8] = include_bytes!("../../corpus/demo/identify.xml");
const FORMATS: &[u8] = include_bytes!("../../corpus/demo/list-metadata-formats.xml");
const SETS: &[u8] = include_bytes!("../../corpus/demo/list-sets.xml");
const RECORDS: [&[u8]; 3] = [
    include_bytes!("../../corpus/demo/records-1.xml"),
    include_bytes!("../../corpus/demo/records-2.xml"),
    include_bytes!("../../corpus/demo/records-3.xml"),
];

/// The response to a request, with `base_url` as its base URL.
pub(super) fn answer(base_url: &str, arguments: &Arguments) -> Vec<u8> {
    let page = match arguments.get("verb").map(String::as_str) {
        Some("Identify") => IDENTIFY.to_vec(),
        Some("ListMetadataFormats") => formats(arguments),
        Some("ListSets") if arguments.contains_key("resumptionToken") => {
            error("badResumptionToken", "the list of sets has only one page")
        }
        Some("ListSets") => SETS.to_vec(),
        Some("ListRecords") => list(arguments, <[u8]>::to_vec),
        Some("ListIdentifiers") => list(arguments, identifiers),
        Some("GetRecord") => get_record(arguments),
        _ => error("badVerb", "the verb is missing or none of the six"),
    };
    replace(&page, PLACEHOLDER_BASE_URL.as_bytes(), base_url.as_bytes())
}

/// The formats, which all items have.
fn formats(arguments: &Arguments) -> Vec<u8> {
    let is_unknown = arguments.get("identifier").is_some_and(|requested| find_record(requested).is_none());
    if is_unknown { error("idDoesNotExist", "this demonstration has no such item") } else { FORMATS.to_vec() }
}

/// Makes a page of a list with `shape` from the page of records.
fn list(arguments: &Arguments, shape: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if let Some(token) = arguments.get("resumptionToken") {
        let page = token.strip_prefix(TOKEN).and_then(|number| number.parse::<usize>().ok());
        return match page.and_then(|number| RECORDS.get(number.checked_sub(1)?)) {
            Some(page) => shape(page),
            None => error("badResumptionToken", "this demonstration has no such resumptionToken"),
        };
    }
    if let Some(error) = format_error(arguments) {
        return error;
    }
    if ["from", "until", "set"].iter().any(|name| arguments.contains_key(*name)) {
        return match select_records(arguments) {
            Some(page) => shape(&page),
            None => error("noRecordsMatch", "no record of this demonstration matches"),
        };
    }
    shape(RECORDS[0])
}

/// Checks the requested format; returns the error response.
fn format_error(arguments: &Arguments) -> Option<Vec<u8>> {
    match arguments.get("metadataPrefix").map(String::as_str) {
        Some("oai_dc") => None,
        Some(_) => Some(error("cannotDisseminateFormat", "this demonstration has only oai_dc")),
        None => Some(error("badArgument", "metadataPrefix is missing")),
    }
}

/// One page of all records that match `from`, `until` and `set`, if there are any.
fn select_records(arguments: &Arguments) -> Option<Vec<u8>> {
    let argument = |name: &str| arguments.get(name).map(String::as_bytes);
    let fits = |record: &[u8]| {
        let datestamp = value(record, b"<datestamp>", b"</datestamp>");
        // Compared in the length of the argument: a day contains all of its seconds.
        let cut = |date: &[u8]| &datestamp[..date.len().min(datestamp.len())];
        argument("from").is_none_or(|from| cut(from) >= from)
            && argument("until").is_none_or(|until| cut(until) <= until)
            && argument("set").is_none_or(|set| value(record, b"<setSpec>", b"</setSpec>") == set)
    };
    let mut found = Vec::new();
    for record in RECORDS.iter().flat_map(|page| records(page)).filter(|record| fits(record)) {
        found.extend_from_slice(&[b"    ", record, b"\n"].concat());
    }
    let first = RECORDS[0];
    let head = &first[..find(first, b"    <record>")?];
    let tail = &first[find(first, b"  </ListRecords>")?..];
    (!found.is_empty()).then(|| [head, &found, tail].concat())
}

/// The page of headers for a page of records.
fn identifiers(page: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    for record in records(page) {
        headers.extend_from_slice(b"    ");
        headers.extend_from_slice(between(record, b"<header", b"</header>").unwrap_or_default());
        headers.push(b'\n');
    }
    let end = find(page, b"    <resumptionToken").or_else(|| find(page, b"  </ListRecords>"));
    let end = end.unwrap_or(page.len());
    let begin = find(page, b"    <record>").unwrap_or(end);
    let page = [&page[..begin], &headers, &page[end..]].concat();
    replace(&page, b"ListRecords", b"ListIdentifiers")
}

/// The response to GetRecord: the record as its page contains it.
fn get_record(arguments: &Arguments) -> Vec<u8> {
    let Some(requested) = arguments.get("identifier") else {
        return error("badArgument", "identifier is missing");
    };
    if let Some(error) = format_error(arguments) {
        return error;
    }
    match find_record(requested) {
        Some(record) => envelope("GetRecord", &[b"<GetRecord>", record, b"</GetRecord>"].concat()),
        None => error("idDoesNotExist", "this demonstration has no such record"),
    }
}

/// The record with this identifier.
fn find_record(identifier: &str) -> Option<&'static [u8]> {
    let identifier = format!("<identifier>{identifier}</identifier>");
    RECORDS.iter().flat_map(|page| records(page)).find(|record| {
        between(record, b"<header", b"</header>")
            .is_some_and(|header| find(header, identifier.as_bytes()).is_some())
    })
}

/// The records of a page. The tags of these pages are known to be in order.
fn records(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = page;
    std::iter::from_fn(move || {
        let record = between(rest, b"<record>", b"</record>")?;
        rest = &rest[find(rest, b"</record>")? + b"</record>".len()..];
        Some(record)
    })
}

fn error(code: &str, text: &str) -> Vec<u8> {
    envelope("", format!("<error code=\"{code}\">{text}</error>").as_bytes())
}

fn envelope(verb: &str, content: &[u8]) -> Vec<u8> {
    let verb = if verb.is_empty() { String::new() } else { format!(" verb=\"{verb}\"") };
    let head = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
         http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n  \
         <responseDate>2026-01-02T03:04:05Z</responseDate>\n  \
         <request{verb}>{PLACEHOLDER_BASE_URL}</request>\n  "
    );
    [head.as_bytes(), content, b"\n</OAI-PMH>\n"].concat()
}

/// The text from `start` to the end of `end`.
fn between<'a>(text: &'a [u8], start: &[u8], end: &[u8]) -> Option<&'a [u8]> {
    let text = &text[find(text, start)?..];
    Some(&text[..find(text, end)? + end.len()])
}

/// The text between `start` and `end`.
fn value<'a>(text: &'a [u8], start: &[u8], end: &[u8]) -> &'a [u8] {
    let found = between(text, start, end).unwrap_or_default();
    found.get(start.len()..found.len().saturating_sub(end.len())).unwrap_or_default()
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, needle)
}

fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, old) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &[(&str, &str)]) -> String {
        let arguments =
            arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        String::from_utf8_lossy(&answer("http://127.0.0.1:1/oai", &arguments)).into_owned()
    }

    #[test]
    fn responses_to_all_verbs_contain_the_base_url() {
        for (arguments, expected) in [
            (&[("verb", "Identify")][..], "<Identify>"),
            (&[("verb", "ListMetadataFormats")], "<ListMetadataFormats>"),
            (&[("verb", "ListSets")], "<ListSets>"),
            (&[("verb", "ListRecords"), ("metadataPrefix", "oai_dc")], "<ListRecords>"),
            (&[("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc")], "<ListIdentifiers>"),
            (
                &[
                    ("verb", "GetRecord"),
                    ("metadataPrefix", "oai_dc"),
                    ("identifier", "oai:demo.example.org:7"),
                ],
                "<GetRecord><record>",
            ),
            (&[("verb", "Bogus")], "badVerb"),
            (&[("verb", "ListRecords")], "badArgument"),
            (&[("verb", "ListRecords"), ("metadataPrefix", "marc")], "cannotDisseminateFormat"),
            (&[("verb", "ListRecords"), ("resumptionToken", "demo-9")], "badResumptionToken"),
        ] {
            let page = request(arguments);
            assert!(page.contains(expected), "{arguments:?}: {page}");
            assert!(
                page.contains(">http://127.0.0.1:1/oai</request>") && !page.contains(PLACEHOLDER_BASE_URL)
            );
        }
    }

    #[test]
    fn records_are_selected_by_date_and_set() {
        let list = |arguments: &[(&str, &str)]| {
            let base = [("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc")];
            request(&[&base, arguments].concat())
        };
        let one = list(&[("from", "2025-02-11"), ("until", "2025-02-11")]);
        assert_eq!(one.matches("</header>").count(), 1, "{one}");
        assert!(one.contains("oai:demo.example.org:1<") && one.trim_end().ends_with("</OAI-PMH>"), "{one}");
        assert_eq!(list(&[("from", "2025-09-18T08:30:00Z")]).matches("</header>").count(), 1);
        assert_eq!(list(&[("set", "notes")]).matches("</header>").count(), 12);
        for nothing in [("set", "note"), ("until", "2024-12-31"), ("from", "2025-09-18T08:30:01Z")] {
            assert!(list(&[nothing]).contains("noRecordsMatch"), "{nothing:?}");
        }
    }

    #[test]
    fn header_pages_contain_the_headers_of_their_records() {
        for (number, page) in RECORDS.iter().enumerate() {
            assert_eq!(records(page).count(), 4);
            let token = format!("{TOKEN}{}", number + 1);
            let headers = request(&[("verb", "ListIdentifiers"), ("resumptionToken", &token)]);
            assert_eq!(headers.matches("</header>").count(), 4, "{headers}");
            assert_eq!(headers.matches("<header").count(), 4, "{headers}");
            assert!(!headers.contains("<record>"));
        }
    }
}
