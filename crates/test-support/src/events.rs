//! Compares the events of the engine with its output, as quick-xml reads it.
//!
//! The engine reports the envelope, the places of the fields of each item, the token, the codes of errors
//! and the fields of Identify. Each of them must be in the output, at that place.

use oaimend_repair::Span;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::harness::Run;

/// The envelope that the engine reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    pub response_date: String,
    pub root_tag: String,
    pub list: Option<List>,
}

/// The part of an envelope that only a list has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    pub verb_tag: String,
    pub verb_tag_at: usize,
    pub namespaces: Vec<(String, String)>,
}

/// The events of one run beside items and tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub envelope: Option<Envelope>,
    pub errors: Vec<String>,
    /// `earliestDatestamp`, `deletedRecord` and `granularity`.
    pub identify: Option<[String; 3]>,
    /// `expirationDate` of each token.
    pub expirations: Vec<String>,
}

/// The places of the fields of an item: header, identifier, datestamp, setSpecs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub header: Span,
    pub identifier: Span,
    pub datestamp: Span,
    pub set_specs: Vec<Span>,
}

/// The facts of a document as quick-xml reads them.
#[derive(Debug, Default)]
struct Document {
    events: Events,
    items: Vec<Places>,
    /// The declarations of the root.
    declared: Vec<(String, String)>,
}

const LISTS: [&str; 5] = ["ListRecords", "ListIdentifiers", "ListSets", "ListMetadataFormats", "GetRecord"];

/// The events are those of the output.
pub fn match_output(run: &Run) -> Result<(), String> {
    let Ok(output) = std::str::from_utf8(&run.output) else { return Ok(()) };
    let document = Document::read(output);
    let (found, reported) = (&document.events, &run.events);
    let has_envelope = !run.output.is_empty();
    let envelope = if has_envelope { found.envelope.as_ref() } else { None };
    if envelope != reported.envelope.as_ref() {
        return Err(format!("the envelope is {:?}, reported as {:?}", found.envelope, reported.envelope));
    }
    if found.errors != reported.errors {
        return Err(format!("the errors are {:?}, reported as {:?}", found.errors, reported.errors));
    }
    if found.expirations != reported.expirations {
        let (found, reported) = (&found.expirations, &reported.expirations);
        return Err(format!("tokens expire at {found:?}, reported as {reported:?}"));
    }
    if found.identify != reported.identify {
        return Err(format!("Identify says {:?}, reported as {:?}", found.identify, reported.identify));
    }
    for (number, item) in run.items.iter().enumerate().filter(|(_, item)| !item.bytes.is_empty()) {
        let Some(places) = document.items.get(number) else {
            return Err(format!("item {number} was reported and is not in the output"));
        };
        if *places != item.places {
            let item_text = item.bytes.escape_ascii();
            return Err(format!("fields are at {places:?}, reported as {:?}: {item_text}", item.places));
        }
    }
    Ok(())
}

impl Document {
    /// Reads a document, up to its first defect.
    fn read(text: &str) -> Self {
        // quick-xml does not count the byte order mark.
        let mark = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        let text = &text[mark..];
        let mut document = Self::default();
        let mut reader = Reader::from_str(text);
        // The open elements: their local names, and where their start tags begin and end.
        let mut open: Vec<(String, usize, usize)> = Vec::new();
        loop {
            let before = reader.buffer_position() as usize;
            let Ok(event) = reader.read_event() else { return document };
            let after = reader.buffer_position() as usize;
            match event {
                Event::Start(tag) => {
                    let name = tag.local_name().as_ref().to_owned();
                    document.start(&name, &tag, (mark + before, &text[before..after]), &open);
                    open.push((name, before, after));
                }
                Event::Empty(tag) => {
                    let name = tag.local_name().as_ref().to_owned();
                    document.start(&name, &tag, (mark + before, &text[before..after]), &open);
                }
                Event::End(_) => {
                    let Some((name, start, content)) = open.pop() else { return document };
                    document.end(&name, (start, content, before, after), text, &open);
                }
                Event::Eof => return document,
                _ => {}
            }
        }
    }

