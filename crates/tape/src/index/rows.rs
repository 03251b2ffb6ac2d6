//! Collects the rows of an index while a tape is written or read, and writes the index.

use super::blocks::BlockWriter;
use super::index_file::{
    Binding, Catalog, CatalogFormat, CatalogSet, ENTRY_BYTES, Entry, GZIP_MEMBER_BYTES, ID_BYTES,
    SET_MEMBER_BYTES, Section, Sections, field, id_hash, write_header,
};
use crate::description::{TapeDescription, TapeFormat};
use crate::fault::{Fault, TapeError};
use crate::limits::{
    CATALOG_BYTES_MAX, DUPLICATES_MAX, FORMATS_MAX, MEMBER_BYTES_MAX, RECORDS_MAX, SET_COMBINATIONS_MAX,
    SETS_MAX,
};
use crate::members::Member;
use crate::record::TapeRecord;
use crate::sort::Sorter;
use oaimend_oai::set_spec;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufReader, BufWriter, IntoInnerError, Read as _, Seek as _, Write as _};
use std::path::Path;

/// A row of an entry before it is in its place: format, datestamp and place, which are the order, and the rest.
const ROW_BYTES: usize = 2 + 8 + 8 + ENTRY_BYTES + 4 + 8;
const COMBINATION_AT: usize = 18 + ENTRY_BYTES;

/// The rows of an index.
pub(crate) struct IndexRows {
    folder: std::path::PathBuf,
    catalog: Catalog,
    entries: Sorter<ROW_BYTES>,
    gzip_members: BufWriter<File>,
    gzip_member_count: u64,
    last_gzip_member: Option<Member>,
    /// The numbers of the setSpecs.
    sets: HashMap<String, u32>,
    /// The combinations of sets, as numbers of sets with their parents.
    combinations: HashMap<Box<[u32]>, u32>,
    count: u64,
    /// Why the tape can have no index; `None` while it can. Without `is_lenient` this is a fault.
    unindexable: Option<String>,
    is_lenient: bool,
}

/// An index that is written.
pub(crate) struct FinishedIndex {
    pub(crate) catalog: Catalog,
    /// Pairs of entries with one identifier and one format; the second one has the later datestamp or the later place.
    pub(crate) duplicates: Vec<(u32, u32)>,
}

impl IndexRows {
    /// No rows of a tape with this start tag. Temporary files are in `folder`.
    pub(crate) fn new(folder: &Path, root: &str, default_prefix: Option<String>) -> Result<Self, TapeError> {
        Ok(Self {
            folder: folder.to_owned(),
            catalog: Catalog { root: root.to_owned(), default_prefix, ..Catalog::default() },
            entries: Sorter::new(folder),
            gzip_members: BufWriter::new(tempfile::tempfile_in(folder)?),
            gzip_member_count: 0,
            last_gzip_member: None,
            sets: HashMap::new(),
            combinations: HashMap::new(),
            count: 0,
            unindexable: None,
            is_lenient: false,
        })
    }

    /// Reads on if the tape can have no index: only its content is checked.
    pub(crate) fn allow_unindexable(&mut self) {
        self.is_lenient = true;
    }

    /// Why the tape can have no index; `None` if it can.
    pub(crate) fn why_unindexable(&self) -> Option<String> {
        self.unindexable.clone()
    }

    /// Notes that the tape can have no index.
    pub(crate) fn note_unindexable(&mut self, fault: Fault) -> Result<(), TapeError> {
        if !self.is_lenient {
            return Err(fault.into());
        }
        self.unindexable.get_or_insert(fault.to_string());
        Ok(())
    }

    /// Notes what the tape says about itself.
    pub(crate) fn describe(&mut self, description: TapeDescription) {
        if self.count > 0 {
            // The rows contain the numbers of the formats.
            return;
        }
        self.catalog.formats = Vec::new();
        for TapeFormat { prefix, schema, namespace } in description.formats.iter().take(FORMATS_MAX).cloned()
        {
            self.catalog.formats.push(CatalogFormat {
                prefix,
                schema,
                namespace,
                ..CatalogFormat::default()
            });
        }
        self.catalog.description = description;
    }

