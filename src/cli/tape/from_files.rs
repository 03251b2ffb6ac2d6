//! A tape of files: saved responses, single records, and other tapes.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use oaimend_mirror::harvest::{read_formats, read_sets};
use oaimend_mirror::view::identify::StoredIdentify;
use oaimend_repair::repair;
use oaimend_store::{ListedFormat, ListedSet};
use oaimend_tape::{
    BuiltTape, OnDuplicate, TapeDescription, TapeError, TapeFormat, TapeGap, TapePart, TapeRecord, TapeSet,
    known_prefix, open_scan,
};

use super::building::{Building, Selection};
use super::failure;
use super::saved_response::{FoundRecord, HEAD_BYTES, Head, ResponseEnd, SavedResponse};
use crate::cli::exit::{Failure, print_message};
use crate::cli::input::{Input, Piece, READ_BYTES};

/// Longest description of a repository that is read, in bytes: a saved Identify, ListMetadataFormats or ListSets.
const DESCRIPTION_BYTES_MAX: usize = 16 << 20;

/// A file, and what it is.
enum Source {
    Tape,
    Response(Head),
}

/// Reads the files into a tape.
struct FileReader<'a> {
    selection: &'a Selection<'a>,
    building: Building<'a>,
    /// The metadataPrefix of each namespace, from records whose format is known.
    prefixes: BTreeMap<String, String>,
    tokens: Tokens,
    missing: u64,
}

/// The tokens of saved lists: what a page says of the next one.
#[derive(Default)]
struct Tokens {
    /// The tokens at the ends of pages, with their files.
    next: Vec<NextPage>,
    /// The tokens in the requests of pages.
    requested: HashSet<String>,
    /// Pages that do not tell how they were requested.
    unknown: usize,
}

/// What a page says of the next one.
struct NextPage {
    token: String,
    file: String,
    /// Whether the page itself does not tell how it was requested.
    is_after_unknown: bool,
}

/// Writes a tape of these files.
pub(super) fn build(out: &Path, files: &[PathBuf], selection: &Selection<'_>) -> Result<BuiltTape, Failure> {
    let mut description = TapeDescription::default();
    let mut sources = Vec::new();
    for file in files {
        let source = look_at(file, &mut description)?;
        sources.extend(source.map(|source| (file, source)));
    }
    if !description.gaps.is_empty() && !selection.accepts_gaps {
        return Err(Failure::incomplete(
            "a tape of the input says that records are missing; no tape was written; --accept-gaps writes one that says so too",
        ));
    }
    let building = Building::begin(out, description)?;
    let (prefixes, tokens) = (BTreeMap::new(), Tokens::default());
    let mut reader = FileReader { selection, building, prefixes, tokens, missing: 0 };
    for (file, source) in sources {
        match source {
            Source::Tape => reader.read_tape(file)?,
            Source::Response(head) => reader.read_response(file, &head)?,
        }
    }
    reader.finish()
}

