//! The rows of a dump as CSV (RFC 4180): one for each record. Texts of the metadata are on one line; a line break of an
//! identifier or a setSpec stays, in a quoted cell.

use oaimend_record::{DublinCore, RecordDocument, Text, WorkDescription};
use oaimend_repository::{DeliveredRecord, RecordView};
use std::borrow::Cow;

/// The separator of several values in one cell. In a value it is written `\|`, and a backslash `\\`.
const SEPARATOR: &str = "|";
/// The first characters of cells that spreadsheets execute as formulas (OWASP, CSV Injection).
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];
const HEADER_COLUMNS: [&str; 4] = ["identifier", "datestamp", "deleted", "setSpecs"];
/// Whether the columns of Dublin Core have everything that the record says: its format is known, and no text was too long.
const COMPLETE_COLUMN: &str = "dc_complete";
/// Bytes that the writer of a row reserves.
const ROW_BYTES: usize = 1 << 10;

/// The first row, with the names of the columns.
pub(crate) fn header_row() -> Vec<u8> {
    let core = DublinCore::default();
    let names = core.fields().map(|(name, _)| format!("dc_{name}"));
    let columns = HEADER_COLUMNS.iter().map(|name| (*name).to_owned()).chain(names);
    write_row(&columns.chain([COMPLETE_COLUMN.to_owned()]).collect::<Vec<_>>())
}

/// The row of a record.
pub(crate) fn row(record: &DeliveredRecord) -> Vec<u8> {
    let (core, is_complete) = if record.deleted { (DublinCore::default(), true) } else { read_core(record) };
    let cells = [
        record.identifier.clone(),
        record.datestamp.clone(),
        record.deleted.to_string(),
        joined(record.set_specs.iter().map(|set_spec| Cow::Borrowed(set_spec.as_str()))),
    ];
    let values = |texts: &[Text]| joined(texts.iter().map(|text| Cow::Owned(text.on_one_line().value)));
    let core = core.fields().map(|(_, texts)| values(texts));
    let cells = cells.into_iter().chain(core).chain([is_complete.to_string()]);
    write_row(&cells.map(without_formula).collect::<Vec<_>>())
}

fn read_core(record: &DeliveredRecord) -> (DublinCore, bool) {
    let view = RecordView::read(&record.xml);
    let document = view.and_then(|view| RecordDocument::read_for_conversion(&view).ok());
    document.map_or_else(
        || (DublinCore::default(), false),
        |document| {
            let core = WorkDescription::without_links(&document).core;
            let is_complete = document.is_whole() && !core.is_empty();
            (core, is_complete)
        },
    )
}

fn joined<'t>(values: impl Iterator<Item = Cow<'t, str>>) -> String {
    let escaped = values.map(|value| value.replace('\\', "\\\\").replace(SEPARATOR, "\\|"));
    escaped.collect::<Vec<_>>().join(SEPARATOR)
}

/// The cell with an apostrophe before a formula: spreadsheets show it as text.
fn without_formula(cell: String) -> String {
    if cell.starts_with(FORMULA_STARTS) { format!("'{cell}") } else { cell }
}

/// All cells are quoted, because spreadsheets of some languages separate cells by semicolons.
fn write_row(cells: &[String]) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new()
        .quote_style(csv::QuoteStyle::Always)
        .buffer_capacity(ROW_BYTES)
        .from_writer(Vec::with_capacity(ROW_BYTES));
    writer.write_record(cells).expect("a vector takes all bytes");
    writer.into_inner().expect("a vector takes all bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::RecordRepairs;

    fn record(identifier: &str, core: &str) -> DeliveredRecord {
        let xml = format!(
            "<record><header><identifier>{identifier}</identifier><datestamp>2026-01-01T00:00:00Z</datestamp></header>\
             <metadata><d:dc xmlns:d=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{core}</d:dc></metadata></record>"
        );
        DeliveredRecord {
            identifier: identifier.to_owned(),
            datestamp: "2026-01-01T00:00:00Z".to_owned(),
            deleted: false,
            set_specs: vec!["a".to_owned(), "b:c".to_owned()],
            datestamp_at: 0..0,
            repairs: RecordRepairs::default(),
            xml,
        }
    }

    fn cells(row: &[u8]) -> Vec<String> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(row);
        let record = reader.records().next().expect("a row").expect("a legal row");
        record.iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_row_has_the_header_and_the_dublin_core_of_a_record() {
        let names = cells(&header_row());
        assert_eq!((names.len(), names[0].as_str(), names[4].as_str()), (20, "identifier", "dc_title"));
        let core =
            "<dc:title>A, \"b\"\n c</dc:title><dc:creator>X|Y</dc:creator><dc:creator>Z\\</dc:creator>";
        let row = row(&record("oai:x:1", core));
        assert_eq!(row.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
        let cells = cells(&row);
        assert_eq!(
            cells[..6],
            ["oai:x:1", "2026-01-01T00:00:00Z", "false", "a|b:c", "A, \"b\" c", "X\\|Y|Z\\\\"]
        );
        assert_eq!(cells[19], "true");
    }

    #[test]
    fn a_cell_never_begins_a_formula() {
        for start in ["=1+1", "+1", "-1", "@SUM(A1)"] {
            let cells = cells(&row(&record("x", &format!("<dc:title>{start}</dc:title>"))));
            assert_eq!(cells[4], format!("'{start}"));
        }
        let row = String::from_utf8(row(&record("=x", "<dc:title>a;=b</dc:title>"))).expect("UTF-8");
        assert!(row.starts_with("\"'=x\",") && row.contains("\"a;=b\""), "{row}");
    }

    #[test]
    fn a_record_that_cannot_be_read_has_a_row_that_says_so() {
        let mut unread = record("x", "<dc:title>a</dc:title>");
        "<x/>".clone_into(&mut unread.xml);
        let unread = cells(&row(&unread));
        assert_eq!((unread[0].as_str(), unread[19].as_str()), ("x", "false"));
        let mut deleted = record("x", "");
        deleted.deleted = true;
        let deleted = cells(&row(&deleted));
        assert_eq!((deleted[2].as_str(), deleted[19].as_str()), ("true", "true"));
    }
}
