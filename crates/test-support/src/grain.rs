//! Reports in a normal form.
//!
//! The engine may report a change as a whole value or as the letters that differ, and as one entry
//! or as two adjacent ones. The normal form has the smallest changes, so that a comparison ignores
//! such differences.

use serde_json::{Map, Value, json};

/// Normalises the lines of a report: trims each change to the difference, joins adjacent changes of
/// one repair, and keeps only the names in the counts.
pub fn normalise(lines: &[Value]) -> Vec<Value> {
    let mut plain: Vec<Value> = Vec::new();
    let mut last: Option<Change> = None;
    for line in lines {
        let Some(change) = Change::read(line) else {
            plain.extend(last.take().map(|change| change.trimmed().line()));
            plain.push(without_counts(line));
            continue;
        };
        last = match last.take() {
            Some(before) if before.touches(&change) => Some(before.joined(change)),
            before => {
                plain.extend(before.map(|change| change.trimmed().line()));
                Some(change)
            }
        };
    }
    plain.extend(last.map(|change| change.trimmed().line()));
    plain
}

/// One journal entry of a report.
struct Change {
    repair: Value,
    record: Value,
    offset: usize,
    original: Vec<u8>,
    replacement: Vec<u8>,
}

impl Change {
    fn read(line: &Value) -> Option<Self> {
        let bytes = |key: &str| match line.get(key) {
            Some(text) => Some(text.as_str()?.as_bytes().to_vec()),
            None => from_hex(line.get(format!("{key}_hex"))?.as_str()?),
        };
        Some(Self {
            repair: line.get("repair")?.clone(),
            record: line.get("record").cloned().unwrap_or_default(),
            offset: usize::try_from(line.get("offset")?.as_u64()?).ok()?,
            original: bytes("original")?,
            replacement: bytes("replacement")?,
        })
    }

    fn touches(&self, next: &Self) -> bool {
        let end = self.offset + self.original.len();
        end == next.offset && self.repair == next.repair && self.record == next.record
    }

    fn joined(mut self, next: Self) -> Self {
        self.original.extend(next.original);
        self.replacement.extend(next.replacement);
        self
    }

    /// Removes the text that both sides share.
    fn trimmed(mut self) -> Self {
        let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
        let front = self.original.iter().zip(&self.replacement).take_while(same).count();
        let (original, replacement) = (&self.original[front..], &self.replacement[front..]);
        let back = original.iter().rev().zip(replacement.iter().rev()).take_while(same).count();
        self.offset += front;
        (self.original, self.replacement) =
            (original[..original.len() - back].to_vec(), replacement[..replacement.len() - back].to_vec());
        self
    }

    fn line(self) -> Value {
        json!({
            "repair": self.repair,
            "record": self.record,
            "offset": self.offset,
            "original": self.original.escape_ascii().to_string(),
            "replacement": self.replacement.escape_ascii().to_string(),
        })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// The number of repairs depends on how changes are split; their names do not.
fn without_counts(line: &Value) -> Value {
    let mut line = line.clone();
    if let Some(repairs) = line.get_mut("summary").and_then(|summary| summary.get_mut("repairs")) {
        let names = repairs.as_object().into_iter().flat_map(Map::keys);
        *repairs = names.map(|name| json!(name)).collect();
    }
    line
}