    fn start(
        &mut self,
        name: &str,
        tag: &BytesStart<'_>,
        (at, written): (usize, &str),
        open: &[(String, usize, usize)],
    ) {
        let attribute = |wanted: &str| {
            tag.attributes().flatten().find(|found| found.key.as_ref() as &str == wanted).map(|found| {
                let value: &str = &found.value;
                value.to_owned()
            })
        };
        let path: Vec<&str> = open.iter().map(|(name, ..)| name.as_str()).collect();
        match path.as_slice() {
            [] => {
                let envelope = self.events.envelope.get_or_insert_default();
                envelope.root_tag = written.to_owned();
                declare(tag, &mut self.declared);
            }
            [_] if name == "error" => self.events.errors.push(attribute("code").unwrap_or_default()),
            [_] if name == "Identify" => self.events.identify = Some(<[String; 3]>::default()),
            [_] if LISTS.contains(&name) => {
                let mut namespaces = self.declared.clone();
                declare(tag, &mut namespaces);
                let list = List { verb_tag: written.to_owned(), verb_tag_at: at, namespaces };
                self.events.envelope.get_or_insert_default().list = Some(list);
            }
            [_, list] if LISTS.contains(list) && name == "resumptionToken" => {
                self.events.expirations.push(attribute("expirationDate").unwrap_or_default());
            }
            [_, list] if LISTS.contains(list) => self.items.push(Places::default()),
            _ => {}
        }
    }

    fn end(
        &mut self,
        name: &str,
        (start, content, content_end, end): (usize, usize, usize, usize),
        text: &str,
        open: &[(String, usize, usize)],
    ) {
        let path: Vec<&str> = open.iter().map(|(name, ..)| name.as_str()).collect();
        if path.len() == 1 && name == "responseDate" {
            let envelope = self.events.envelope.get_or_insert_default();
            envelope.response_date = text[content..content_end].to_owned();
        }
        if let ([_, "Identify"], Some(identify)) = (path.as_slice(), &mut self.events.identify) {
            let index =
                ["earliestDatestamp", "deletedRecord", "granularity"].iter().position(|of| *of == name);
            if let Some(field) = index.and_then(|index| identify.get_mut(index)) {
                *field = text[content..content_end].to_owned();
            }
        }
        let is_in_list = path.get(1).is_some_and(|of| LISTS.contains(of));
        let (Some((_, item_at, _)), true) = (open.get(2), is_in_list) else {
            let is_header = name == "header" && path.len() == 2 && LISTS.contains(&path[1]);
            if is_header && let Some(places) = self.items.last_mut() {
                places.header = Span { start: 0, end: (end - start) as u32 };
            }
            return;
        };
        let Some(places) = self.items.last_mut() else { return };
        let span =
            |from: usize, to: usize| Span { start: (from - item_at) as u32, end: (to - item_at) as u32 };
        match (path.get(2..).unwrap_or_default(), name) {
            (["record"], "header") => places.header = span(start, end),
            (["record", "header"] | ["header"], "identifier") | (["metadataFormat"], "metadataPrefix") => {
                places.identifier = span(content, content_end);
            }
            (["record", "header"] | ["header"], "datestamp") => places.datestamp = span(content, content_end),
            (["record", "header"] | ["header"] | ["set"], "setSpec") => {
                if path[2] == "set" || places.identifier.is_empty() {
                    places.identifier = span(content, content_end);
                }
                places.set_specs.push(span(content, content_end));
            }
            _ => {}
        }
    }
}

/// Adds the declarations of a tag, in the order in which the engine reports them: the innermost first.
fn declare(tag: &BytesStart<'_>, namespaces: &mut Vec<(String, String)>) {
    let mut declared = Vec::new();
    for attribute in tag.attributes().flatten() {
        let name: &str = attribute.key.as_ref();
        let prefix = if name == "xmlns" { Some("") } else { name.strip_prefix("xmlns:") };
        if let Some(prefix) = prefix {
            let uri: &str = &attribute.value;
            declared.insert(0, (prefix.to_owned(), uri.to_owned()));
        }
    }
    namespaces.retain(|(prefix, _)| declared.iter().all(|(again, _)| again != prefix));
    declared.append(namespaces);
    *namespaces = declared;
}
