//! The repositories from the mappings folder and from `--map`, reloaded while the program runs.
//!
//! Invariant: a file with faults takes no repository down. Its repository keeps the previous
//! mapping; all others change as their files say.

use super::{Limits, Mapping};
use oaimend_base::error::{Error, Fault};
use oaimend_crosswalks::CrosswalkChoices;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

/// All repositories, by id. Shared: each request sees one consistent state.
#[derive(Debug)]
pub struct Repositories {
    folder: Option<PathBuf>,
    limits: RwLock<Limits>,
    /// The `adminEmail` of repositories whose source and mapping do not give one.
    admin_email: Option<String>,
    /// The crosswalks of repositories whose mapping does not say otherwise.
    crosswalks: CrosswalkChoices,
    fixed: BTreeMap<String, Arc<Mapping>>,
    current: RwLock<Arc<BTreeMap<String, Arc<Mapping>>>>,
    seen: Mutex<Option<Listing>>,
}

/// The result of reloading the mappings folder.
#[derive(Debug, PartialEq, Eq)]
pub enum MappingsReload {
    /// No file has changed.
    Unchanged,
    /// Some files have changed.
    Changed {
        /// The repositories that differ now.
        changes: MappingChanges,
        /// The faults of files. Their repositories are unchanged.
        faults: Vec<Fault>,
    },
}

/// The ids of the repositories that a reload has added, changed and removed, each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingChanges {
    /// New repositories.
    pub added: Vec<String>,
    /// Repositories with another mapping than before.
    pub changed: Vec<String>,
    /// Repositories without a file.
    pub removed: Vec<String>,
}

/// Name, modification time and length of each mapping file; a difference means that it changed.
type Listing = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

impl Repositories {
    /// Creates an empty set; [`reload`](Self::reload) fills it from the folder.
    pub fn new(folder: Option<PathBuf>, limits: Limits) -> Self {
        Self {
            folder,
            limits: RwLock::new(limits),
            admin_email: None,
            crosswalks: CrosswalkChoices::default(),
            fixed: BTreeMap::new(),
            current: RwLock::default(),
            seen: Mutex::default(),
        }
    }

    /// Sets the `adminEmail` of repositories that lack one.
    #[must_use]
    pub(super) fn with_admin_email(self, admin_email: Option<String>) -> Self {
        Self { admin_email, ..self }
    }

    /// Sets the crosswalks that a mapping can turn off.
    #[must_use]
    pub(super) fn with_crosswalks(self, crosswalks: CrosswalkChoices) -> Self {
        Self { crosswalks, ..self }
    }

