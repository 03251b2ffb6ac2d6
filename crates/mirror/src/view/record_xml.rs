//! Writes stored records and their headers.
//!
//! The header of a record is always written from the fields of the store, so that `ListIdentifiers`, `ListRecords`
//! and `GetRecord` show the same one. The rest of the record is copied as stored.

use oaimend_oai::datestamp::{self, Granularity, from_secs};
use oaimend_oai::escape;
use oaimend_repository::DeliveredRecord;
use oaimend_store::{RecordRepairs, RecordStatus, StoredRecord};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::borrow::Cow;
use std::ops::Range;

/// A header to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'r> {
    identifier: &'r str,
    datestamp: String,
    is_deleted: bool,
    set_specs: Cow<'r, [String]>,
}

impl<'r> Header<'r> {
    /// The header of a stored record with this stamp, in these sets.
    pub(super) fn with_stamp(
        record: &'r StoredRecord,
        stamp_secs: i64,
        set_specs: Cow<'r, [String]>,
    ) -> Self {
        let datestamp = from_secs(stamp_secs, Granularity::Second);
        let is_deleted = record.status == RecordStatus::Deleted;
        Self { identifier: &record.identifier, datestamp, is_deleted, set_specs }
    }

    /// The header of a stored record as its source has it.
    pub fn of_source(record: &'r StoredRecord, granularity: Granularity) -> Self {
        Self {
            identifier: &record.identifier,
            datestamp: from_secs(record.datestamp_secs, granularity),
            is_deleted: record.status == RecordStatus::Deleted,
            set_specs: Cow::Borrowed(&record.set_specs),
        }
    }

    /// The identifier and the datestamp.
    pub(crate) fn names(&self) -> (&str, &str) {
        (self.identifier, &self.datestamp)
    }

    /// Writes the element. `prefix` is the prefix of the OAI namespace with its colon, or empty.
    pub(crate) fn write(&self, prefix: &str, xml: &mut String) {
        let status = if self.is_deleted { " status=\"deleted\"" } else { "" };
        push(xml, &["<", prefix, "header", status, ">"]);
        let set_specs = self.set_specs.iter().map(|set_spec| ("setSpec", set_spec.as_str()));
        let fields = [("identifier", self.identifier), ("datestamp", &self.datestamp)];
        for (name, value) in fields.into_iter().chain(set_specs) {
            push(xml, &["<", prefix, name, ">"]);
            escape(value, xml);
            push(xml, &["</", prefix, name, ">"]);
        }
        push(xml, &["</", prefix, "header>"]);
    }

    /// The record with this XML, as an event reports it.
    pub(crate) fn to_delivered(&self, xml: &str) -> DeliveredRecord {
        let datestamp = self.datestamp.clone();
        // The identifier before it contains no tag.
        let element = xml.find(&format!("datestamp>{datestamp}<")).map(|at| at + "datestamp>".len());
        DeliveredRecord {
            identifier: self.identifier.to_owned(),
            datestamp_at: element.map(|start| start..start + datestamp.len()).unwrap_or_default(),
            datestamp,
            deleted: self.is_deleted,
            set_specs: self.set_specs.to_vec(),
            xml: xml.to_owned(),
            // The source of the mirror sent it broken, and the mirror sends it whole.
            repairs: RecordRepairs::default(),
        }
    }
}

fn push(xml: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| xml.push_str(part));
}

/// A text that a view inserts into a stored record after its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// The place in the stored record.
    pub(crate) at: usize,
    pub(crate) text: String,
}

/// The places of a stored record at which a view changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPlaces<'r> {
    /// The prefix of the OAI namespace with its colon, or empty.
    pub(crate) prefix: &'r str,
    header: Range<usize>,
    /// The start of the end tag.
    pub(super) end: usize,
}

impl<'r> RecordPlaces<'r> {
    /// Reads a record up to the end of its header. `None` if it is not a record with a header and an end tag.
    pub(crate) fn read(record: &'r str) -> Option<Self> {
        let mut reader = Reader::from_str(record);
        let (mut depth, mut prefix, mut header_start) = (0_usize, "", None);
        loop {
            let before = reader.buffer_position() as usize;
            match reader.read_event().ok()? {
                Event::Start(tag) => {
                    let name = tag.local_name();
                    let name: &str = name.as_ref();
                    match depth {
                        0 if name == "record" => {
                            let written = record.get(before + 1..)?;
                            prefix = written.split_once("record").map(|(prefix, _)| prefix)?;
                        }
                        1 if name == "header" => header_start = Some(before),
                        0 | 1 => return None,
                        _ => {}
                    }
                    depth += 1;
                }
                Event::End(_) => {
                    depth = depth.checked_sub(1)?;
                    if let (1, Some(start)) = (depth, header_start) {
                        let header = start..reader.buffer_position() as usize;
                        let end = record.rfind("</").filter(|&end| end >= header.end)?;
                        return Some(Self { prefix, header, end });
                    }
                }
                Event::Eof => return None,
                _ => {}
            }
        }
    }

