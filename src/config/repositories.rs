//! The repositories, from the mappings folder and from `--map`; read again
//! while the program runs.
//!
//! Invariant: a broken file never takes anything down. It leaves what was
//! known of its repository as it was; all others change as their files say.

use super::{Fault, Limits, Mapping};
use crate::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

/// All repositories, by id. Shared: one request sees one state of it.
#[derive(Debug)]
pub struct Repositories {
    folder: Option<PathBuf>,
    limits: RwLock<Limits>,
    /// What `adminEmail` is where neither the source nor its mapping says it.
    admin_email: Option<String>,
    fixed: BTreeMap<String, Arc<Mapping>>,
    current: RwLock<Arc<BTreeMap<String, Arc<Mapping>>>>,
    seen: Mutex<Option<Listing>>,
}

/// What reading the folder again brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Reread {
    /// No file has changed.
    Same,
    /// Some have, and all are well.
    Changed,
    /// Some have, and these are their faults.
    Faults(Vec<Fault>),
}

/// Name, modification time and length of each mapping file: what tells that it changed.
type Listing = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

impl Repositories {
    /// None yet; [`reread`](Self::reread) fills it from the folder.
    pub fn new(folder: Option<PathBuf>, limits: Limits) -> Self {
        Self {
            folder,
            limits: RwLock::new(limits),
            admin_email: None,
            fixed: BTreeMap::new(),
            current: RwLock::default(),
            seen: Mutex::default(),
        }
    }

    /// Says whose mail address stands in for one that is missing.
    #[must_use]
    pub(super) fn with_admin_email(self, admin_email: Option<String>) -> Self {
        Self { admin_email, ..self }
    }

    /// Adds a repository that no file can change.
    pub fn fix(&mut self, mut mapping: Mapping) {
        mapping.identify.admin_email = mapping.identify.admin_email.or_else(|| self.admin_email.clone());
        let mapping = Arc::new(mapping);
        self.fixed.insert(mapping.id.clone(), Arc::clone(&mapping));
        let mut all = BTreeMap::clone(&self.all());
        all.insert(mapping.id.clone(), mapping);
        self.replace(all);
    }

    /// All of them, as they are now.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<Mapping>>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The repository of that id.
    pub fn find(&self, id: &str) -> Option<Arc<Mapping>> {
        self.all().get(id).cloned()
    }

    /// The bounds a mapping starts from.
    pub fn limits(&self) -> Limits {
        self.limits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets them anew; the files of the folder count as changed then. Those of `--map` stay.
    pub fn set_limits(&self, limits: Limits) {
        if self.limits() != limits {
            *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Reads the folder again if a file in it has changed.
    ///
    /// # Errors
    ///
    /// The folder cannot be listed; nothing has changed then.
    pub fn reread(&self) -> Result<Reread, Error> {
        let Some(folder) = &self.folder else { return Ok(Reread::Same) };
        let listing = list(folder)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() == Some(&listing) {
            return Ok(Reread::Same);
        }
        let before = self.all();
        let mut faults = Vec::new();
        let mut all = BTreeMap::new();
        for file in listing.keys() {
            let id = id_of(file);
            match self.read(&id, file) {
                Ok(mapping) => {
                    all.insert(id, kept_if_same(before.get(&mapping.id), mapping));
                }
                Err(found) => {
                    faults.extend(found);
                    if let Some(mapping) = before.get(&id) {
                        all.insert(id, Arc::clone(mapping));
                    }
                }
            }
        }
        all.extend(self.fixed.clone());
        self.replace(all);
        *seen = Some(listing);
        Ok(if faults.is_empty() { Reread::Changed } else { Reread::Faults(faults) })
    }

    fn read(&self, id: &str, file: &Path) -> Result<Mapping, Vec<Fault>> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            vec![Fault { file: file.to_owned(), line: 1, text: format!("cannot be read: {error}") }]
        })?;
        let mut mapping = Mapping::read(id, file, &text, &self.limits())?;
        mapping.identify.admin_email = mapping.identify.admin_email.or_else(|| self.admin_email.clone());
        Ok(mapping)
    }

    fn replace(&self, all: BTreeMap<String, Arc<Mapping>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(all);
    }
}

/// The known object if nothing has changed: what hangs on it (connections) lives on.
fn kept_if_same(before: Option<&Arc<Mapping>>, mapping: Mapping) -> Arc<Mapping> {
    match before {
        Some(before) if **before == mapping => Arc::clone(before),
        _ => Arc::new(mapping),
    }
}

fn list(folder: &Path) -> Result<Listing, Error> {
    let unreadable = |error| Error::reading(folder, error, "name a folder of mapping files with --mappings");
    let mut listing = Listing::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        // A file that is gone between the two calls is simply not there.
        if let Ok(meta) = std::fs::metadata(&path) {
            listing.insert(path, (meta.modified().ok(), meta.len()));
        }
    }
    Ok(listing)
}

fn id_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
