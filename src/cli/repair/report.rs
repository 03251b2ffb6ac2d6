//! The report of `oaimend repair --report`: the journal as JSON Lines.
//!
//! One line for each repair and each quarantined item, in the order of the text, and the summary as
//! the last line. Scripts depend on this format.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

use oaimend_repair::{Outcome, Quarantined, Repair, RepairCounts, Summary, SwallowedItems, UnresolvedField};

/// Writes the report of one response.
///
/// Pass a buffered writer: each line is one write. After an error nothing more is written;
/// [`Report::finish`] returns the first error.
#[derive(Debug)]
pub(super) struct Report<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Report<W> {
    /// Creates a report that is written to `out`.
    pub(super) fn new(out: W) -> Self {
        Self { out, failed: None }
    }

    /// Writes the line of a repair.
    pub(super) fn repaired(&mut self, repair: &Repair<'_>) {
        self.line(&RepairLine {
            repair: repair.id.name(),
            offset: repair.offset,
            record: repair.record.map(String::from_utf8_lossy),
            original: repair.original,
            replacement: repair.replacement,
        });
    }

    /// Writes the line of a quarantined item.
    pub(super) fn quarantined(&mut self, item: &Quarantined<'_>) {
        self.line(&QuarantineLine {
            quarantined: item.identifier.map(String::from_utf8_lossy),
            offset: item.offset,
            length: item.raw.len(),
            why: item.why.name(),
        });
    }

    /// Writes the line of items inside a CDATA section or comment.
    pub(super) fn swallowed(&mut self, section: &SwallowedItems<'_>) {
        let identifiers = section.items.iter();
        self.line(&SwallowedLine {
            swallowed: identifiers.map(|item| item.identifier.map(String::from_utf8_lossy)).collect(),
            offset: section.offset,
            record: section.identifier.map(String::from_utf8_lossy),
        });
    }

    /// Writes the line of a required field without a known value.
    pub(super) fn unresolved(&mut self, field: &UnresolvedField) {
        self.line(&UnresolvedLine {
            unresolved: field.element,
            offset: field.offset,
            why: field.issue.name(),
        });
    }

    /// Writes the summary, flushes and returns the writer.
    ///
    /// # Errors
    ///
    /// The first error of the writer, from any line.
    pub(super) fn finish(mut self, summary: &Summary) -> io::Result<W> {
        self.line(&SummaryLine { summary: SummaryFields::from(summary) });
        match self.failed {
            Some(error) => Err(error),
            None => {
                self.out.flush()?;
                Ok(self.out)
            }
        }
    }

    fn line(&mut self, line: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.out, line)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
        self.failed = written.err();
    }
}

/// `{"repair":"bare-ampersand","offset":1234,"record":"oai:x:2","original":"&","replacement":"&amp;"}`.
/// Serialized by hand, because bytes that are not UTF-8 have another key.
struct RepairLine<'a> {
    repair: &'static str,
    offset: u64,
    record: Option<Cow<'a, str>>,
    original: &'a [u8],
    replacement: &'a [u8],
}

impl Serialize for RepairLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("repair", self.repair)?;
        map.serialize_entry("offset", &self.offset)?;
        if let Some(record) = &self.record {
            map.serialize_entry("record", record)?;
        }
        bytes_entry(&mut map, "original", "original_hex", self.original)?;
        bytes_entry(&mut map, "replacement", "replacement_hex", self.replacement)?;
        map.end()
    }
}

/// Writes UTF-8 bytes as text, and other bytes as lower-case hexadecimal digits with the other key.
fn bytes_entry<M: SerializeMap>(
    map: &mut M,
    key: &'static str,
    hex_key: &'static str,
    bytes: &[u8],
) -> Result<(), M::Error> {
    match str::from_utf8(bytes) {
        Ok(text) => map.serialize_entry(key, text),
        Err(_) => map.serialize_entry(hex_key, &hex::encode(bytes)),
    }
}

#[derive(serde::Serialize)]
struct QuarantineLine<'a> {
    quarantined: Option<Cow<'a, str>>,
    offset: u64,
    length: usize,
    why: &'static str,
}

#[derive(serde::Serialize)]
struct SwallowedLine<'a> {
    swallowed: Vec<Option<Cow<'a, str>>>,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Cow<'a, str>>,
}

#[derive(serde::Serialize)]
struct UnresolvedLine {
    unresolved: &'static str,
    offset: u64,
    why: &'static str,
}

#[derive(serde::Serialize)]
struct SummaryLine {
    summary: SummaryFields,
}

