//! Files such as `views/<name>.toml`, read again while the program runs. Tables of `oaimend.toml` may define the same.
//!
//! Invariant: a file with faults takes nothing down. What it defines keeps the previous definition.

use super::Mapping;
use super::keys::{self, Keys, declare, string};
use super::mapping::check_id;
use oaimend_base::error::Fault;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

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
    tables: Mutex<Tables<T>>,
    current: RwLock<Arc<BTreeMap<String, Arc<T>>>>,
    /// The files and repositories at the last reload.
    seen: Mutex<Option<Seen>>,
}

/// A file with tables that define what files of the folder define, each with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The key of the tables.
    pub key: &'static str,
}

/// Definitions in tables, each with its line.
#[derive(Debug)]
struct Tables<T> {
    file: Option<Arc<TablesFile>>,
    defined: Vec<(usize, Arc<T>)>,
}

/// The text of each file. An error is the text of a fault.
type Texts = BTreeMap<PathBuf, Result<String, String>>;

/// All that faults and warnings depend on.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    texts: Result<Texts, String>,
    tables: Option<Arc<TablesFile>>,
    /// Whether each repository is mirrored.
    repositories: BTreeMap<String, bool>,
}

impl<T> Default for NamedFiles<T> {
    fn default() -> Self {
        let tables = Mutex::new(Tables { file: None, defined: Vec::new() });
        Self { folder: None, tables, current: RwLock::default(), seen: Mutex::default() }
    }
}

impl<T: NamedFile> NamedFiles<T> {
    /// The files of a folder. [`NamedFiles::reload`] reads it.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// Sets the file with tables. [`NamedFiles::reload`] reads them.
    pub(crate) fn set_tables(&self, file: Option<Arc<TablesFile>>) {
        self.lock_tables().file = file;
    }

    fn lock_tables(&self) -> MutexGuard<'_, Tables<T>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All definitions in their current state.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<T>>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the folder again if a file in it, the tables or the mirrored repositories have changed, logs the warnings, and returns
    /// the faults. Without a folder nothing is defined.
    pub fn reload(&self, mappings: &Mappings) -> Vec<Fault> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let repositories = mappings.iter().map(|(id, mapping)| (id.clone(), mapping.mirror.is_some()));
        let tables = self.lock_tables().file.clone();
        let now = Seen { texts: read_folder(folder), tables, repositories: repositories.collect() };
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

    /// The warnings about all definitions.
    pub fn warnings(&self, mappings: &Mappings) -> Vec<Fault> {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        let tables = self.lock_tables();
        let place_of = |defined: &Arc<T>| {
            let table = tables.defined.iter().find(|(_, table)| Arc::ptr_eq(table, defined));
            match (&tables.file, table) {
                (Some(file), Some((line, _))) => (file.path.clone(), *line),
                _ => (folder.join(format!("{}.toml", defined.name())), 1),
            }
        };
        let warnings_of = |defined: &Arc<T>| -> Vec<Fault> {
            let (file, line) = place_of(defined);
            let warning = |text| Fault { file: file.clone(), line, text };
            defined.warnings(mappings).into_iter().map(warning).collect()
        };
        self.all().values().flat_map(warnings_of).collect()
    }

    /// Replaces the definitions by those in the files and tables. What a file with faults defines is unchanged.
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
        faults.extend(self.read_tables(texts, mappings));
        let of_tables = &self.lock_tables().defined;
        all.extend(of_tables.iter().map(|(_, defined)| (defined.name().to_owned(), Arc::clone(defined))));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(all);
        faults
    }

    /// Reads the tables. If one has a fault, all are unchanged.
    fn read_tables(&self, texts: &Texts, mappings: &Mappings) -> Vec<Fault> {
        let mut tables = self.lock_tables();
        let Some(file) = tables.file.clone() else {
            tables.defined.clear();
            return Vec::new();
        };
        let mut defined: Vec<(usize, Arc<T>)> = Vec::new();
        let faults = keys::read_tables(&file.path, &file.text, file.key, |keys| {
            let table: T = declare_table(keys, Some(mappings));
            let Some(reading) = keys.reading() else { return };
            let name = table.name();
            let of_file = texts.keys().find(|path| path.file_stem().is_some_and(|stem| stem == name));
            let of_table = defined.iter().find(|(_, other)| !name.is_empty() && other.name() == name);
            let other = of_file.map(|path| path.display().to_string());
            if let Some(other) =
                other.or_else(|| of_table.map(|(line, _)| format!("the table in line {line}")))
            {
                let text = format!("{} has the name \"{name}\" of {other}; choose another one", file.key);
                reading.report_missing(text);
            }
            defined.push((reading.line(), Arc::new(table)));
        });
        if faults.is_empty() {
            tables.defined = defined;
        }
        faults
    }
}

/// Declares the keys of a table: its name, and the keys of a file.
pub(super) fn declare_table<T: NamedFile>(keys: &mut Keys<'_, '_>, mappings: Option<&Mappings>) -> T {
    let mut name = String::new();
    declare! { keys:
        /// Its name: the last path segment of its URL.
        name: string("name", |name| check_id(name).map(|()| name.to_owned())) => name,
    }
    keys.require("name", "this table has no name; expected the last path segment of its URL");
    let mut defined = T::named(name);
    defined.declare(keys, mappings);
    defined
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
