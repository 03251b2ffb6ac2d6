//! Lists the records of a static repository file, with the place of each.
//!
//! The engine says so: the records of each format go through it as a page of OAI-PMH, as they
//! will when they are asked for, so that a record is known by the identifier and the datestamp
//! that it leaves with. What is kept of a record is its place, its day and a hash of its identifier.

use super::file::{Failed, Text};
use super::outline::Part;
use super::page::{self, ListFrame};
use super::rewrite::{conventional, skeleton_prefixes};
use crate::xml::text::unescape_text;
use blake2::{Blake2s256, Digest};
use memchr::memmem;
use oaimend_repair::{
    NotOai, Outcome, Quarantined, RecordFacts, Repair, RepairConfig, RepairId, Repairer, Sink,
};
use std::ops::Range;

/// A record in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Hash of its identifier; 0 if none is readable.
    pub(super) id: u128,
    /// Its place in the text, in bytes.
    pub(super) offset: u64,
    /// The distance to the next one, in bytes.
    pub(super) len: u32,
    /// The day of its datestamp as a number of eight digits; 0 of a record that is beyond repair.
    pub(super) day: u32,
}

impl Entry {
    /// Whether the record can be delivered.
    pub(super) fn is_good(&self) -> bool {
        self.day > 0
    }

    /// Notes that the record cannot be delivered.
    pub(super) fn mark_broken(&mut self) {
        self.day = 0;
    }
}

/// The records of one list.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// In their order.
    pub(super) entries: Vec<Entry>,
    /// Whether a header says of one that it is deleted, which static repositories do not know.
    pub(super) some_are_deleted: bool,
}

/// Bytes that are read and repaired at once.
const PIECE_BYTES: u64 = 256 << 10;
/// Bytes of a list that are searched at once for the prefix of its elements.
const WINDOW_BYTES: u64 = 64 << 10;
/// Longest start of a tag, with a prefix, that is found across two windows.
const MARK_BYTES: u64 = 1 << 10;

/// The key of an item.
pub(super) fn id_of(identifier: &str) -> u128 {
    let hash = Blake2s256::digest(identifier.trim());
    hash.iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte))
}

/// A day as a number of eight digits; 0 for anything else.
pub(super) fn day_of(datestamp: &[u8]) -> u32 {
    let digits = datestamp.iter().take(10).filter(|byte| **byte != b'-');
    digits.fold(0, |day, byte| day * 10 + u32::from(byte.wrapping_sub(b'0') % 10))
}

/// Finds the records of one list.
pub(super) fn entries_of(
    text: &Text,
    doctype: &[u8],
    list: &Part,
    config: &RepairConfig,
    entries_max: usize,
) -> Result<Records, Failed> {
    let Some(RecordPrefix { prefix, is_oai }) = prefix_of(text, list)? else {
        return Ok(Records::default());
    };
    let frame = ListFrame::of_list(doctype, &list.scope, &prefix);
    let mut found = Found { entries_max, ..Found::default() };
    // Prefixes are removed when a record is requested; to do so here would be wasted work.
    let mut as_prefixed = config.clone();
    as_prefixed.off.insert(RepairId::EnvelopePrefix);
    let mut repairer = Repairer::new(&as_prefixed);
    repairer.push(frame.head.as_slice(), &mut found);
    let mut at = list.content.start;
    while at < list.content.end && repairer.verdict().is_none() && found.entries.len() <= entries_max {
        let end = list.content.end.min(at + PIECE_BYTES);
        repairer.push(&text.bytes(at..end)?, &mut found);
        at = end;
    }
    repairer.push(frame.tail.as_bytes(), &mut found);
    let gave_up = repairer.verdict() == Some(Outcome::Truncated);
    let summary = repairer.finish(&mut found);
    if found.entries.len() > entries_max {
        return Err(Failed::TooLarge(format!("it has more than {entries_max} records (static_records_max)")));
    }
    let record_bytes_max = config.limits.record_bytes_max;
    let too_long = || {
        let what = format!("a record in it is longer than {record_bytes_max} bytes (record_bytes_max)");
        Err(Failed::TooLarge(what))
    };
    if found.has_too_long || gave_up {
        return too_long();
    }
    let is_whole = match summary.outcome {
        Outcome::Clean | Outcome::Repaired | Outcome::NotOai(NotOai::NothingKept) => true,
        // An unreadable record is missing, and the list was read to its end.
        Outcome::Truncated => summary.lost > 0 && !found.is_cut,
        Outcome::NotOai(_) => false,
    };
    if !is_whole {
        let what = format!("its records in {} are broken beyond repair", list.metadata_prefix);
        return Err(Failed::Wrong(what));
    }
    let mut entries = found.entries;
    entries.sort_by_key(|entry| entry.offset);
    let to_text = |offset: u64| offset.saturating_sub(frame.head.len() as u64) + list.content.start;
    let ends = entries.iter().skip(1).map(|next| to_text(next.offset)).chain([list.content.end]);
    let ends: Vec<u64> = ends.collect();
    for (entry, end) in entries.iter_mut().zip(ends) {
        entry.offset = to_text(entry.offset);
        match u32::try_from(end - entry.offset) {
            Ok(len) if len as usize <= record_bytes_max => entry.len = len,
            _ => return too_long(),
        }
        if !is_oai {
            entry.mark_broken();
        } else if !entry.is_good() {
            look_again(entry, &text.bytes(range_of(entry))?, doctype, list, config);
        }
    }
    Ok(Records { entries, some_are_deleted: found.some_are_deleted })
}

