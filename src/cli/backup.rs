//! `oaimend backup` and `oaimend restore`: a copy of the data folder in one file, and the way back.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use oaimend::config::{Config, Flags};
use oaimend_store_local::backup::{BackupSize, check_space};
use tempfile::NamedTempFile;

use super::admin_api::Refusal;
use super::data_arguments::{ConfigArguments, DataArguments, create_private_files};
use super::exit::{Exit, Failure, print};
use super::state::{IfAbsent, foreign_owner};

/// Copies the data folder into a file, also while a server uses it
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The new file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    data: DataArguments,
}

/// Checks a backup, and makes a new data folder of it
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The backup; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    config: ConfigArguments,
    /// The new data folder, which is empty or absent [default: data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn back_up(arguments: BackupArguments) -> Result<Exit, Failure> {
    let BackupArguments { file, data } = arguments;
    if file.exists() {
        return Err(Failure::usage(format!("{} exists; name a new file", file.display())));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let api = data.open(IfAbsent::Fail)?;
    let refused = |refusal: Refusal| Failure::in_use(format!("there is no backup: {}", refusal.error));
    let BackupSize { bytes, copied_bytes } = api.send("GET", "/-/backup")?.map_err(refused)?.read()?;
    // The server checks that it can copy its databases, which may need the same space.
    let copied_bytes = if is_same_disk(folder, &api.data) { copied_bytes } else { 0 };
    check_space(folder, bytes.saturating_add(copied_bytes)).map_err(Failure::in_use)?;
    let backup = api.send("POST", "/-/backup")?.map_err(refused)?;
    let cannot_write = |error: &io::Error| Failure::io("write", &file, error);
    let mut out = NamedTempFile::new_in(folder).map_err(|error| cannot_write(&error))?;
    let mut bytes = 0;
    let written = backup.into_pieces().try_for_each(|piece| {
        let piece = piece?;
        bytes += piece.len();
        show_progress(&format!("{} MiB written", bytes >> 20));
        out.write_all(&piece).map_err(|error| cannot_write(&error))
    });
    end_progress();
    written?;
    out.as_file().sync_all().map_err(|error| cannot_write(&error))?;
    // An unfinished file is removed, and another one is not replaced.
    out.persist_noclobber(&file).map_err(|error| cannot_write(&error.error))?;
    print(format!("{}: {bytes} bytes\n", file.display()).as_bytes())
}

pub(crate) fn restore(arguments: RestoreArguments) -> Result<Exit, Failure> {
    let RestoreArguments { file, config: ConfigArguments { config, mappings }, data } = arguments;
    let config = Config::load(&Flags { config, mappings, data, ..Flags::default() })?;
    if let Some(owner) = foreign_owner(&config.data) {
        return Err(Failure::in_use(owner.explain(&config.data)));
    }
    create_private_files();
    let archive: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&file).map_err(|error| Failure::io("read", &file, &error))?)
    };
    let progress = &mut |done: u64, all: u64| show_progress(&format!("{} of {} MiB", done >> 20, all >> 20));
    let restored = oaimend_store_local::backup::restore(archive, &config.data, progress);
    end_progress();
    let restored = restored.map_err(Failure::in_use)?;
    let text = format!(
        "{}: {} files of {}, {} bytes\n",
        config.data.display(),
        restored.files,
        restored.created.escape_debug(),
        restored.bytes
    );
    print(text.as_bytes())
}

/// Whether two folders are on the same disk.
fn is_same_disk(one: &Path, other: &Path) -> bool {
    let disk = |folder: &Path| folder.metadata().ok().map(|metadata| metadata.dev());
    disk(one).is_some_and(|one| disk(other) == Some(one))
}

fn show_progress(text: &str) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        // A closed stderr is not an error: progress is optional.
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}

fn end_progress() {
    show_progress("");
}
