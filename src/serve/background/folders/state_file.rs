//! The file with what a folder has published, in the data folder.
//!
//! A mark is beside it while the folder changes the store. After a kill in between, the store may have records that the file
//! does not know, so the mark is found at the next start, and the store is compared with the files of the folder.

use oaimend_deposit::FolderState;
use oaimend_files::data_dir::rename_durably;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The file with what a folder has published.
#[derive(Clone, Debug)]
pub(super) struct StateFile {
    folder: PathBuf,
    path: PathBuf,
    mark: PathBuf,
}

impl StateFile {
    /// The one of a repository in a data folder.
    pub(super) fn new(data: &Path, id: &str) -> Self {
        let folder = data.join("folders");
        let (path, mark) = (folder.join(format!("{id}.json")), folder.join(format!("{id}.changing")));
        Self { folder, path, mark }
    }

    /// Reads the published files, and whether a change was interrupted. If the state is lost, the folder is read again as a
    /// whole.
    pub(super) fn read(&self) -> (FolderState, bool) {
        let is_interrupted = !matches!(self.mark.try_exists(), Ok(false));
        let read = fs::read(&self.path).map(|json| serde_json::from_slice(&json));
        match read {
            Ok(Ok(state)) => (state, is_interrupted),
            Err(error) if error.kind() == ErrorKind::NotFound => (FolderState::default(), false),
            Ok(Err(_)) | Err(_) => {
                let path = self.path.display();
                tracing::warn!(%path, "what the folder has published cannot be read; all its files are read again");
                (FolderState::default(), false)
            }
        }
    }

    /// Sets the mark, durably.
    pub(super) fn begin(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        if !self.mark.try_exists()? {
            File::create(&self.mark)?;
            File::open(&self.folder)?.sync_all()?;
        }
        Ok(())
    }

    /// Replaces the file, durably.
    pub(super) fn save(&self, state: &FolderState) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let part = self.path.with_extension("json.part");
        let written = || -> io::Result<()> {
            let mut file = BufWriter::new(File::create(&part)?);
            serde_json::to_writer(&mut file, state)?;
            file.flush()?;
            file.get_ref().sync_all()?;
            rename_durably(&part, &self.path)
        };
        let written = written();
        if written.is_err() {
            // The first error is reported. The next save replaces what stays.
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// Removes the file and the mark: nobody follows the folder, so others may write the records now.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.end()?;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the mark: the file knows what the store has.
    pub(super) fn end(&self) -> io::Result<()> {
        match fs::remove_file(&self.mark) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