pub(super) fn range_of(entry: &Entry) -> Range<u64> {
    entry.offset..entry.offset + u64::from(entry.len)
}

/// An unreadable record, as it will be when it is requested.
fn look_again(entry: &mut Entry, raw: &[u8], doctype: &[u8], list: &Part, config: &RepairConfig) {
    let frame = ListFrame::of_list(doctype, &list.scope, "");
    let mut found = Found { entries_max: 1, ..Found::default() };
    let mut repairer = Repairer::new(config);
    for bytes in [frame.head.as_slice(), &conventional(raw, &list.scope), frame.tail.as_bytes()] {
        repairer.push(bytes, &mut found);
    }
    repairer.finish(&mut found);
    if let [alone] = found.entries.as_slice() {
        (entry.day, entry.id) = (alone.day, if alone.id == 0 { entry.id } else { alone.id });
    }
}

/// The prefix of the records of a list.
struct RecordPrefix {
    /// With its colon; empty if there is none.
    prefix: String,
    /// Whether it is a prefix of OAI-PMH. The list has no other records otherwise, and they are broken.
    is_oai: bool,
}

/// The prefix of the first record; `None` where there is no record.
fn prefix_of(text: &Text, list: &Part) -> Result<Option<RecordPrefix>, Failed> {
    let prefixes = skeleton_prefixes(&list.scope);
    let mut other = None;
    let mut at = list.content.start;
    while at < list.content.end {
        let window = text.bytes(at..list.content.end.min(at + WINDOW_BYTES + MARK_BYTES))?;
        let mut found = record_prefixes(&window);
        if let Some(prefix) = found.find(|prefix| prefixes.contains(prefix)) {
            return Ok(Some(RecordPrefix { prefix, is_oai: true }));
        }
        other = other.or_else(|| record_prefixes(&window).next());
        at += WINDOW_BYTES;
    }
    Ok(other.map(|prefix| RecordPrefix { prefix, is_oai: false }))
}

/// The prefixes of the start tags of records in a text.
fn record_prefixes(text: &[u8]) -> impl Iterator<Item = String> {
    memmem::find_iter(text, b"record").filter_map(|at| {
        text.get(at + b"record".len()).filter(|byte| b" \t\r\n>".contains(byte))?;
        let before = text.get(at.saturating_sub(MARK_BYTES as usize)..at)?;
        let tag = before.get(before.iter().rposition(|byte| *byte == b'<')? + 1..)?;
        let is_prefix = tag.is_empty() || tag.strip_suffix(b":").is_some_and(is_name);
        if is_prefix { String::from_utf8(tag.to_vec()).ok() } else { None }
    })
}

fn is_name(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | 0x80..);
    text.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | 0x80..))
        && text.iter().all(is_part)
}

/// The findings of the engine.
#[derive(Default)]
struct Found {
    entries: Vec<Entry>,
    entries_max: usize,
    has_too_long: bool,
    /// Whether the engine closed the list, because the text ended inside a record.
    is_cut: bool,
    some_are_deleted: bool,
}

impl Found {
    fn add(&mut self, offset: u64, identifier: Option<&[u8]>, day: u32) {
        if self.entries.len() <= self.entries_max {
            let id = identifier.map_or(0, |identifier| id_of(&unescape_text(identifier)));
            self.entries.push(Entry { id, offset, len: 0, day });
        }
    }
}

impl Sink for Found {
    fn write(&mut self, _bytes: &[u8]) {}

    fn repaired(&mut self, repair: &Repair<'_>) {
        self.is_cut |= repair.id == RepairId::TruncatedInput && repair.replacement.starts_with(b"</");
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        self.has_too_long |= bytes.is_empty();
        self.some_are_deleted |= facts.deleted;
        self.add(facts.offset, Some(facts.identifier), day_of(facts.datestamp));
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.add(quarantined.offset, quarantined.identifier, 0);
    }
}

/// A format as written in the file, without the prefixes of its elements.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub(super) prefix: String,
    pub(super) bytes: Vec<u8>,
}

/// The formats in the file.
pub(super) fn formats_of(content: &[u8], doctype: &[u8], part: &Part, config: &RepairConfig) -> Vec<Format> {
    let text = conventional(content, &part.scope);
    let head = page::head(doctype, "ListMetadataFormats", &part.scope, "1970-01-01T00:00:00Z");
    let mut found = Named::default();
    let mut repairer = Repairer::new(config);
    for bytes in [head.as_slice(), &text, b"</ListMetadataFormats></OAI-PMH>"] {
        repairer.push(bytes, &mut found);
    }
    repairer.finish(&mut found);
    let starts: Vec<usize> =
        found.0.iter().map(|(offset, _)| (*offset as usize).saturating_sub(head.len())).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let formats = found.0.iter().zip(starts.iter().zip(ends)).map(|((_, prefix), (start, end))| Format {
        prefix: prefix.clone(),
        bytes: text.get(*start..end).unwrap_or_default().to_vec(),
    });
    formats.collect()
}

/// The items of a list by their names, each with its place.
#[derive(Default)]
struct Named(Vec<(u64, String)>);

impl Sink for Named {
    fn write(&mut self, _bytes: &[u8]) {}

    fn record_committed(&mut self, facts: &RecordFacts<'_>, _bytes: &[u8]) {
        self.0.push((facts.offset, unescape_text(facts.identifier)));
    }
}