    /// The files in the folder that look like mappings and are not read because of their names, in order. Hidden files
    /// are left out. Other files may be there for the mappings, such as certificates.
    pub fn unread_files(&self) -> Vec<PathBuf> {
        let entries =
            self.folder.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let is_unread = |path: &PathBuf| !is_mapping_file(path) && path.is_file() && looks_like_mapping(path);
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_unread).collect();
        files.sort();
        files
    }

    /// The folder of the mapping files. The default one need not exist.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Adds a repository that no file can change.
    pub fn add_fixed(&mut self, mut mapping: Mapping) {
        self.add_defaults(&mut mapping);
        let mapping = Arc::new(mapping);
        self.fixed.insert(mapping.id().to_owned(), Arc::clone(&mapping));
        let mut all = BTreeMap::clone(&self.all());
        all.insert(mapping.id().to_owned(), mapping);
        self.replace(all);
    }

    /// All repositories in their current state.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<Mapping>>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The repository of that id.
    pub fn find(&self, id: &str) -> Option<Arc<Mapping>> {
        self.all().get(id).cloned()
    }

    /// The limits that a mapping starts with.
    pub fn limits(&self) -> Limits {
        self.limits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces these limits and marks the files of the folder as changed. Repositories of `--map`
    /// keep theirs.
    pub(crate) fn set_limits(&self, limits: Limits) {
        if self.limits() != limits {
            *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Reads the folder again if a file in it has changed.
    ///
    /// # Errors
    ///
    /// The folder cannot be listed; nothing changes then.
    pub fn reload(&self) -> Result<MappingsReload, Error> {
        let Some(folder) = &self.folder else { return Ok(MappingsReload::Unchanged) };
        let is_new = self.seen.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if is_new && !folder.exists() {
            // The default folder. One that was there, with its repositories, is missed.
            return Ok(MappingsReload::Unchanged);
        }
        let listing = list_folder(folder)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref() == Some(&listing) {
            return Ok(MappingsReload::Unchanged);
        }
        let before = self.all();
        let mut faults = Vec::new();
        let mut all = BTreeMap::new();
        for file in listing.keys() {
            let id = repository_id(file);
            match self.read(&id, file) {
                Ok(mapping) => {
                    all.insert(id, reuse_unchanged(before.get(mapping.id()), mapping));
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
        let changes = MappingChanges::between(&before, &all);
        self.replace(all);
        *seen = Some(listing);
        Ok(MappingsReload::Changed { changes, faults })
    }

    fn read(&self, id: &str, file: &Path) -> Result<Mapping, Vec<Fault>> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            vec![Fault { file: file.to_owned(), line: 1, text: format!("cannot be read: {error}") }]
        })?;
        let mut mapping = Mapping::read(id, file, &text, &self.limits())?;
        self.add_defaults(&mut mapping);
        Ok(mapping)
    }

    /// Adds what holds for all repositories to one that has none of its own: the address, and the crosswalks.
    fn add_defaults(&self, mapping: &mut Mapping) {
        mapping.crosswalks = mapping.crosswalks.over(&self.crosswalks);
        let identify = &mut mapping.source_mut().identify;
        identify.admin_email = identify.admin_email.take().or_else(|| self.admin_email.clone());
    }

    fn replace(&self, all: BTreeMap<String, Arc<Mapping>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(all);
    }
}

impl Mapping {
    /// Reads one mapping file, with the default limits.
    ///
    /// # Errors
    ///
    /// It cannot be read ([`Error::File`]), or has faults ([`Error::Config`]).
    pub fn load(file: &Path) -> Result<Self, Error> {
        let remedy = "name a mapping file";
        let text = std::fs::read_to_string(file).map_err(|error| Error::reading(file, error, remedy))?;
        Self::read(&repository_id(file), file, &text, &Limits::default()).map_err(Error::Config)
    }
}

impl MappingChanges {
    fn between(before: &BTreeMap<String, Arc<Mapping>>, after: &BTreeMap<String, Arc<Mapping>>) -> Self {
        let mut changes = Self::default();
        for (id, mapping) in after {
            match before.get(id) {
                None => changes.added.push(id.clone()),
                Some(old) if !Arc::ptr_eq(old, mapping) => changes.changed.push(id.clone()),
                Some(_) => {}
            }
        }
        changes.removed.extend(before.keys().filter(|id| !after.contains_key(*id)).cloned());
        changes
    }
}

/// Returns the existing object if nothing has changed, so that its connections stay open.
fn reuse_unchanged(before: Option<&Arc<Mapping>>, mapping: Mapping) -> Arc<Mapping> {
    match before {
        Some(before) if **before == mapping => Arc::clone(before),
        _ => Arc::new(mapping),
    }
}

fn list_folder(folder: &Path) -> Result<Listing, Error> {
    let unreadable = |error| Error::reading(folder, error, "name a folder of mapping files with --mappings");
    let mut listing = Listing::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !is_mapping_file(&path) {
            continue;
        }
        // Another process may remove a file between the two calls; such a file is skipped.
        if let Ok(meta) = std::fs::metadata(&path) {
            listing.insert(path, (meta.modified().ok(), meta.len()));
        }
    }
    Ok(listing)
}

fn is_mapping_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Whether a file was probably meant as a mapping: by its name, or by its first key.
fn looks_like_mapping(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_similar = |extension: &str| strsim::osa_distance(extension, "toml") <= 1;
    let has_key = || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| {
            ["base_url", "static_file", "tape_file", "kind"]
                .iter()
                .any(|key| line.trim_start().starts_with(key))
        })
    };
    !name.starts_with('.') && (name.split('.').skip(1).any(is_similar) || has_key())
}

fn repository_id(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
