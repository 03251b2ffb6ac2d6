//! One version of a static repository file, read and ready for requests.

use super::file::{Failed, Text};
use super::index::{Entry, Format, Records, entries_of, formats_of};
use super::outline::{Outline, Part};
use super::rewrite::conventional;
use crate::settings::SourceMapping;
use oaimend_oai::datestamp;
use oaimend_repair::{RepairConfig, RepairId};
use oaimend_repository::rebase_namespaces::NamespaceScope;
use std::ops::Range;

/// A version of the file.
#[derive(Debug)]
pub(super) struct FileVersion {
    /// Changes with every change of the text.
    pub(super) id: String,
    pub(super) text: Text,
    pub(super) doctype: Vec<u8>,
    /// The content of Identify, without prefixes.
    pub(super) identify: Vec<u8>,
    pub(super) identify_scope: NamespaceScope,
    pub(super) formats: Vec<Format>,
    pub(super) formats_scope: NamespaceScope,
    pub(super) lists: Vec<List>,
    /// The records of all lists, list by list, in the order of the file.
    pub(super) entries: Vec<Entry>,
    /// Their positions in `entries`, in the order of the hashes of their identifiers.
    by_id: Vec<u32>,
}

/// The records of one format.
#[derive(Debug)]
pub(super) struct List {
    pub(super) metadata_prefix: String,
    pub(super) scope: NamespaceScope,
    /// Its part of the entries.
    pub(super) entries: Range<usize>,
}

impl FileVersion {
    /// Reads a file. Blocks on the disk, and takes as long as repairing it.
    pub(super) fn read(text: Text, id: String, mapping: &SourceMapping) -> Result<Self, Failed> {
        let limits = &mapping.limits;
        // Prefixes are removed from served records. Here records are only located.
        let mut off = mapping.repairs.off;
        off.insert(RepairId::EnvelopePrefix);
        let mut config = RepairConfig::default();
        config.limits = limits.repair.clone();
        config.off = off;
        config.enabled = mapping.repairs.enabled;
        config.text_charset = mapping.quirks.charset.map(str::to_owned);
        let Outline { doctype, identify, formats, lists: parts } =
            Outline::read(&text, limits.repair.record_bytes_max, limits.repair.head_bytes_max)?;
        let (mut entries, mut lists, mut has_deleted) = (Vec::new(), Vec::new(), false);
        for part in parts {
            let left = limits.static_records_max.saturating_sub(entries.len());
            let first = entries.len();
            let Records { entries: mut more, some_are_deleted } =
                entries_of(&text, &doctype, &part, &config, left)?;
            if part.metadata_prefix.is_empty() && !more.is_empty() {
                // No request can name this list.
                more.iter_mut().for_each(Entry::mark_broken);
                let (repo, records) = (&mapping.id, more.len());
                tracing::warn!(repo, records, "static repository list without metadataPrefix: records lost");
            }
            entries.append(&mut more);
            has_deleted |= some_are_deleted;
            let Part { scope, metadata_prefix, .. } = part;
            lists.push(List { metadata_prefix, scope, entries: first..entries.len() });
        }
        entries.shrink_to_fit();
        let mut by_id: Vec<u32> = (0..).take(entries.len()).collect();
        by_id.sort_by_key(|at| entries.get(*at as usize).map(|entry| (entry.id, *at)));
        let earliest = entries.iter().filter(|entry| entry.is_good()).map(|entry| entry.day).min();
        let identify_text = conventional(&text.bytes(identify.content)?, &identify.scope);
        let formats_scope = formats.scope.clone();
        let formats = formats_of(&text.bytes(formats.content.clone())?, &doctype, &formats, &config);
        Ok(Self {
            id,
            text,
            doctype,
            identify: as_served(identify_text, earliest, has_deleted),
            identify_scope: identify.scope,
            formats,
            formats_scope,
            lists,
            entries,
            by_id,
        })
    }

    /// How many records are beyond repair.
    pub(super) fn broken(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is_good()).count()
    }

    /// The positions in `entries` of the records with an identifier, by its hash.
    pub(super) fn of_id(&self, id: u128) -> impl Iterator<Item = usize> {
        let id_at = |at: &u32| self.entries.get(*at as usize).map_or(0, |entry| entry.id);
        let start = self.by_id.partition_point(|at| id_at(at) < id);
        let rest = self.by_id.get(start..).unwrap_or_default();
        rest.iter().take_while(move |at| id_at(at) == id).map(|at| *at as usize)
    }

    /// The list of an entry.
    pub(super) fn list_of(&self, entry: usize) -> Option<&List> {
        self.lists.iter().find(|list| list.entries.contains(&entry))
    }

    /// Whether a prefix is that of a format.
    pub(super) fn knows(&self, metadata_prefix: &str) -> bool {
        self.formats.iter().any(|format| format.prefix == metadata_prefix)
            || self.lists.iter().any(|list| list.metadata_prefix == metadata_prefix)
    }
}