/// Sees what a file is. A description of the repository is read at once, and is no source of records.
fn look_at(file: &Path, description: &mut TapeDescription) -> Result<Option<Source>, Failure> {
    let name = file.display().to_string();
    match open_scan(file) {
        Ok(mut scan) => {
            let part = scan.next_part().map_err(|error| failure(&name, error, ""))?;
            if let (Some(TapePart::Admin), Some(found)) = (part, scan.description()) {
                let gaps = found.gaps.clone();
                if *description == TapeDescription::default() {
                    *description = TapeDescription { gaps: Vec::new(), ..found };
                }
                description.gaps.extend(gaps);
            }
            return Ok(Some(Source::Tape));
        }
        Err(TapeError::Io(error)) => return Err(Failure::io("read", file, &error)),
        Err(TapeError::Fault(_)) => {}
    }
    let mut input = Input::open(Some(file))?;
    let (mut text, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    while text.len() < HEAD_BYTES {
        match input.read(&mut buffer)? {
            Piece::Bytes(count) => text.extend_from_slice(&buffer[..count]),
            Piece::End => break,
            Piece::Broken(fault) => return Err(Failure::incomplete(format!("{name}: {fault}"))),
        }
    }
    let head = Head::read(text.get(..HEAD_BYTES).unwrap_or(&text));
    if !["Identify", "ListMetadataFormats", "ListSets"].contains(&head.verb.as_str()) {
        return Ok(Some(Source::Response(head)));
    }
    while let Piece::Bytes(count) = input.read(&mut buffer)? {
        if text.len() > DESCRIPTION_BYTES_MAX {
            return Err(Failure::incomplete(format!(
                "{name}: a description of a repository is longer than 16 MiB"
            )));
        }
        text.extend_from_slice(&buffer[..count]);
    }
    let repaired = repair(&text);
    let document = String::from_utf8_lossy(&repaired.bytes);
    match head.verb.as_str() {
        "Identify" => {
            let identify = StoredIdentify::read(&document);
            description.repository_name = identify.as_ref().and_then(StoredIdentify::name);
            description.admin_emails = identify.map(|identify| identify.admin_emails()).unwrap_or_default();
        }
        "ListMetadataFormats" => description.formats.extend(
            read_formats(&document)
                .into_iter()
                .map(|ListedFormat { prefix, schema, namespace }| TapeFormat { prefix, schema, namespace }),
        ),
        _ => description.sets.extend(
            read_sets(&document)
                .into_iter()
                .map(|ListedSet { set_spec, name, .. }| TapeSet { set_spec, name }),
        ),
    }
    Ok(None)
}

impl FileReader<'_> {
    fn read_tape(&mut self, file: &Path) -> Result<(), Failure> {
        let name = file.display().to_string();
        let fault = |error| failure(&name, error, "; no tape was written");
        let mut scan = open_scan(file).map_err(fault)?;
        while let Some(part) = scan.next_part().map_err(fault)? {
            if part == TapePart::Admin {
                continue;
            }
            let mut record =
                scan.record().map_err(|error| failure(&name, error.into(), "; no tape was written"))?;
            let prefix = known_prefix(&record, self.selection.prefixes.first().map(String::as_str));
            record.prefix = Some(prefix.ok_or_else(|| unknown_format(&name, &record))?);
            self.add(&record, &name)?;
        }
        Ok(())
    }

    fn read_response(&mut self, file: &Path, head: &Head) -> Result<(), Failure> {
        let name = file.display().to_string();
        let mut input = Input::open(Some(file))?;
        let (mut response, mut buffer) = (SavedResponse::new(head), vec![0; READ_BYTES]);
        // The declaration before a single record is left out.
        let mut skipped = head.record_at.unwrap_or_default();
        let mut cut = None;
        loop {
            match input.read(&mut buffer)? {
                Piece::Bytes(count) => {
                    let skip = skipped.min(count);
                    skipped -= skip;
                    response.push(&buffer[skip..count]);
                }
                Piece::End => break,
                Piece::Broken(fault) => {
                    cut = Some(fault);
                    break;
                }
            }
            let found = response.take_records();
            self.add_all(found, head, &name)?;
        }
        let mut found = response.take_records();
        let ResponseEnd { mut missing, next_token, problem } = response.finish(&mut found);
        if let Some(problem) = problem {
            return Err(Failure::other_input(format!("{name}: {problem}; no tape was written")));
        }
        self.add_all(found, head, &name)?;
        if let Some(fault) = cut {
            print_message(format_args!("{name}: {fault}"));
            missing = missing.max(1);
        }
        self.tokens.note(head, next_token, &name);
        self.note_gap(&name, missing, "records cannot be repaired, or the file ends early")
    }

    fn add_all(&mut self, found: Vec<FoundRecord>, head: &Head, name: &str) -> Result<(), Failure> {
        for found in found {
            let invalid = |problem| Failure::incomplete(format!("{name}: {problem}; no tape was written"));
            let mut record = found.to_tape_record("").map_err(invalid)?;
            record.prefix = self.prefix_of(&record, head);
            if record.prefix.is_none() {
                return Err(unknown_format(name, &record));
            }
            self.add(&record, name)?;
        }
        Ok(())
    }

    /// The format of a record: that of the request, or that of other records with its namespace, or a known one.
    fn prefix_of(&mut self, record: &TapeRecord, head: &Head) -> Option<String> {
        let namespace = record.namespace();
        if let Some(prefix) = &head.prefix {
            if let Some(namespace) = namespace {
                self.prefixes.entry(namespace).or_insert_with(|| prefix.clone());
            }
            return Some(prefix.clone());
        }
        let learned = namespace.and_then(|namespace| self.prefixes.get(&namespace).cloned());
        let default = self.selection.prefixes.first().map(String::as_str);
        learned.or_else(|| known_prefix(&TapeRecord { prefix: None, ..record.clone() }, default))
    }

    fn add(&mut self, record: &TapeRecord, name: &str) -> Result<(), Failure> {
        self.building.tape().add(record).map_err(|error| self.building.failure(error))?;
        self.building.show(name);
        Ok(())
    }

    /// Notes that records of a file are missing.
    fn note_gap(&mut self, name: &str, missing: u64, why: &str) -> Result<(), Failure> {
        if missing == 0 {
            return Ok(());
        }
        if !self.selection.accepts_gaps {
            return Err(Failure::incomplete(format!(
                "{name}: {missing} {why}; no tape was written; --accept-gaps writes one that says how many are missing"
            )));
        }
        self.missing += missing;
        self.building.tape().add_gap(TapeGap { source: name.to_owned(), records: missing });
        Ok(())
    }

    fn finish(mut self) -> Result<BuiltTape, Failure> {
        if let Some(file) = self.tokens.find_open_list() {
            self.note_gap(&file, 1, "page or more is missing: the list continues after this file, and no other file is its next page")?;
        }
        self.building.finish(OnDuplicate::KeepNewest)
    }
}