#[derive(serde::Serialize)]
struct SummaryFields {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    version: Option<&'static str>,
    records: u64,
    quarantined: u64,
    #[serde(skip_serializing_if = "is_zero")]
    lost: u64,
    #[serde(skip_serializing_if = "is_zero")]
    swallowed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unresolved: u64,
    repairs: Counts,
    decoded_as: &'static str,
    held_bytes_peak: usize,
}

impl From<&Summary> for SummaryFields {
    fn from(summary: &Summary) -> Self {
        Self {
            outcome: summary.outcome.name(),
            why: match summary.outcome {
                Outcome::NotOai(reason) => Some(reason.name()),
                _ => None,
            },
            version: summary.version,
            records: summary.records,
            quarantined: summary.quarantined,
            lost: summary.lost,
            swallowed: summary.swallowed,
            unresolved: summary.unresolved,
            repairs: Counts(summary.repairs),
            decoded_as: summary.decoded_as,
            held_bytes_peak: summary.held_bytes_peak,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The number of repairs by name; repairs that were not made are left out.
struct Counts(RepairCounts);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, count)| (id.entry().name, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_repair::{FieldIssue, NotOai, QuarantineReason, RepairId, SwallowedItem};

    fn summary(outcome: Outcome) -> Summary {
        let mut summary =
            oaimend_repair::repair(b"<oai xmlns='http://www.openarchives.org/OAI/2.0/'/>").summary;
        summary.outcome = outcome;
        summary.version = Some("2.0");
        summary.records = 5;
        (summary.lost, summary.quarantined, summary.unread) = (0, 0, 0);
        summary.repairs = RepairCounts::default();
        summary.repairs.add(RepairId::BareAmpersand);
        summary.decoded_as = "UTF-8";
        summary.held_bytes_peak = 1834;
        summary
    }

    fn repair<'a>(original: &'a [u8], replacement: &'a [u8]) -> Repair<'a> {
        Repair { id: RepairId::BareAmpersand, offset: 1234, record: Some(b"oai:x:2"), original, replacement }
    }

    fn lines(report: Report<Vec<u8>>, outcome: Outcome) -> String {
        let bytes = report.finish(&summary(outcome)).expect("memory takes all bytes");
        String::from_utf8(bytes).expect("a report is UTF-8")
    }

    #[test]
    fn lines_have_the_documented_format() {
        let mut report = Report::new(Vec::new());
        report.repaired(&repair(b"&", b"&amp;"));
        report.repaired(&Repair { record: None, ..repair(b"\xe9", "é".as_bytes()) });
        report.quarantined(&Quarantined {
            identifier: Some(b"oai:x:3"),
            offset: 2345,
            raw: &[b'<'; 812],
            why: QuarantineReason::MismatchedTags,
        });
        let item = SwallowedItem { identifier: Some(b"oai:x:4"), raw: b"<record>" };
        let items = vec![item, SwallowedItem { identifier: None, ..item }];
        report.swallowed(&SwallowedItems { identifier: Some(b"oai:x:3"), offset: 3456, items });
        report.unresolved(&UnresolvedField { offset: 12, element: "adminEmail", issue: FieldIssue::Missing });
        assert_eq!(
            lines(report, Outcome::Repaired),
            concat!(
                r#"{"repair":"bare-ampersand","offset":1234,"record":"oai:x:2","original":"&","replacement":"&amp;"}"#,
                "\n",
                r#"{"repair":"bare-ampersand","offset":1234,"original_hex":"e9","replacement":"é"}"#,
                "\n",
                r#"{"quarantined":"oai:x:3","offset":2345,"length":812,"why":"mismatched-tags"}"#,
                "\n",
                r#"{"swallowed":["oai:x:4",null],"offset":3456,"record":"oai:x:3"}"#,
                "\n",
                r#"{"unresolved":"adminEmail","offset":12,"why":"missing"}"#,
                "\n",
                r#"{"summary":{"outcome":"repaired","version":"2.0","records":5,"quarantined":0,"#,
                r#""repairs":{"bare-ampersand":1},"decoded_as":"UTF-8","held_bytes_peak":1834}}"#,
                "\n",
            )
        );
    }

    #[test]
    fn the_summary_of_a_refused_response_has_a_reason() {
        let text = lines(Report::new(Vec::new()), Outcome::NotOai(NotOai::Html));
        assert!(text.contains(r#""outcome":"not-oai","why":"html-page""#), "{text}");
    }

    #[test]
    fn the_first_error_of_the_writer_is_returned() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut report = Report::new(Full);
        report.repaired(&repair(b"&", b"&amp;"));
        let error = report.finish(&summary(Outcome::Clean)).err().expect("a full disk is an error");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
