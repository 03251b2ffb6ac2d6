//! `oaimend publish`: keeps a local repository elsewhere equal to a folder (Kepler: "an OAI data/service provider for the
//! individual", by Maly, Zubair and Liu, 2001). Only connections to the server are needed, so it works from a private network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use blake2::{Blake2s256, Digest as _};
use clap::Args;
use oaimend_deposit::{Deposit, FileRecord, identifier_start};
use oaimend_oai::set_spec;
use serde_json::json;

use super::super::exit::{Exit, Failure, print};
use super::super::output_format::{OutputFormat, format_json};
use super::client::{AccessArguments, DepositClient, Sent};
use super::collected::{Naming, files_below, read_content, records_of};
use super::published::{Published, PublishedFile};

/// Publishes the files of a folder in a local repository elsewhere
#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// Folder with XML (.xml), BibTeX (.bib) and tables (.csv). Its subfolders are sets
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The base URL of the local repository
    #[arg(long, value_name = "URL")]
    to: String,
    #[command(flatten)]
    access: AccessArguments,
    /// The format of the output
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// The files of a folder beside what was published.
struct Changes {
    now: Published,
    /// The records of new and changed files.
    records: Vec<FileRecord>,
}

/// Sends the records of new and changed files, and deletes those of removed ones.
pub(crate) fn run(arguments: PublishArguments) -> Result<Exit, Failure> {
    let PublishArguments { folder, to, access, format } = arguments;
    let to = to.trim_end_matches('/');
    let client = DepositClient::new(to, access)?;
    let before = Published::read(&folder, to)?;
    let Changes { now, records } = changes(&folder, &before)?;
    if now.files.is_empty() && !before.files.is_empty() {
        let text = format!(
            "{} has no files any more, so nothing is deleted; check whether its disk is mounted",
            folder.display()
        );
        return Err(Failure::usage(text));
    }
    let kept = now.records();
    let removed: Vec<FileRecord> = before.records().difference(&kept).map(|name| tombstone(name)).collect();
    let (mut sent, mut deleted) = (Sent::default(), Sent::default());
    client.send(&records, &mut sent)?;
    // Other formats may need oai_dc, which is deleted after them.
    let (common, others): (Vec<_>, Vec<_>) =
        removed.into_iter().partition(|record| record.prefix == "oai_dc");
    client.send(&others, &mut deleted)?;
    client.send(&common, &mut deleted)?;
    now.save(&folder)?;
    let text = match format {
        OutputFormat::Json => format_json(&json!({
            "files": now.files.len(),
            "records": sent.records,
            "changed": sent.changed,
            "deleted": deleted.changed,
        })),
        OutputFormat::Text => format!(
            "files: {}, records sent: {}, new or changed: {}, deleted: {}\n",
            now.files.len(),
            sent.records,
            sent.changed,
            deleted.changed
        ),
    };
    print(text.as_bytes())
}

fn tombstone((prefix, identifier): &(String, String)) -> FileRecord {
    FileRecord { prefix: prefix.clone(), deposit: Deposit::deleted(identifier) }
}

/// Reads all files. Nothing is sent if one of them is not correct.
fn changes(folder: &Path, before: &Published) -> Result<Changes, Failure> {
    let start = identifier_start(&before.to);
    let mut now = Published { to: before.to.clone(), ..Published::default() };
    let mut records = Vec::new();
    for below in files_below(folder)? {
        let path = folder.join(&below);
        let content = read_content(&path)?;
        let hash = hex::encode(Blake2s256::digest(&content.1));
        let known = before.files.get(&below).filter(|file| file.hash == hash);
        if let Some(known) = known {
            now.files.insert(below, known.clone());
            continue;
        }
        let set_specs = sets_of(&below)?;
        let naming = Naming { identifier_start: &start, prefix: None, set_specs: &set_specs };
        let name = below.with_extension("").to_string_lossy().into_owned();
        let read = records_of(&path, &name, &content, naming)?;
        let names = read.iter().map(|record| (record.prefix.clone(), record.deposit.identifier.clone()));
        let names: BTreeSet<(String, String)> = names.collect();
        records.extend(read);
        now.files.insert(below, PublishedFile { hash, records: names });
    }
    check_once(&now)?;
    Ok(Changes { now, records })
}

/// The set of a file: its subfolders.
fn sets_of(below: &Path) -> Result<Vec<String>, Failure> {
    let folders: Vec<String> = below
        .parent()
        .into_iter()
        .flat_map(Path::components)
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    let set = folders.join(":");
    if set.is_empty() {
        return Ok(Vec::new());
    }
    if set_spec::read(set.as_bytes()).is_none() {
        let text = "expected letters, digits and -_.!~*'() in the names of subfolders, because they are sets";
        return Err(Failure::other_input(format!("{}: {text}", below.display())));
    }
    Ok(vec![set])
}

/// Checks that no two files have one record.
fn check_once(now: &Published) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for (path, file) in &now.files {
        if let Some((_, identifier)) = file.records.iter().find(|record| !seen.insert((*record).clone())) {
            let text = format!("{}: the record {identifier} is in another file too", path.display());
            return Err(Failure::other_input(text));
        }
    }
    Ok(())
}
