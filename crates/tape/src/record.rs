//! One record of a tape: the `tapeRecord` element.

use crate::fault::Fault;
use crate::limits::{PREFIX_BYTES_MAX, RECORD_SETS_MAX, SET_SPEC_BYTES_MAX};
use crate::names::{ADMIN_NAMESPACE, NAMESPACE, element};
use crate::namespaces::self_contained;
use oaimend_oai::datestamp::{Granularity, to_secs};
use oaimend_oai::{UnixSecs, escape};
use oaimend_repository::RecordView;
use oaimend_repository::rebase_namespaces::{NamespaceScope, OAI, XSI};
use oaimend_repository::xml::{NamespaceReader, XmlError, XmlEvent, XmlReader, unescape};

/// One record of a tape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapeRecord {
    /// The identifier.
    pub identifier: String,
    /// The datestamp, as its source writes it.
    pub datestamp: String,
    /// The metadataPrefix; `None` in tapes of other programs.
    pub prefix: Option<String>,
    /// The setSpecs, in order.
    pub set_specs: Vec<String>,
    /// Whether the record is deleted.
    pub is_deleted: bool,
    /// The content of `metadata`, with all its namespace declarations; empty if the record is deleted.
    pub metadata: String,
    /// The content of each `about`, with all its namespace declarations.
    pub abouts: Vec<String>,
}