    /// The datestamp in the header of the stored record, in seconds since 1970. `None` if it is not legal.
    pub(super) fn datestamp_secs(&self, record: &str) -> Option<i64> {
        let (_, rest) = record.get(self.header.clone())?.split_once("datestamp>")?;
        datestamp::to_secs(rest.split('<').next()?.trim())
    }

    /// The place of the datestamp in the header of the record. `None` if there is none.
    pub(crate) fn datestamp_at(&self, record: &str) -> Option<Range<usize>> {
        let header = record.get(self.header.clone())?;
        let start = header.find("datestamp>")? + "datestamp>".len();
        let len = header.get(start..)?.find('<')?;
        let start = self.header.start + start;
        Some(start..start + len)
    }

    /// The setSpecs in the header of the record, as its source sent it.
    pub(crate) fn set_specs(&self, record: &str) -> Vec<String> {
        let mut reader = Reader::from_str(record.get(self.header.clone()).unwrap_or_default());
        let (mut set_specs, mut is_set_spec) = (Vec::new(), false);
        loop {
            match reader.read_event() {
                Ok(Event::Start(tag)) => {
                    let name = tag.local_name();
                    let name: &str = name.as_ref();
                    is_set_spec = name == "setSpec";
                }
                Ok(Event::Text(text)) if is_set_spec => set_specs.push(text.as_ref().trim().to_owned()),
                Ok(Event::End(_)) => is_set_spec = false,
                Ok(Event::Eof) | Err(_) => return set_specs,
                Ok(_) => {}
            }
        }
    }

    /// Writes the record with another header, and with these texts in the order of their places.
    pub fn write(&self, record: &str, header: &Header<'_>, insertions: &[Insertion], xml: &mut String) {
        let part = |range: Range<usize>| record.get(range).unwrap_or_default();
        xml.push_str(part(0..self.header.start));
        header.write(self.prefix, xml);
        let mut written = self.header.end;
        for Insertion { at, text } in insertions {
            xml.push_str(part(written..*at));
            xml.push_str(text);
            written = *at;
        }
        xml.push_str(part(written..record.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header<'static> {
        Header {
            identifier: "oai:x:1&2",
            datestamp: "2001-09-09T01:46:40Z".into(),
            is_deleted: false,
            set_specs: vec!["a".into(), "a:b".into()].into(),
        }
    }

    fn rewritten(record: &str, about: &str) -> Option<String> {
        let (mut xml, places) = (String::new(), RecordPlaces::read(record)?);
        let about = Insertion { at: places.end, text: about.to_owned() };
        places.write(record, &header(), &[about], &mut xml);
        Some(xml)
    }

    const FIELDS: &str = "<identifier>oai:x:1&amp;2</identifier><datestamp>2001-09-09T01:46:40Z</datestamp>\
        <setSpec>a</setSpec><setSpec>a:b</setSpec>";

    #[test]
    fn the_header_is_replaced_and_the_rest_is_copied() {
        let metadata = "<metadata><a>x</a><b/> <!-- </header> --></metadata>\n";
        for (before, old) in [
            ("<record>", "<header><identifier>o</identifier><datestamp>2020-01-01</datestamp></header>"),
            ("<record a='>'>\n <!-- <header> --> ", "<header\n><x><![CDATA[</header>]]></x></header >"),
        ] {
            let record = format!("{before}{old}{metadata}</record>");
            let expected = format!("{before}<header>{FIELDS}</header>{metadata}<about/></record>");
            assert_eq!(rewritten(&record, "<about/>"), Some(expected));
        }
    }

    #[test]
    fn a_prefix_of_the_record_is_kept() {
        let fields = FIELDS.replace("</", "</@").replace('<', "<o:").replace("<o:/@", "</o:");
        assert_eq!(
            rewritten(
                "<o:record xmlns:o='u'><o:header><o:identifier>x</o:identifier></o:header></o:record>",
                ""
            ),
            Some(format!("<o:record xmlns:o='u'><o:header>{fields}</o:header></o:record>"))
        );
    }

    #[test]
    fn a_deleted_record_has_its_status() {
        let mut xml = String::new();
        Header { is_deleted: true, ..header() }.write("", &mut xml);
        assert_eq!(xml, format!("<header status=\"deleted\">{FIELDS}</header>"));
    }

    #[test]
    fn other_texts_are_no_records() {
        for text in
            ["", "text", "<record/>", "<record></record>", "<x><header></header></x>", "<record><header>"]
        {
            assert_eq!(RecordPlaces::read(text), None, "{text}");
        }
    }
}