    /// The number of records so far.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The metadataPrefix of records that do not name theirs.
    pub(crate) fn default_prefix(&self) -> Option<&str> {
        self.catalog.default_prefix.as_deref()
    }

    /// Adds gzip members. None may be so long that a reader could not inflate it.
    pub(crate) fn add_gzip_members(&mut self, members: Vec<Member>) -> Result<(), TapeError> {
        for member in members {
            self.end_gzip_member(member.xml_at)?;
            self.gzip_members.write_all(&member.file_at.to_le_bytes())?;
            self.gzip_members.write_all(&member.xml_at.to_le_bytes())?;
            self.gzip_member_count += 1;
            self.last_gzip_member = Some(member);
        }
        Ok(())
    }

    /// Checks the length of the last member, which ends at this byte of the XML.
    pub(crate) fn end_gzip_member(&mut self, xml_at: u64) -> Result<(), TapeError> {
        match self.last_gzip_member {
            Some(last) if xml_at.saturating_sub(last.xml_at) > MEMBER_BYTES_MAX => {
                let text = format!(
                    "a gzip member holds more than {} MiB of XML, so no seek reaches its records",
                    MEMBER_BYTES_MAX >> 20
                );
                self.note_unindexable(Fault::file(last.file_at, text))
            }
            _ => Ok(()),
        }
    }

    /// Adds a record, which is `xml` at `xml_at`, in the format `prefix`.
    pub(crate) fn add(
        &mut self,
        record: &TapeRecord,
        prefix: &str,
        (xml_at, xml): (u64, &str),
    ) -> Result<(), TapeError> {
        let limit = |text: String| Err(TapeError::Fault(Fault::xml(xml_at, text)));
        if self.count == RECORDS_MAX {
            return limit(format!("the tape has more than {RECORDS_MAX} records"));
        }
        let Some(format) = self.format(record, prefix) else {
            return limit(format!("the tape has more than {FORMATS_MAX} formats"));
        };
        let Some(combination) = self.combination(&record.set_specs) else {
            return limit(format!(
                "the tape has more than {SETS_MAX} sets or {SET_COMBINATIONS_MAX} combinations of them"
            ));
        };
        let Some(datestamp) = record.datestamp_secs() else {
            return limit(format!("the record {} has no legal datestamp", record.identifier));
        };
        self.catalog.has_seconds |= record.datestamp.len() > "YYYY-MM-DD".len();
        let earliest = self.catalog.earliest_secs;
        self.catalog.earliest_secs = Some(earliest.map_or(datestamp.0, |earliest| earliest.min(datestamp.0)));
        let entry = Entry {
            datestamp_secs: datestamp.0,
            xml_at,
            bytes: u32::try_from(xml.len()).unwrap_or(u32::MAX),
            checksum: crc32fast::hash(xml.as_bytes()),
            is_deleted: record.is_deleted,
        };
        let parts: [&[u8]; 6] = [
            &format.to_be_bytes(),
            &sortable(datestamp.0),
            &xml_at.to_be_bytes(),
            &entry.to_bytes(),
            &combination.to_be_bytes(),
            &id_hash(&record.identifier),
        ];
        self.entries.push(field(&parts.concat(), 0))?;
        self.count += 1;
        Ok(())
    }

    /// The number of a format, which may be a new one.
    fn format(&mut self, record: &TapeRecord, prefix: &str) -> Option<u16> {
        let formats = &mut self.catalog.formats;
        let number = match formats.iter().position(|format| format.prefix == prefix) {
            Some(number) => number,
            None if formats.len() == FORMATS_MAX => return None,
            None => {
                formats.push(CatalogFormat { prefix: prefix.to_owned(), ..CatalogFormat::default() });
                formats.len() - 1
            }
        };
        if let Some(format) = formats.get_mut(number)
            && format.namespace.is_empty()
            && let Some((namespace, schema)) = record.root_namespace()
        {
            format.namespace = namespace;
            format.schema = schema.unwrap_or_default();
        }
        u16::try_from(number).ok()
    }

