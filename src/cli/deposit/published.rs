//! What a folder has published, in a file of the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::exit::Failure;

/// The file of a folder that says what was published. Its name is hidden, so it is not published itself.
const FILE: &str = ".oaimend-published.json";

/// What a folder has published to a repository.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    /// The base URL of the repository.
    pub(super) to: String,
    /// The files by their paths below the folder.
    pub(super) files: BTreeMap<PathBuf, PublishedFile>,
}

/// A file that was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedFile {
    /// The hash of its content, in hexadecimal digits.
    pub(super) hash: String,
    /// Its records: their metadataPrefixes and identifiers.
    pub(super) records: BTreeSet<(String, String)>,
}

impl Published {
    /// What was published from a folder to this repository.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is damaged, or the folder belongs to another repository.
    pub(super) fn read(folder: &Path, to: &str) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { to: to.to_owned(), files: BTreeMap::new() });
            }
            Err(error) => return Err(Failure::io("read", &path, &error)),
        };
        let published: Self = serde_json::from_slice(&text).map_err(|error| {
            let text =
                "remove it to publish all files again; records of removed files then stay in the repository";
            Failure::other_input(format!("{} is damaged: {error}; {text}", path.display()))
        })?;
        if published.to != to {
            let text = format!(
                "{} was published to {}; publish there, or remove {} to begin with another repository",
                folder.display(),
                published.to,
                path.display()
            );
            return Err(Failure::usage(text));
        }
        Ok(published)
    }

    /// Replaces the file.
    pub(super) fn save(&self, folder: &Path) -> Result<(), Failure> {
        let (path, part) = (folder.join(FILE), folder.join(format!("{FILE}.part")));
        let written = || -> io::Result<()> {
            let file = fs::File::create(&part)?;
            serde_json::to_writer(&file, self)?;
            file.sync_all()?;
            fs::rename(&part, &path)
        };
        written().map_err(|error| Failure::io("write", &path, &error))
    }

    /// The records of all files.
    pub(super) fn records(&self) -> BTreeSet<&(String, String)> {
        self.files.values().flat_map(|file| &file.records).collect()
    }
}
