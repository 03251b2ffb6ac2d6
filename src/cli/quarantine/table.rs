//! Quarantined records as a table and as JSON.

use std::fmt::Write as _;

use oaimend_oai::{UnixSecs, datestamp};
use oaimend_store::QuarantineEntry;
use serde::Deserialize;
use serde_json::{Value, json};

/// An entry in a list.
#[derive(Deserialize)]
pub(super) struct ListedRecord {
    key: String,
    #[serde(flatten)]
    entry: QuarantineEntry,
}

impl ListedRecord {
    /// The entry of this repository.
    pub(super) fn to_json(&self, repository: &str, now_secs: UnixSecs) -> Value {
        let mut value = json!(self.entry);
        value["repository"] = json!(repository);
        value["key"] = json!(self.key);
        value["state"] = json!(self.entry.state().name());
        value["age_secs"] = json!(self.age_secs(now_secs));
        value
    }

    /// The time since the entry was resolved, or last seen if it is open.
    fn age_secs(&self, now_secs: UnixSecs) -> i64 {
        let changed_at = datestamp::to_secs(self.entry.changed_at()).unwrap_or(now_secs);
        now_secs.since(changed_at).max(0)
    }
}

/// A table of these records, each with the id of its repository.
pub(super) fn format_table(records: &[(&str, ListedRecord)], now_secs: UnixSecs) -> String {
    if records.is_empty() {
        return "no quarantined records\n".to_owned();
    }
    let rows: Vec<[String; 9]> =
        records.iter().map(|(repository, record)| cells(repository, record, now_secs)).collect();
    let heads = ["repository", "key", "state", "age", "reason", "seen", "last seen", "bytes", "identifier"];
    let widths = std::array::from_fn(|column| {
        let widest = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        widest.max(heads[column].len())
    });
    let mut table = String::new();
    write_row(&mut table, heads, widths);
    for row in &rows {
        write_row(&mut table, row.each_ref().map(String::as_str), widths);
    }
    table
}

fn cells(repository: &str, record: &ListedRecord, now_secs: UnixSecs) -> [String; 9] {
    let QuarantineEntry { why, seen, last_seen, bytes, identifier, .. } = &record.entry;
    // An identifier may contain characters that control the terminal.
    let identifier =
        identifier.as_ref().map_or_else(|| "unknown".to_owned(), |text| text.escape_debug().to_string());
    [
        repository.to_owned(),
        record.key.clone(),
        record.entry.state().name().to_owned(),
        format_age(record.age_secs(now_secs)),
        why.clone(),
        seen.to_string(),
        last_seen.clone(),
        bytes.to_string(),
        identifier,
    ]
}

fn write_row(table: &mut String, row: [&str; 9], widths: [usize; 9]) {
    let [repository, key, state, age, reason, seen, last_seen, bytes, identifier] = row;
    let [w0, w1, w2, w3, w4, w5, w6, w7, _] = widths;
    let _ = writeln!(
        table,
        "{repository:w0$}  {key:w1$}  {state:w2$}  {age:>w3$}  {reason:w4$}  {seen:>w5$}  {last_seen:w6$}  \
         {bytes:>w7$}  {identifier}"
    );
}

/// A time in its largest unit.
fn format_age(secs: i64) -> String {
    match secs {
        ..60 => format!("{secs} s"),
        60..3_600 => format!("{} min", secs / 60),
        3_600..86_400 => format!("{} h", secs / 3_600),
        _ => format!("{} d", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(
        key: &str,
        why: &str,
        last_seen: &str,
        resolved_at: Option<&str>,
    ) -> (&'static str, ListedRecord) {
        let entry = QuarantineEntry {
            identifier: Some(format!("oai:x:{key}")),
            why: why.to_owned(),
            offset: 0,
            request: String::new(),
            first_seen: "2026-01-01T00:00:00Z".to_owned(),
            last_seen: last_seen.to_owned(),
            seen: 1,
            bytes: 812,
            metadata_prefix: None,
            resolved_at: resolved_at.map(str::to_owned),
        };
        ("x", ListedRecord { key: key.to_owned(), entry })
    }

    #[test]
    fn table_has_aligned_columns_with_state_and_age() {
        let now = datestamp::to_secs("2026-02-11T00:00:00Z").expect("a time");
        let records = [
            listed("a1", "mismatched-tags", "2026-02-10T23:59:30Z", None),
            listed("a2", "no-end", "2026-01-01T00:00:00Z", Some("2026-01-12T00:00:00Z")),
        ];
        let expected = "\
repository  key  state      age  reason           seen  last seen             bytes  identifier
x           a1   open      30 s  mismatched-tags     1  2026-02-10T23:59:30Z    812  oai:x:a1
x           a2   resolved  30 d  no-end              1  2026-01-01T00:00:00Z    812  oai:x:a2
";
        assert_eq!(format_table(&records, now), expected);
        assert_eq!(records[1].1.to_json("x", now)["age_secs"], 30 * 86_400);
    }

    #[test]
    fn age_is_shown_in_its_largest_unit() {
        let shown = [0, 59, 60, 3_599, 3_600, 86_399, 86_400].map(format_age);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 d"]);
    }
}