    /// The number of a combination of sets, which may be a new one.
    fn combination(&mut self, set_specs: &[String]) -> Option<u32> {
        let mut numbers = BTreeSet::new();
        for set in set_specs {
            for set in set_spec::parents(set).chain([set.as_str()]) {
                let next = u32::try_from(self.sets.len()).ok()?;
                let number = match self.sets.get(set) {
                    Some(number) => *number,
                    None if self.sets.len() == SETS_MAX => return None,
                    None => *self.sets.entry(set.to_owned()).or_insert(next),
                };
                numbers.insert(number);
            }
        }
        let key: Box<[u32]> = numbers.into_iter().collect();
        let next = u32::try_from(self.combinations.len()).ok()?;
        if let Some(number) = self.combinations.get(&key) {
            return Some(*number);
        }
        if self.combinations.len() == SET_COMBINATIONS_MAX {
            return None;
        }
        self.combinations.insert(key, next);
        Some(next)
    }

    /// Writes the index of `tape` to `file`.
    pub(crate) fn finish(mut self, tape: &File, file: File) -> Result<FinishedIndex, TapeError> {
        let mut writer = BlockWriter::new(file)?;
        let mut sections = Sections {
            gzip_members: Section { at: writer.position(), rows: self.gzip_member_count },
            ..Sections::default()
        };
        self.catalog.is_gzip = self.gzip_member_count > 0;
        copy_gzip_members(
            std::mem::replace(&mut self.gzip_members, BufWriter::new(tape.try_clone()?)),
            &mut writer,
        )?;
        let (set_order, set_specs) = self.sets_in_order();
        let mut combinations: Vec<(u32, Box<[u32]>)> =
            self.combinations.drain().map(|(sets, number)| (number, sets)).collect();
        combinations.sort_unstable_by_key(|(number, _)| *number);
        let (mut ids, mut members) = (Sorter::<ID_BYTES>::new(&self.folder), Sorter::<8>::new(&self.folder));
        sections.entries = Section { at: writer.position(), rows: self.count };
        for (number, row) in (0_u32..).zip(self.entries.finish()?) {
            let row = row?;
            let (format, hash) = (field::<2>(&row, 0), field::<8>(&row, COMBINATION_AT + 4));
            let entry = field::<ENTRY_BYTES>(&row, 18);
            writer.write(&entry)?;
            ids.push(field(&[hash.as_slice(), &format, &number.to_be_bytes()].concat(), 0))?;
            let combination = u32::from_be_bytes(field(&row, COMBINATION_AT)) as usize;
            for set in combinations.get(combination).map(|(_, sets)| sets.as_ref()).unwrap_or_default() {
                let order = set_order.get(*set as usize).copied().unwrap_or_default();
                members.push(field(&[order.to_be_bytes(), number.to_be_bytes()].concat(), 0))?;
            }
            let format = self.catalog.formats.get_mut(usize::from(u16::from_be_bytes(format)));
            if let Some(format) = format {
                if format.entries.is_empty() {
                    format.entries.start = number;
                }
                format.entries.end = number + 1;
                format.deleted += u64::from(Entry::from_bytes(&entry).is_deleted);
            }
        }
        sections.ids = Section { at: writer.position(), rows: self.count };
        let duplicates = write_ids(ids, &mut writer)?;
        sections.set_members = Section { at: writer.position(), rows: 0 };
        self.catalog.sets = named_sets(&self.catalog.description, set_specs);
        sections.set_members.rows = write_set_members(members, &mut self.catalog.sets, &mut writer)?;
        let json = serde_json::to_vec(&self.catalog).map_err(std::io::Error::from)?;
        if json.len() as u64 > CATALOG_BYTES_MAX {
            return Err(Fault::xml(0, "the formats and sets of the tape are too many").into());
        }
        sections.catalog = Section { at: writer.position(), rows: json.len() as u64 };
        writer.write(&json)?;
        writer.finish(&write_header(&Binding::of(tape)?, &sections))?;
        Ok(FinishedIndex { catalog: self.catalog, duplicates })
    }