impl TapeRecord {
    /// The record with the content of an OAI-PMH `record` element in a list whose default namespace is that of OAI-PMH.
    /// `identifier` and `prefix` are known from its response.
    ///
    /// # Errors
    ///
    /// It is not a record with a header, or not well-formed.
    pub fn from_oai(identifier: &str, prefix: &str, record: &str) -> Result<Self, XmlError> {
        let Some(view) = RecordView::read(record) else {
            return Err(XmlError::new("it is not a record element with a header"));
        };
        let header = record.get(view.header()).unwrap_or_default();
        let is_deleted = match XmlReader::new(header).read()? {
            Some(XmlEvent::Start(tag)) => tag.attribute("status")?.is_some_and(|status| status == "deleted"),
            _ => false,
        };
        let datestamp = view.datestamp().and_then(|place| record.get(place)).unwrap_or_default();
        let mut tape_record = Self {
            identifier: identifier.to_owned(),
            datestamp: datestamp.trim().to_owned(),
            prefix: Some(prefix.to_owned()),
            set_specs: view.set_specs().map(unescape).collect::<Result<_, _>>()?,
            is_deleted,
            ..Self::default()
        };
        let of_list = [("", OAI), ("xsi", XSI)].map(|(prefix, uri)| (prefix.to_owned(), uri.to_owned()));
        let around: Vec<(String, String)> = of_list.into_iter().chain(view.root().declarations()).collect();
        let mut reader = view.content();
        let mut container: Option<(usize, NamespaceScope)> = None;
        while let Some(event) = reader.read()? {
            match event {
                XmlEvent::Start(tag) if reader.depth() == 1 => {
                    let declared: Vec<_> = around.iter().cloned().chain(tag.declarations()).collect();
                    let pairs = declared.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str()));
                    container = Some((reader.span().end, NamespaceScope::new(pairs)));
                }
                XmlEvent::End(tag) if reader.depth() == 1 => {
                    let Some((start, scope)) = container.take() else { continue };
                    let content = record.get(start..reader.span().start).unwrap_or_default().trim();
                    match tag.local_name() {
                        "metadata" if !content.is_empty() => {
                            tape_record.metadata = self_contained(content, &scope)?;
                        }
                        "about" => tape_record.abouts.push(self_contained(content, &scope)?),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(tape_record)
    }

    /// The datestamp in seconds since 1970; `None` if it is not legal.
    pub fn datestamp_secs(&self) -> Option<UnixSecs> {
        to_secs(&self.datestamp)
    }

    /// Writes the `tapeRecord` element.
    pub(crate) fn write(&self, xml: &mut String) {
        xml.push_str("<tapeRecord><tapeRecordAdmin>");
        element("identifier", &[], &self.identifier, xml);
        element("date", &[], &self.datestamp, xml);
        xml.push_str("<recordAdmin><header xmlns=\"");
        xml.push_str(ADMIN_NAMESPACE);
        xml.push('"');
        if let Some(prefix) = &self.prefix {
            xml.push_str(" metadataPrefix=\"");
            escape(prefix, xml);
            xml.push('"');
        }
        xml.push_str(if self.is_deleted { " status=\"deleted\">" } else { ">" });
        for set_spec in &self.set_specs {
            element("setSpec", &[], set_spec, xml);
        }
        xml.push_str("</header></recordAdmin>");
        for about in &self.abouts {
            xml.push_str(&format!(
                "<recordAdmin><about xmlns=\"{ADMIN_NAMESPACE}\">{about}</about></recordAdmin>"
            ));
        }
        xml.push_str("</tapeRecordAdmin><record>");
        match self.metadata.as_str() {
            // The schema of tapes wants an element.
            "" => xml.push_str(&format!("<deleted xmlns=\"{ADMIN_NAMESPACE}\"/>")),
            metadata => xml.push_str(metadata),
        }
        xml.push_str("</record></tapeRecord>\n");
    }

    /// Reads a `tapeRecord` element. `root` is the start tag of the tape, and `at` the place of the element.
    ///
    /// # Errors
    ///
    /// The element is malformed, or has no identifier or no legal date.
    pub(crate) fn read(root: &str, text: &str, at: u64) -> Result<Self, Fault> {
        let whole = format!("{root}{text}");
        let mut reading =
            Reading { whole: &whole, record: Self::default(), open: Vec::new(), has_record: false };
        reading.read().map_err(|error| Fault::xml(at, format!("the tapeRecord cannot be read: {error}")))?;
        let Reading { record, has_record, .. } = reading;
        let fault = |problem: &str| Err(Fault::xml(at, format!("the tapeRecord {problem}")));
        if record.identifier.is_empty() {
            return fault("has no identifier");
        }
        if record.datestamp_secs().is_none() {
            let (identifier, date) = (record.identifier.escape_debug(), record.datestamp.escape_debug());
            return fault(&format!("of {identifier} has the date \"{date}\", which is no UTC date"));
        }
        let is_long = |set: &String| set.len() > SET_SPEC_BYTES_MAX;
        if record.set_specs.len() > RECORD_SETS_MAX || record.set_specs.iter().any(is_long) {
            return fault("names more than 1,000 sets, or one of more than 1,024 bytes");
        }
        if record.prefix.as_ref().is_some_and(|prefix| prefix.len() > PREFIX_BYTES_MAX) {
            return fault("has a metadataPrefix of more than 256 bytes");
        }
        if !has_record {
            return fault(&format!("of {} has no record element", record.identifier.escape_debug()));
        }
        Ok(record)
    }

    /// Writes an OAI-PMH `record` element.
    pub fn write_oai(&self, granularity: Granularity, xml: &mut String) {
        xml.push_str("<record>");
        self.write_oai_header(granularity, xml);
        if !self.is_deleted {
            xml.push_str("<metadata>");
            xml.push_str(&self.metadata);
            xml.push_str("</metadata>");
        }
        for about in &self.abouts {
            xml.push_str(&format!("<about>{about}</about>"));
        }
        xml.push_str("</record>\n");
    }

    /// Writes an OAI-PMH `header` element.
    pub fn write_oai_header(&self, granularity: Granularity, xml: &mut String) {
        xml.push_str(if self.is_deleted { "<header status=\"deleted\">" } else { "<header>" });
        element("identifier", &[], &self.identifier, xml);
        element("datestamp", &[], &granularity.fitted(&self.datestamp), xml);
        for set_spec in &self.set_specs {
            element("setSpec", &[], set_spec, xml);
        }
        xml.push_str("</header>");
    }

    /// The namespace of the document element of the metadata; `None` if there is none.
    pub fn namespace(&self) -> Option<String> {
        self.root_namespace().map(|(namespace, _)| namespace)
    }

    /// The namespace of the document element of the metadata, and the schema that its `xsi:schemaLocation` gives for it.
    pub(crate) fn root_namespace(&self) -> Option<(String, Option<String>)> {
        let mut reader = NamespaceReader::new(XmlReader::new(&self.metadata));
        loop {
            let XmlEvent::Start(tag) = reader.read().ok()?? else { continue };
            let namespace = reader.namespace(tag).ok()?.to_owned();
            let places = tag.attribute("xsi:schemaLocation").ok().flatten().unwrap_or_default();
            let mut words = places.split_ascii_whitespace();
            let mut schema = None;
            while let (Some(uri), Some(place)) = (words.next(), words.next()) {
                if uri == namespace {
                    schema = Some(place.to_owned());
                }
            }
            return Some((namespace, schema));
        }
    }
}

/// An element that is open while a `tapeRecord` is read.
struct Open {
    part: Part,
    /// The start of its content.
    content: usize,
    declared: Vec<(String, String)>,
}

/// The part of a `tapeRecord` that an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Tape,
    TapeRecord,
    Admin,
    Identifier,
    Date,
    RecordAdmin,
    Header,
    SetSpec,
    About,
    Record,
    /// Ours, in the place of the metadata of a deleted record.
    Deleted,
    Content,
}

/// Reads a `tapeRecord` inside the start tag of its tape. What a record encloses is content, whatever its names are.
struct Reading<'x> {
    whole: &'x str,
    record: TapeRecord,
    open: Vec<Open>,
    has_record: bool,
}

