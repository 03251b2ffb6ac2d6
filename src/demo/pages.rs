//! What the demonstration's provider answers: the pages of corpus/demo, broken
//! as they are, and what can be cut out of them.

use super::http::Arguments;

/// The base URL as it stands in the pages.
const WRITTEN_BASE_URL: &str = "http://demo.example.org/oai";
/// Tokens are this and the number of the page they lead to.
const TOKEN: &str = "demo-";

const IDENTIFY: &[u8] = include_bytes!("../../corpus/demo/identify.xml");
const FORMATS: &[u8] = include_bytes!("../../corpus/demo/list-metadata-formats.xml");
const SETS: &[u8] = include_bytes!("../../corpus/demo/list-sets.xml");
const RECORDS: [&[u8]; 3] = [
    include_bytes!("../../corpus/demo/records-1.xml"),
    include_bytes!("../../corpus/demo/records-2.xml"),
    include_bytes!("../../corpus/demo/records-3.xml"),
];

/// The answer to a request, in the name of `base_url`.
pub(super) fn answer(base_url: &str, arguments: &Arguments) -> Vec<u8> {
    let page = match arguments.get("verb").map(String::as_str) {
        Some("Identify") => IDENTIFY.to_vec(),
        Some("ListMetadataFormats") => FORMATS.to_vec(),
        Some("ListSets") => SETS.to_vec(),
        Some("ListRecords") => list(arguments, <[u8]>::to_vec),
        Some("ListIdentifiers") => list(arguments, identifiers),
        Some("GetRecord") => single(arguments),
        _ => error("badVerb", "the verb is missing or none of the six"),
    };
    replace(&page, WRITTEN_BASE_URL.as_bytes(), base_url.as_bytes())
}

/// A page of a list, as `shape` makes it from the page of records.
fn list(arguments: &Arguments, shape: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if let Some(token) = arguments.get("resumptionToken") {
        let page = token.strip_prefix(TOKEN).and_then(|number| number.parse::<usize>().ok());
        return match page.and_then(|number| RECORDS.get(number.checked_sub(1)?)) {
            Some(page) => shape(page),
            None => error("badResumptionToken", "no list of this demonstration goes on there"),
        };
    }
    if let Some(error) = format_error(arguments) {
        return error;
    }
    if ["from", "until", "set"].iter().any(|name| arguments.contains_key(*name)) {
        return match selected(arguments) {
            Some(page) => shape(&page),
            None => error("noRecordsMatch", "nothing of this demonstration fits"),
        };
    }
    shape(RECORDS[0])
}

/// What is wrong with the format that is asked for.
fn format_error(arguments: &Arguments) -> Option<Vec<u8>> {
    match arguments.get("metadataPrefix").map(String::as_str) {
        Some("oai_dc") => None,
        Some(_) => Some(error("cannotDisseminateFormat", "only oai_dc here")),
        None => Some(error("badArgument", "metadataPrefix is missing")),
    }
}

/// One page of all records that fit `from`, `until` and `set`, if there are any.
fn selected(arguments: &Arguments) -> Option<Vec<u8>> {
    let argument = |name: &str| arguments.get(name).map(String::as_bytes);
    let fits = |record: &[u8]| {
        let datestamp = value(record, b"<datestamp>", b"</datestamp>");
        // Compared as long as the argument is: a day holds all of its seconds.
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

/// The page of headers that belongs to a page of records.
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

/// The answer to GetRecord: the record as it stands in its page.
fn single(arguments: &Arguments) -> Vec<u8> {
    let Some(wanted) = arguments.get("identifier") else {
        return error("badArgument", "identifier is missing");
    };
    if let Some(error) = format_error(arguments) {
        return error;
    }
    let identifier = format!("<identifier>{wanted}</identifier>");
    let record = RECORDS.iter().flat_map(|page| records(page)).find(|record| {
        between(record, b"<header", b"</header>")
            .is_some_and(|header| find(header, identifier.as_bytes()).is_some())
    });
    match record {
        Some(record) => envelope("GetRecord", &[b"<GetRecord>", record, b"</GetRecord>"].concat()),
        None => error("idDoesNotExist", "no such record in this demonstration"),
    }
}

/// The records of a page. They are ours: their tags stand where they should.
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
         <request{verb}>{WRITTEN_BASE_URL}</request>\n  "
    );
    [head.as_bytes(), content, b"\n</OAI-PMH>\n"].concat()
}

/// From `start` to the end of `end`.
fn between<'a>(text: &'a [u8], start: &[u8], end: &[u8]) -> Option<&'a [u8]> {
    let text = &text[find(text, start)?..];
    Some(&text[..find(text, end)? + end.len()])
}

/// What stands between `start` and `end`.
fn value<'a>(text: &'a [u8], start: &[u8], end: &[u8]) -> &'a [u8] {
    let found = between(text, start, end).unwrap_or_default();
    found.get(start.len()..found.len().saturating_sub(end.len())).unwrap_or_default()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
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

    fn ask(arguments: &[(&str, &str)]) -> String {
        let arguments =
            arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        String::from_utf8_lossy(&answer("http://127.0.0.1:1/oai", &arguments)).into_owned()
    }

    #[test]
    fn every_verb_is_answered_in_the_name_of_the_base_url() {
        for (arguments, wanted) in [
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
            let page = ask(arguments);
            assert!(page.contains(wanted), "{arguments:?}: {page}");
            assert!(page.contains(">http://127.0.0.1:1/oai</request>") && !page.contains(WRITTEN_BASE_URL));
        }
    }

    #[test]
    fn records_are_selected_by_date_and_set() {
        let list = |arguments: &[(&str, &str)]| {
            let base = [("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc")];
            ask(&[&base, arguments].concat())
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
    fn a_list_of_headers_has_those_of_the_records() {
        for (number, page) in RECORDS.iter().enumerate() {
            assert_eq!(records(page).count(), 4);
            let token = format!("{TOKEN}{}", number + 1);
            let headers = ask(&[("verb", "ListIdentifiers"), ("resumptionToken", &token)]);
            assert_eq!(headers.matches("</header>").count(), 4, "{headers}");
            assert_eq!(headers.matches("<header").count(), 4, "{headers}");
            assert!(!headers.contains("<record>"));
        }
    }
}
