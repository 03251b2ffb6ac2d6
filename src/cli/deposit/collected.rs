//! The records of files.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use oaimend_deposit::{FileKind, FileNaming, FileRecord, read_file};

use super::super::exit::Failure;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What the options say of the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming<'a> {
    pub(super) identifier_start: &'a str,
    pub(super) prefix: Option<&'a str>,
    pub(super) set_specs: &'a [String],
}

/// The content of a file, and its kind. `-` is stdin.
pub(super) fn read_content(path: &Path) -> Result<(FileKind, Vec<u8>), Failure> {
    let failed = |error: io::Error| Failure::io("read", path, &error);
    let is_stdin = path == Path::new("-");
    let mut content = Vec::new();
    if is_stdin {
        io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(failed)?;
    } else {
        fs::File::open(path)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content))
            .map_err(failed)?;
    }
    if content.len() as u64 > FILE_BYTES_MAX {
        let text = format!("{} has more than {FILE_BYTES_MAX} bytes; divide it", path.display());
        return Err(Failure::usage(text));
    }
    let kind = if is_stdin { Some(kind_of_content(&content)) } else { FileKind::of(path) };
    kind.map(|kind| (kind, content)).ok_or_else(|| {
        Failure::usage(format!(
            "{} is of no known kind; expected a name with .xml, .bib or .csv",
            path.display()
        ))
    })
}

/// The kind of content without a name.
fn kind_of_content(content: &[u8]) -> FileKind {
    let text = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'<') => FileKind::Xml,
        Some(b'@' | b'%') => FileKind::BibTeX,
        _ => FileKind::Csv,
    }
}

/// The records of a file. Its name below its folder without the ending names a record without an identifier.
pub(super) fn records_of(
    path: &Path,
    name: &str,
    (kind, content): &(FileKind, Vec<u8>),
    naming: Naming<'_>,
) -> Result<Vec<FileRecord>, Failure> {
    let Naming { identifier_start, prefix, set_specs } = naming;
    let naming = FileNaming { identifier_start, name, prefix, formats: None, set_specs };
    read_file(*kind, content, &naming)
        .map_err(|error| Failure::other_input(format!("{}: {error}", path.display())))
}

/// The files of a folder and its subfolders in the order of their names, below the folder. Hidden ones, symlinks and
/// other kinds are left out.
pub(super) fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(is_visible) {
        let entry = entry.map_err(|error| Failure::incomplete(format!("cannot read the folder: {error}")))?;
        if entry.file_type().is_file()
            && FileKind::of(entry.path()).is_some()
            && let Ok(below) = entry.path().strip_prefix(folder)
        {
            files.push(below.to_owned());
        }
    }
    Ok(files)
}

fn is_visible(entry: &walkdir::DirEntry) -> bool {
    entry.depth() == 0 || !entry.file_name().to_string_lossy().starts_with('.')
}