impl Reading<'_> {
    fn read(&mut self) -> Result<(), XmlError> {
        let mut reader = NamespaceReader::new(XmlReader::new(self.whole));
        let mut text = String::new();
        while let Some(event) = reader.read()? {
            match event {
                XmlEvent::Start(tag) => {
                    let parent = self.open.last().map(|open| open.part);
                    let part = match parent {
                        Some(Part::Content) => Part::Content,
                        parent => part_of(parent, reader.namespace(tag)?, tag.local_name()),
                    };
                    if part == Part::Header {
                        let deleted = tag.attribute("status")?.is_some_and(|status| status == "deleted");
                        self.record.is_deleted |= deleted;
                        self.record.prefix = tag.attribute("metadataPrefix")?.map(Into::into);
                    }
                    self.record.is_deleted |= part == Part::Deleted;
                    text.clear();
                    let declared = if part == Part::Content { Vec::new() } else { tag.declarations() };
                    self.open.push(Open { part, content: reader.span().end, declared });
                }
                XmlEvent::Text(characters)
                    if self.open.last().is_some_and(|open| {
                        matches!(open.part, Part::Identifier | Part::Date | Part::SetSpec)
                    }) =>
                {
                    text.push_str(&characters.resolve()?);
                }
                XmlEvent::End(_) => {
                    let end = reader.span().start;
                    let Some(open) = self.open.last() else { continue };
                    self.end(open.part, open.content, end, text.trim())?;
                    let is_whole = self.open.pop().is_some_and(|open| open.part == Part::TapeRecord);
                    if is_whole {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(XmlError::new("it has no end"))
    }

    fn end(&mut self, part: Part, start: usize, end: usize, text: &str) -> Result<(), XmlError> {
        match part {
            Part::Identifier => self.record.identifier = text.to_owned(),
            Part::Date => self.record.datestamp = text.to_owned(),
            Part::SetSpec => self.record.set_specs.push(text.to_owned()),
            Part::About => {
                let about = self.content(start, end)?;
                self.record.abouts.push(about);
            }
            Part::Record => {
                self.has_record = true;
                if !self.record.is_deleted {
                    self.record.metadata = self.content(start, end)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The content of the innermost element, with the declarations of the elements around it.
    fn content(&self, start: usize, end: usize) -> Result<String, XmlError> {
        let declared = self.open.iter().flat_map(|open| &open.declared);
        let scope = NamespaceScope::new(declared.map(|(prefix, uri)| (prefix.as_str(), uri.as_str())));
        self_contained(self.whole.get(start..end).unwrap_or_default().trim(), &scope)
    }
}

fn part_of(parent: Option<Part>, namespace: &str, name: &str) -> Part {
    match (parent, namespace, name) {
        (None, _, _) => Part::Tape,
        (Some(Part::Tape), NAMESPACE, "tapeRecord") => Part::TapeRecord,
        (Some(Part::TapeRecord), NAMESPACE, "tapeRecordAdmin") => Part::Admin,
        (Some(Part::TapeRecord), NAMESPACE, "record") => Part::Record,
        (Some(Part::Admin), NAMESPACE, "identifier") => Part::Identifier,
        (Some(Part::Admin), NAMESPACE, "date") => Part::Date,
        (Some(Part::Admin), NAMESPACE, "recordAdmin") => Part::RecordAdmin,
        (Some(Part::RecordAdmin), ADMIN_NAMESPACE, "header") => Part::Header,
        (Some(Part::RecordAdmin), ADMIN_NAMESPACE, "about") => Part::About,
        (Some(Part::Header), ADMIN_NAMESPACE, "setSpec") => Part::SetSpec,
        (Some(Part::Record), ADMIN_NAMESPACE, "deleted") => Part::Deleted,
        _ => Part::Content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "<tape xmlns=\"http://library.lanl.gov/2005-08/aDORe/XMLtape/\">";

    fn record() -> TapeRecord {
        TapeRecord {
            identifier: "oai:x:1&2 <\"é\">".to_owned(),
            datestamp: "2001-02-03".to_owned(),
            prefix: Some("p\"&".to_owned()),
            set_specs: vec!["a".to_owned(), "a:b&".to_owned()],
            is_deleted: false,
            metadata: format!(
                "<m:m xmlns:m='m'><tapeRecord xmlns=\"{NAMESPACE}\"><record/></tapeRecord>\
                 <![CDATA[</record></tapeRecord>]]><?tapeRecord </record>?><!-- </tape> --> ]]&gt;</m:m>"
            ),
            abouts: vec!["<r xmlns='r'/>".to_owned(), "<r xmlns=''/>".to_owned()],
        }
    }

    #[test]
    fn a_record_is_read_as_written_whatever_it_contains() {
        let deleted = TapeRecord { is_deleted: true, metadata: String::new(), ..record() };
        for record in [record(), deleted] {
            let mut xml = String::new();
            record.write(&mut xml);
            assert_eq!(TapeRecord::read(ROOT, &xml, 7), Ok(record));
        }
    }

    #[test]
    fn a_record_without_metadata_is_deleted_whatever_its_header_says() {
        let mut xml = String::new();
        TapeRecord { metadata: String::new(), ..record() }.write(&mut xml);
        let read = TapeRecord::read(ROOT, &xml, 0).expect("a record");
        assert!(read.is_deleted && read.metadata.is_empty());
    }

    #[test]
    fn a_record_of_another_program_gets_the_declarations_around_it() {
        let root = format!("<t:tape xmlns:t=\"{NAMESPACE}\" xmlns:dc=\"dc\" xmlns='d'>");
        let text = "<t:tapeRecord xmlns:x='x'><t:tapeRecordAdmin><t:identifier> a </t:identifier><t:date>2001-01-01\
                    T00:00:00Z</t:date><t:recordAdmin><header metadataPrefix='not ours'/></t:recordAdmin>\
                    </t:tapeRecordAdmin><t:record><dc:a><x:b/><c/></dc:a></t:record></t:tapeRecord>";
        let read = TapeRecord::read(&root, text, 0).expect("a record");
        let metadata = "<dc:a xmlns:dc=\"dc\" xmlns:x=\"x\" xmlns=\"d\"><x:b/><c/></dc:a>".to_owned();
        let expected = TapeRecord {
            identifier: "a".into(),
            datestamp: "2001-01-01T00:00:00Z".into(),
            metadata,
            ..TapeRecord::default()
        };
        assert_eq!(read, expected);
        assert_eq!(read.root_namespace(), Some(("dc".to_owned(), None)));
    }

    #[test]
    fn broken_records_are_faults_with_their_place() {
        for (text, expected) in [
            ("<tapeRecord><record/></tapeRecord>", "at byte 7 of the XML: the tapeRecord has no identifier"),
            (
                "<tapeRecord><tapeRecordAdmin><identifier>a</identifier><date>2001</date></tapeRecordAdmin><record/></tapeRecord>",
                "at byte 7 of the XML: the tapeRecord of a has the date \"2001\", which is no UTC date",
            ),
            (
                "<tapeRecord><tapeRecordAdmin><identifier>a</identifier><date>2001-01-01</date></tapeRecordAdmin></tapeRecord>",
                "at byte 7 of the XML: the tapeRecord of a has no record element",
            ),
            ("<tapeRecord>", "at byte 7 of the XML: the tapeRecord cannot be read: it has no end"),
        ] {
            assert_eq!(
                TapeRecord::read(ROOT, text, 7).map_err(|fault| fault.to_string()),
                Err(expected.to_owned())
            );
        }
    }

    #[test]
    fn a_record_of_oai_pmh_becomes_a_tape_record_and_back() {
        let header = "<header><identifier>a&amp;b</identifier><datestamp>2001-01-01</datestamp><setSpec>x&amp;y</setSpec></header>";
        let xml = format!(
            "<record xmlns:q=\"q\">{header}<metadata xmlns:w=\"w\"> <q:a xsi:x=\"1\" xmlns:xsi=\"{XSI}\"><w:b/><c/></q:a>\n</metadata>\
             <about><p xmlns=\"p\"/></about></record>"
        );
        let record = TapeRecord::from_oai("a&b", "p", &xml).expect("a record");
        assert_eq!(
            (record.datestamp.as_str(), record.set_specs.as_slice()),
            ("2001-01-01", ["x&y".to_owned()].as_slice())
        );
        assert_eq!(
            record.metadata,
            format!(
                "<q:a xmlns:q=\"q\" xmlns:w=\"w\" xmlns=\"{OAI}\" xsi:x=\"1\" xmlns:xsi=\"{XSI}\"><w:b/><c/></q:a>"
            )
        );
        let mut back = String::new();
        record.write_oai(Granularity::Second, &mut back);
        let header = header.replace("2001-01-01", "2001-01-01T00:00:00Z");
        assert_eq!(
            back,
            format!(
                "<record>{header}<metadata>{}</metadata><about><p xmlns=\"p\"/></about></record>\n",
                record.metadata
            )
        );
        let deleted = "<record><header status='deleted'><identifier>a</identifier><datestamp>2001-01-01</datestamp></header></record>";
        assert!(TapeRecord::from_oai("a", "p", deleted).expect("a record").is_deleted);
        assert!(TapeRecord::from_oai("a", "p", "<x/>").is_err());
    }
}