    /// The place of each set in the order of the setSpecs, and the setSpecs in this order. Sets without records come from
    /// the description.
    fn sets_in_order(&mut self) -> (Vec<u32>, Vec<String>) {
        for set in self.catalog.description.sets.clone().into_iter().take(SETS_MAX) {
            let next = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
            self.sets.entry(set.set_spec).or_insert(next);
        }
        let mut sets: Vec<(String, u32)> = self.sets.drain().collect();
        sets.sort_unstable();
        let mut order = vec![0; sets.len()];
        for (place, (_, number)) in (0_u32..).zip(&sets) {
            if let Some(kept) = order.get_mut(*number as usize) {
                *kept = place;
            }
        }
        (order, sets.into_iter().map(|(set_spec, _)| set_spec).collect())
    }
}

/// Seconds as digits whose order is that of the numbers.
fn sortable(secs: i64) -> [u8; 8] {
    (secs.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn copy_gzip_members(members: BufWriter<File>, writer: &mut BlockWriter) -> Result<(), TapeError> {
    let mut members = members.into_inner().map_err(IntoInnerError::into_error)?;
    members.rewind()?;
    let (mut members, mut row) = (BufReader::new(members), [0; GZIP_MEMBER_BYTES]);
    while members.read(&mut row[..1])? == 1 {
        let (_, rest) = row.split_at_mut(1);
        members.read_exact(rest)?;
        writer.write(&row)?;
    }
    Ok(())
}

/// Writes the table of identifiers, and returns the pairs that are in it twice.
fn write_ids(ids: Sorter<ID_BYTES>, writer: &mut BlockWriter) -> Result<Vec<(u32, u32)>, TapeError> {
    let mut duplicates = Vec::new();
    let mut before = None;
    for row in ids.finish()? {
        let row = row?;
        writer.write(&row)?;
        let (name, entry) = (field::<10>(&row, 0), u32::from_be_bytes(field(&row, 10)));
        if let Some((_, earlier)) = before.filter(|(other, _)| *other == name) {
            if duplicates.len() == DUPLICATES_MAX {
                let text = format!("more than {DUPLICATES_MAX} records have an identifier that occurs again");
                return Err(Fault::xml(0, text).into());
            }
            duplicates.push((earlier, entry));
        }
        before = Some((name, entry));
    }
    Ok(duplicates)
}

fn named_sets(description: &TapeDescription, set_specs: Vec<String>) -> Vec<CatalogSet> {
    let names: HashMap<&str, &str> =
        description.sets.iter().map(|set| (set.set_spec.as_str(), set.name.as_str())).collect();
    let named = |set_spec: String| {
        let name = names.get(set_spec.as_str()).map_or_else(|| set_spec.clone(), |name| (*name).to_owned());
        CatalogSet { set_spec, name, members: 0..0 }
    };
    set_specs.into_iter().map(named).collect()
}

/// Writes the table of the members of all sets, and returns its length.
fn write_set_members(
    members: Sorter<8>,
    sets: &mut [CatalogSet],
    writer: &mut BlockWriter,
) -> Result<u64, TapeError> {
    let mut number = 0_u32;
    for row in members.finish()? {
        let row = row?;
        let (set, entry) = (u32::from_be_bytes(field(&row, 0)), u32::from_be_bytes(field(&row, 4)));
        writer.write(&field::<SET_MEMBER_BYTES>(&entry.to_le_bytes(), 0))?;
        if let Some(set) = sets.get_mut(set as usize) {
            if set.members.is_empty() {
                set.members.start = number;
            }
            set.members.end = number + 1;
        }
        number = number.checked_add(1).ok_or_else(|| Fault::xml(0, "the sets have too many members"))?;
    }
    Ok(u64::from(number))
}
