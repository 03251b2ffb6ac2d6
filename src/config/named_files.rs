//! Files such as `views/<name>.toml`, read again while the program runs.
//!
//! Invariant: a file with faults takes nothing down. What it defines keeps the previous definition.

use super::Mapping;
use super::keys::{self, Keys};
use super::mapping::check_id;
use oaimend_base::error::Fault;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The content of a file, named by it.
pub trait NamedFile: Sized {
    /// The defaults, with this name.
    fn named(name: String) -> Self;

    /// The name: that of the file, and the last path segment of its URL.
    fn name(&self) -> &str;

    /// Declares the keys of the file. Without mappings all ids of repositories are accepted.
    #[expect(private_interfaces, reason = "only this crate reads files")]
    fn declare(&mut self, keys: &mut Keys<'_, '_>, mappings: Option<&Mappings>);

    /// What deserves a warning, with these mappings.
    fn warnings(&self, mappings: &Mappings) -> Vec<String>;
}

/// The mappings by their ids.
pub type Mappings = BTreeMap<String, Arc<Mapping>>;

/// All files of a folder, by their names. Shared: each request sees one consistent state.
#[derive(Debug)]
pub struct NamedFiles<T> {
    folder: Option<PathBuf>,
    current: RwLock<Arc<BTreeMap<String, Arc<T>>>>,
    /// The files and repositories at the last reload.
    seen: Mutex<Option<Seen>>,
}

/// The text of each file. An error is the text of a fault.
type Texts = BTreeMap<PathBuf, Result<String, String>>;

/// All that faults and warnings depend on.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    texts: Result<Texts, String>,
    /// Whether each repository is mirrored.
    repositories: BTreeMap<String, bool>,
}

impl<T> Default for NamedFiles<T> {
    fn default() -> Self {
        Self { folder: None, current: RwLock::default(), seen: Mutex::default() }
    }
}

impl<T: NamedFile> NamedFiles<T> {
    /// The files of a folder. [`NamedFiles::reload`] reads it.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// All definitions in their current state.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<T>>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the folder again if a file in it or the mirrored repositories have changed, logs the warnings, and returns
    /// the faults. Without a folder nothing is defined.
    pub fn reload(&self, mappings: &Mappings) -> Vec<Fault> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let repositories = mappings.iter().map(|(id, mapping)| (id.clone(), mapping.mirror.is_some()));
        let now = Seen { texts: read_folder(folder), repositories: repositories.collect() };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() == Some(&now) {
            return Vec::new();
        }
        let faults = match &now.texts {
            Ok(texts) => self.read(texts, mappings),
            Err(text) => vec![Fault { file: folder.clone(), line: 1, text: text.clone() }],
        };
        *seen = Some(now);
        for warning in self.warnings(mappings) {
            tracing::warn!("{warning}");
        }
        faults
    }

    /// The warnings about all files.
    pub fn warnings(&self, mappings: &Mappings) -> Vec<Fault> {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        let warnings_of = |defined: &Arc<T>| -> Vec<Fault> {
            let file = folder.join(format!("{}.toml", defined.name()));
            let warning = |text| Fault { file: file.clone(), line: 1, text };
            defined.warnings(mappings).into_iter().map(warning).collect()
        };
        self.all().values().flat_map(warnings_of).collect()
    }

    /// Replaces the definitions by those in the files. What a file with faults defines is unchanged.
    fn read(&self, texts: &Texts, mappings: &Mappings) -> Vec<Fault> {
        let (before, mut all, mut faults) = (self.all(), BTreeMap::new(), Vec::new());
        for (file, text) in texts {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut defined = T::named(name.clone());
            let fault = |text: String| Fault { file: file.clone(), line: 1, text };
            let mut found = match text {
                Ok(text) => keys::read(file, text, |keys| defined.declare(keys, Some(mappings))),
                Err(problem) => vec![fault(problem.clone())],
            };
            if let Err(problem) = check_id(&name) {
                found.push(fault(format!("the file name \"{name}\" {problem}")));
            }
            match before.get(&name) {
                Some(known) if !found.is_empty() => drop(all.insert(name, Arc::clone(known))),
                _ if found.is_empty() => drop(all.insert(name, Arc::new(defined))),
                _ => {}
            }
            faults.extend(found);
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(all);
        faults
    }
}

/// The files in the folder; none if there is no folder.
fn read_folder(folder: &Path) -> Result<Texts, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Texts::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut texts = Texts::new();
    for entry in entries {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&file).map_err(unreadable);
            texts.insert(file, text);
        }
    }
    Ok(texts)
}
