//! Records in the files that people have: XML, BibTeX and CSV. Pure: no I/O.

mod bibtex;
mod csv_table;
mod naming;
mod simple_dublin_core;
mod xml_file;

use crate::bad_xml::BadXml;
use crate::deposit::Deposit;
use crate::error::DepositError;
pub use naming::{FileNaming, identifier_start};
use simple_dublin_core::SimpleDublinCore;
use std::path::Path;

/// The kind of a file, by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `.xml`: metadata, or a response of OAI-PMH with records.
    Xml,
    /// `.bib`: a bibliography, each entry of which is a record in `oai_dc`.
    BibTeX,
    /// `.csv`: a table, each row of which is a record in `oai_dc`.
    Csv,
}

/// A record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Its metadataPrefix.
    pub prefix: String,
    /// The record.
    pub deposit: Deposit,
}

impl FileKind {
    /// The kind of the file at this path; `None` for others.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "xml" => Some(Self::Xml),
            "bib" => Some(Self::BibTeX),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Reads the records of a file. Two of them never have the same identifier in one format.
///
/// # Errors
///
/// The file is not correct; the first fault is named with its place. No record of it is used then.
pub fn read_file(
    kind: FileKind,
    content: &[u8],
    naming: &FileNaming<'_>,
) -> Result<Vec<FileRecord>, DepositError> {
    let records = match kind {
        FileKind::Xml => xml_file::read(content, naming)?,
        FileKind::BibTeX => of_works(bibtex::read(text_of(content)?)?, naming)?,
        FileKind::Csv => of_works(csv_table::read(text_of(content)?)?, naming)?,
    };
    let mut names: Vec<(&str, &str)> =
        records.iter().map(|record| (record.prefix.as_str(), record.deposit.identifier.as_str())).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(DepositError::Unfit(format!("the identifier {} is in the file twice", twice[0].1)));
    }
    Ok(records)
}

/// A described work: its key in the file, and its description.
struct Work {
    key: String,
    description: SimpleDublinCore,
}

fn of_works(works: Vec<Work>, naming: &FileNaming<'_>) -> Result<Vec<FileRecord>, DepositError> {
    let record = |work: Work| {
        let identifier = naming.identifier_of(&work.key);
        let payload = Some(work.description.payload());
        let deposit = Deposit::new(&identifier, naming.set_specs, payload)?;
        Ok(FileRecord { prefix: crate::dublin_core::DUBLIN_CORE.to_owned(), deposit })
    };
    works.into_iter().map(record).collect()
}

/// The text of a file in UTF-8, without a byte order mark.
fn text_of(content: &[u8]) -> Result<&str, BadXml> {
    let text = str::from_utf8(content).map_err(|error| {
        BadXml::at(content, error.valid_up_to(), "this byte is not UTF-8; save it as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
