//! Writes stored records and their headers.
//!
//! The header of a record is always written from the fields of the store, so that `ListIdentifiers`, `ListRecords`
//! and `GetRecord` show the same one. The rest of the record is copied as stored.

use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_repository::{DeliveredRecord, Failure, Reason, RecordView};
use oaimend_store::{RecordRepairs, RecordStatus, ServedHeader, StoredRecord};
use std::borrow::Cow;
use std::ops::Range;

/// A header to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'r> {
    identifier: &'r str,
    datestamp: Cow<'r, str>,
    status: RecordStatus,
    set_specs: Cow<'r, [String]>,
}

impl<'r> Header<'r> {
    /// The header of a stored record with this datestamp, in these sets.
    pub(super) fn with_datestamp(
        record: &'r StoredRecord,
        datestamp: &'r str,
        set_specs: Cow<'r, [String]>,
    ) -> Self {
        let (identifier, status) = (&record.identifier, record.status);
        Self { identifier, datestamp: Cow::Borrowed(datestamp), status, set_specs }
    }

    /// The header of a stored record as its source has it.
    pub fn of_source(record: &'r StoredRecord, granularity: Granularity) -> Self {
        Self {
            identifier: &record.identifier,
            datestamp: Cow::Owned(from_secs(record.datestamp_secs, granularity)),
            status: record.status,
            set_specs: Cow::Borrowed(&record.set_specs),
        }
    }

    /// The identifier and the datestamp.
    pub(crate) fn names(&self) -> (&str, &str) {
        (self.identifier, &self.datestamp)
    }

    /// Writes the element. `prefix` is the prefix of the OAI namespace with its colon, or empty.
    pub(crate) fn write(&self, prefix: &str, xml: &mut String) {
        let Self { identifier, datestamp, status, set_specs } = self;
        let is_deleted = *status == RecordStatus::Deleted;
        ServedHeader { identifier, datestamp, is_deleted, set_specs }.write(prefix, xml);
    }

    /// Writes a stored record with this header, and with these texts in the order of their places.
    pub fn write_record(&self, record: &RecordView<'_>, insertions: &[Insertion], xml: &mut String) {
        let text = record.text();
        let part = |range: Range<usize>| text.get(range).unwrap_or_default();
        let header = record.header();
        xml.push_str(part(0..header.start));
        self.write(record.root().prefix(), xml);
        let mut written = header.end;
        for Insertion { at, text } in insertions {
            xml.push_str(part(written..*at));
            xml.push_str(text);
            written = *at;
        }
        xml.push_str(part(written..text.len()));
    }

    /// The record with this XML, as an event reports it.
    pub(crate) fn to_delivered(&self, xml: &str) -> DeliveredRecord {
        let datestamp = self.datestamp.to_string();
        // The identifier before it contains no tag.
        let element = xml.find(&format!("datestamp>{datestamp}<")).map(|at| at + "datestamp>".len());
        DeliveredRecord {
            identifier: self.identifier.to_owned(),
            datestamp_at: element.map(|start| start..start + datestamp.len()).unwrap_or_default(),
            datestamp,
            deleted: self.status == RecordStatus::Deleted,
            set_specs: self.set_specs.to_vec(),
            xml: xml.to_owned(),
            // The source of the mirror sent it broken, and the mirror sends it whole.
            repairs: RecordRepairs::default(),
        }
    }
}

/// Reads a stored record.
///
/// # Errors
///
/// It is not a record element.
pub fn read_record(record: &StoredRecord) -> Result<RecordView<'_>, Failure> {
    let text = simdutf8::basic::from_utf8(&record.bytes).ok();
    text.and_then(RecordView::read).ok_or_else(|| {
        let details = format!("the stored record {} is not a record element", record.identifier);
        Failure::new(Reason::Mirror, details)
    })
}

/// A text that a view inserts into a stored record after its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// The place in the stored record.
    pub(crate) at: usize,
    pub(crate) text: String,
}

#[cfg(test)]
mod tests {
    use super::super::page_items::PageItems;
    use super::*;
    use oaimend_store::RecordLayout;

    fn header() -> Header<'static> {
        Header {
            identifier: "oai:x:1&2",
            datestamp: "2001-09-09T01:46:40Z".into(),
            status: RecordStatus::Live,
            set_specs: vec!["a".into(), "a:b".into()].into(),
        }
    }

    fn rewritten(record: &str, about: &str) -> Option<String> {
        let (mut xml, view) = (String::new(), RecordView::read(record)?);
        let about = Insertion { at: view.end(), text: about.to_owned() };
        header().write_record(&view, &[about], &mut xml);
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
    fn a_record_with_a_layout_is_written_as_it_is_after_reading_it() {
        let seed = 20_261_128;
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let usual = "<record>\n<header status=\"deleted\"><identifier>o</identifier><datestamp>2020</datestamp>\
            <setSpec>a</setSpec></header><metadata><a>x</a><header></header></metadata></record>";
        let pieces = [
            "<",
            ">",
            "/",
            "\"",
            "'",
            " ",
            "\n",
            "<!--",
            "-->",
            "<x>",
            "</x>",
            "</header>",
            "<header>",
            "<![CDATA[",
            "]]>",
            "</record>",
            "<record>",
            "=",
            "&amp;",
            "<setSpec/>",
            "é",
        ];
        let mut with_layout = 0;
        for _ in 0..20_000 {
            let mut record = usual.to_owned();
            for _ in 0..random.usize(0..3) {
                let places: Vec<usize> = record.char_indices().map(|(at, _)| at).collect();
                let at = places[random.usize(..places.len())];
                let end = if random.bool() { at } else { places[random.usize(..places.len())].max(at) };
                let end = record.floor_char_boundary(end.min(at + 12));
                record.replace_range(at..end, pieces[random.usize(..pieces.len())]);
            }
            let layout = RecordLayout::of(record.as_bytes());
            let (Some(layout), Some(read)) = (layout, RecordView::read(&record)) else { continue };
            with_layout += 1;
            let (mut items, mut expected) = (PageItems::default(), PageItems::default());
            items.push_around(&header(), layout.split(record.as_bytes()).expect("its own layout"));
            expected.push_record(&read, &header(), &[]);
            assert_eq!(items.into_page().xml, expected.into_page().xml, "{record}");
        }
        assert!(with_layout > 5_000, "{with_layout}");
    }

    #[test]
    fn a_deleted_record_has_its_status() {
        let mut xml = String::new();
        Header { status: RecordStatus::Deleted, ..header() }.write("", &mut xml);
        assert_eq!(xml, format!("<header status=\"deleted\">{FIELDS}</header>"));
    }
}
