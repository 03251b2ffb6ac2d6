//! Makes the index of a tape again, from the tape alone.

use super::index_file::{Catalog, Index, index_path};
use super::rows::IndexRows;
use crate::fault::{Fault, TapeError};
use crate::files::{folder_of, new_file};
use crate::record::TapeRecord;
use crate::scan::{Scan, TapePart, open_scan, open_scan_with_members};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufRead;
use std::path::Path;
use tempfile::NamedTempFile;

/// An index that was made again.
#[derive(Debug)]
pub struct RebuiltIndex {
    /// What it knows about the whole tape.
    pub catalog: Catalog,
}

/// Formats whose metadataPrefix is known by their namespace, for tapes of other programs.
const KNOWN_FORMATS: [(&str, &str); 6] = [
    ("http://www.openarchives.org/OAI/2.0/oai_dc/", "oai_dc"),
    ("http://www.loc.gov/MARC21/slim", "marcxml"),
    ("http://www.loc.gov/mods/v3", "mods"),
    ("http://www.loc.gov/METS/", "mets"),
    ("urn:mpeg:mpeg21:2002:02-DIDL-NS", "didl"),
    ("urn:mpeg:mpeg21:2002:01-DIDL-NS", "didl"),
];

/// Makes the index of a tape again. `default_prefix` is the metadataPrefix of records that do not name theirs, as in tapes
/// of other programs. `observe` is called with the number of records so far.
///
/// # Errors
///
/// The tape is no whole tape, an identifier is in it twice, the format of a record is not known, or no seek reaches its
/// records. The index before stays then.
pub fn rebuild_index(
    tape: &Path,
    default_prefix: Option<String>,
    observe: &mut dyn FnMut(u64),
) -> Result<RebuiltIndex, TapeError> {
    let folder = folder_of(tape);
    let mut scan = open_scan_with_members(tape)?;
    let mut rows = IndexRows::new(&folder, scan.root(), default_prefix)?;
    fill_rows(&mut scan, &mut rows, observe, &mut |_, _, _| Ok(()))?;
    let file = File::open(tape)?;
    let written = new_file(&index_path(tape))?;
    let finished = rows.finish(&file, written.as_file().try_clone()?)?;
    if let Some(fault) = find_duplicate(tape, &written, &finished.duplicates)? {
        return Err(fault.into());
    }
    written.persist(index_path(tape)).map_err(|error| error.error)?;
    Ok(RebuiltIndex { catalog: finished.catalog })
}

/// The first record whose identifier occurs again in its format, among pairs of entries whose identifiers have equal
/// hashes. The tape is read from front to back, because it may be one that can have no index.
pub(crate) fn find_duplicate(
    tape: &Path,
    index: &NamedTempFile,
    pairs: &[(u32, u32)],
) -> Result<Option<Fault>, TapeError> {
    if pairs.is_empty() {
        return Ok(None);
    }
    let index = Index::read(index.reopen()?, &File::open(tape)?).map_err(std::io::Error::other)?;
    let mut partners = HashMap::new();
    for (first, second) in pairs.iter().take(PAIRS_MAX) {
        let entry = |number: u32| index.entry(number).map_err(std::io::Error::other);
        let places = [entry(*first)?.xml_at, entry(*second)?.xml_at];
        partners.insert(places[0].max(places[1]), places[0].min(places[1]));
    }
    let earlier: HashSet<u64> = partners.values().copied().collect();
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut scan = open_scan(tape)?;
    while let Some(part) = scan.next_part()? {
        let at = scan.text_at();
        if part == TapePart::Admin || !earlier.contains(&at) && !partners.contains_key(&at) {
            continue;
        }
        let identifier = scan.record()?.identifier;
        let partner = partners.get(&at).filter(|partner| names.get(*partner) == Some(&identifier));
        if let Some(partner) = partner {
            let identifier = identifier.escape_debug();
            let text = format!(
                "the record {identifier} is in the tape twice in one format, first at byte {partner}"
            );
            return Ok(Some(Fault::xml(at, text)));
        }
        names.insert(at, identifier);
    }
    Ok(None)
}

/// Maximum number of pairs that are compared.
const PAIRS_MAX: usize = 10_000;

/// Reads a tape to its end into the rows of its index. `check` gets each part with its start tag of the tape and its place.
pub(crate) fn fill_rows<R: BufRead>(
    scan: &mut Scan<R>,
    rows: &mut IndexRows,
    observe: &mut dyn FnMut(u64),
    check: &mut dyn FnMut(&str, &str, u64) -> Result<(), Fault>,
) -> Result<(), TapeError> {
    rows.add_gzip_members(scan.take_members())?;
    while let Some(part) = scan.next_part()? {
        rows.add_gzip_members(scan.take_members())?;
        check(scan.root(), scan.text(), scan.text_at())?;
        match part {
            TapePart::Admin => {
                if let Some(description) = scan.description() {
                    rows.describe(description);
                }
            }
            TapePart::Record => {
                let (at, text) = (scan.text_at(), scan.text());
                let record = scan.record()?;
                let prefix = match known_prefix(&record, rows.default_prefix()) {
                    Some(prefix) => prefix,
                    None => {
                        let namespace =
                            record.root_namespace().map(|(namespace, _)| namespace).unwrap_or_default();
                        let text = format!(
                            "the record {} does not name its metadataPrefix, and its namespace \"{namespace}\" does not tell",
                            record.identifier.escape_debug()
                        );
                        rows.note_unindexable(Fault::xml(at, text))?;
                        namespace
                    }
                };
                rows.add(&record, &prefix, (at, text))?;
                observe(rows.count());
            }
        }
    }
    rows.add_gzip_members(scan.take_members())?;
    rows.end_gzip_member(scan.xml_bytes())
}

/// The metadataPrefix of a record of any tape.
pub fn known_prefix(record: &TapeRecord, default_prefix: Option<&str>) -> Option<String> {
    let by_namespace = || {
        let (namespace, _) = record.root_namespace()?;
        let known = KNOWN_FORMATS.iter().find(|(known, _)| *known == namespace);
        known.map(|(_, prefix)| (*prefix).to_owned())
    };
    record.prefix.clone().or_else(|| default_prefix.map(str::to_owned)).or_else(by_namespace)
}