/// Corrects Identify for the served records: granularity of days, the right deletedRecord, and no record before
/// earliestDatestamp. Right values keep their bytes.
fn as_served(identify: Vec<u8>, earliest: Option<u32>, has_deleted: bool) -> Vec<u8> {
    let mut text = match String::from_utf8(identify) {
        Ok(text) => text,
        // The engine repairs its bytes.
        Err(error) => return error.into_bytes(),
    };
    replace_value(&mut text, "granularity", |_| Some("YYYY-MM-DD".to_owned()));
    replace_value(&mut text, "deletedRecord", |value| match (has_deleted, value) {
        (true, "transient" | "persistent") => None,
        (true, _) => Some("transient".to_owned()),
        (false, _) => Some("no".to_owned()),
    });
    replace_value(&mut text, "earliestDatestamp", |value| {
        let earliest =
            earliest.map(|day| format!("{:04}-{:02}-{:02}", day / 10_000, day / 100 % 100, day % 100));
        let value = datestamp::is_legal(value.as_bytes()).then(|| value.get(..10)).flatten();
        match (value, earliest) {
            (Some(value), Some(earliest)) => Some(earliest.min(value.to_owned())),
            (value, earliest) => value.map(str::to_owned).or(earliest),
        }
    });
    text.into_bytes()
}

/// Replaces the value of the first element of that name, if `right` returns another value.
fn replace_value(text: &mut String, name: &str, right: impl FnOnce(&str) -> Option<String>) {
    let ends_name =
        |end: usize| text.get(end..).is_some_and(|rest| rest.starts_with([' ', '\t', '\r', '\n', '>']));
    let mark = format!("<{name}");
    let tag = text.match_indices(&mark).map(|(at, _)| at + mark.len()).find(|end| ends_name(*end));
    let Some(start) = tag.and_then(|tag| Some(tag + text.get(tag..)?.find('>')? + 1)) else { return };
    let Some(length) = text.get(start..).and_then(|rest| rest.find("</")) else { return };
    let value = text.get(start..start + length).unwrap_or_default().trim();
    match right(value) {
        Some(right) if right != value => text.replace_range(start..start + length, &right),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identify_is_corrected_and_right_values_stay() {
        let identify = |granularity, deleted, earliest| {
            format!(
                "<granularity>{granularity}</granularity><earliestDatestamp>{earliest}</earliestDatestamp>\
                 <deletedRecord>{deleted}</deletedRecord><description><granularity>x</granularity></description>"
            )
        };
        let as_text = |bytes| String::from_utf8(bytes).expect("UTF-8 in, UTF-8 out");
        let served = |text: String, earliest| as_text(as_served(text.into_bytes(), earliest, false));
        let right = identify(" YYYY-MM-DD\n", "no", "2001-02-03");
        assert_eq!(served(right.clone(), Some(20_020_101)), right);
        assert_eq!(served(right.clone(), None), right);
        assert_eq!(served(right, Some(20_001_231)), identify(" YYYY-MM-DD\n", "no", "2000-12-31"));
        let wrong = identify("YYYY-MM-DDThh:mm:ssZ", "transient", "2001-02-03T04:05:06Z");
        assert_eq!(served(wrong.clone(), None), identify("YYYY-MM-DD", "no", "2001-02-03"));
        let declared = |text: String| text.replace("<granularity>", "<granularity\n xmlns='o'>");
        assert_eq!(
            served(declared(wrong), None),
            declared(identify("YYYY-MM-DD", "no", "2001-02-03")),
            "a tag with attributes"
        );
        let illegal = identify("YYYY-MM-DD", "no", "long ago");
        assert_eq!(served(illegal.clone(), Some(20_001_231)), identify("YYYY-MM-DD", "no", "2000-12-31"));
        assert_eq!(served(illegal.clone(), None), illegal, "no better value is known");
        for (value, expected) in
            [("no", "transient"), ("transient", "transient"), ("persistent", "persistent")]
        {
            let text = identify("YYYY-MM-DD", value, "2001-02-03").into_bytes();
            let served = as_text(as_served(text, None, true));
            assert_eq!(served, identify("YYYY-MM-DD", expected, "2001-02-03"), "some are deleted");
        }
    }
}