impl Tokens {
    fn note(&mut self, head: &Head, next: Option<String>, file: &str) {
        let is_unknown = head.token.is_none() && head.prefix.is_none() && head.record_at.is_none();
        let next = next.map(|token| NextPage { token, file: file.to_owned(), is_after_unknown: is_unknown });
        self.next.extend(next);
        self.unknown += usize::from(is_unknown);
        self.requested.extend(head.token.clone());
    }

    /// The file after which a list continues, if no other file can be its next page.
    fn find_open_list(&self) -> Option<String> {
        let open: Vec<_> = self.next.iter().filter(|next| !self.requested.contains(&next.token)).collect();
        // A chain of pages that do not tell their requests ends with one that has no open token.
        let ends = self.unknown - open.iter().filter(|next| next.is_after_unknown).count();
        let is_open = open.len() > self.unknown || !open.is_empty() && ends == 0;
        if is_open { open.last().map(|next| next.file.clone()) } else { None }
    }
}

fn unknown_format(name: &str, record: &TapeRecord) -> Failure {
    let identifier = record.identifier.escape_debug();
    Failure::usage(format!(
        "{name}: the format of the record {identifier} is not known; name its metadataPrefix with --prefix"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_open_if_no_file_can_be_its_next_page() {
        let head = |prefix: Option<&str>, token: Option<&str>| Head {
            prefix: prefix.map(str::to_owned),
            token: token.map(str::to_owned),
            ..Head::default()
        };
        let open = |pages: &[(Head, Option<&str>)]| {
            let mut tokens = Tokens::default();
            for (head, next) in pages {
                tokens.note(head, next.map(str::to_owned), "file");
            }
            tokens.find_open_list().is_some()
        };
        let first = head(Some("a"), None);
        assert!(!open(&[(first.clone(), None)]));
        assert!(open(&[(first.clone(), Some("1"))]));
        assert!(!open(&[(first.clone(), Some("1")), (head(None, Some("1")), None)]));
        assert!(open(&[(first.clone(), Some("1")), (head(None, Some("1")), Some("2"))]));
        assert!(open(&[(head(None, None), Some("1"))]), "a page is not the next one of itself");
        // A page that does not tell its request may be the next one.
        assert!(!open(&[(first.clone(), Some("1")), (head(None, None), None)]));
        assert!(open(&[(first.clone(), Some("1")), (first, Some("2")), (head(None, None), None)]));
    }
}
