//! The views: the files `views/<name>.toml`, read again while the program runs.
//!
//! Invariant: a file with faults takes no view down. Its view keeps the previous definition.

use super::Mapping;
use super::identify::{mail_address, read_name};
use super::keys::{self, Keys, declare, list, string, unique_list};
use super::mapping::check_id;
use super::mirror::printable;
use oaimend_base::error::Fault;
use oaimend_search::DUBLIN_CORE;
use oaimend_search::query::{QueryLanguage, parse};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The file of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewFile {
    /// Its name: that of the file, and the last path segment of its URL.
    pub name: String,
    /// `repositoryName`.
    pub repository_name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// `adminEmail`.
    pub admin_emails: Vec<String>,
    /// The ids of its repositories; empty: all mirrored ones.
    pub repositories: Vec<String>,
    /// The sets that it is limited to, such as `x` or `x:a`; empty: all.
    pub sets: Vec<String>,
    /// Its formats; empty: all.
    pub formats: Vec<String>,
    /// Its query in `odlsearch1`.
    pub query: Option<String>,
}

/// All views, by name. Shared: each request sees one consistent state.
#[derive(Debug, Default)]
pub struct Views {
    folder: Option<PathBuf>,
    current: RwLock<Arc<BTreeMap<String, Arc<ViewFile>>>>,
    /// The texts that were read last.
    seen: Mutex<BTreeMap<PathBuf, String>>,
}

type Mappings = BTreeMap<String, Arc<Mapping>>;

impl ViewFile {
    /// The keys of the file.
    fn declare(&mut self, keys: &mut Keys<'_, '_>, mappings: Option<&Mappings>) {
        let repository = string("repository id", |id| match mappings {
            Some(mappings) if mappings.get(id).is_none_or(|mapping| mapping.mirror.is_none()) => {
                Err("is no mirrored repository; expected the name of a mapping file with a [mirror] table"
                    .to_owned())
            }
            _ => Ok(id.to_owned()),
        });
        declare! { keys:
            /// `repositoryName` of Identify, and the title of its pages. Without it the name is that of the file.
            repository_name: string("string", read_name) => self.repository_name,
            /// What the view is about, for Identify.
            description: string("string", read_name) => self.description,
            /// `adminEmail` of Identify. Without them it is those of the repositories.
            admin_emails: list("mail addresses", mail_address()) => self.admin_emails,
            /// The mirrored repositories that it is made from. Without them it is all.
            repositories: unique_list("repository ids", repository) => self.repositories,
            /// The sets that it is limited to, as `/_all` names them: `x` is a repository, `x:a` its set `a` with
            /// all subsets.
            sets: unique_list("sets", printable("set", "is not a set; expected one such as \"x:a\"")) => self.sets,
            /// Its formats. Without them it is every mirrored format.
            formats: unique_list("metadataPrefixes", printable("metadataPrefix", "is not a metadataPrefix")) => self.formats,
            /// The query that its records match, such as `"title:maps +language:en -draft"`. Without it, all
            /// records are in the view.
            query: string("query", |text| read_query(text)) => self.query,
        }
    }

    /// The keys with the default values.
    #[cfg(test)]
    pub(super) fn describe_defaults() -> keys::Description {
        keys::describe(|keys| Self::default().declare(keys, None))
    }
}

/// Reads a query; the error text says what is wrong.
fn read_query(text: &str) -> Result<String, String> {
    let query = parse(QueryLanguage::Odl, text).map_err(|error| format!("is no query: {error}"))?;
    query.check().map_err(|error| format!("is no query: {error}"))?;
    match query.fields().into_iter().find(|field| !DUBLIN_CORE.contains(&field.0.as_str())) {
        Some(field) => Err(format!("has the field {}; expected one of {}", field.0, DUBLIN_CORE.join(", "))),
        None => Ok(text.to_owned()),
    }
}

impl Views {
    /// The views of a folder. [`Views::reload`] reads it.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// All views in their current state.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<ViewFile>>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the folder again if a file in it has changed, and returns the faults. Without a folder there is no view.
    pub fn reload(&self, mappings: &Mappings) -> Vec<Fault> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let (texts, mut faults) = read_folder(folder);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == texts {
            return Vec::new();
        }
        let (before, mut all) = (self.all(), BTreeMap::new());
        for (file, text) in &texts {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut view = ViewFile { name: name.clone(), ..ViewFile::default() };
            let mut found = keys::read(file, text, |keys| view.declare(keys, Some(mappings)));
            if let Err(problem) = check_id(&name) {
                let text = format!("the file name \"{name}\" {problem}");
                found.push(Fault { file: file.clone(), line: 1, text });
            }
            match before.get(&name) {
                Some(known) if !found.is_empty() => drop(all.insert(name, Arc::clone(known))),
                _ if found.is_empty() => drop(all.insert(name, Arc::new(view))),
                _ => {}
            }
            faults.extend(found);
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(all);
        *seen = texts;
        faults
    }
}

/// The texts of the files in the folder, and the faults of those that cannot be read.
fn read_folder(folder: &Path) -> (BTreeMap<PathBuf, String>, Vec<Fault>) {
    let (mut texts, mut faults) = (BTreeMap::new(), Vec::new());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "toml")) {
        match std::fs::read_to_string(&file) {
            Ok(text) => drop(texts.insert(file, text)),
            Err(error) => {
                let text = format!("cannot be read: {error}");
                faults.push(Fault { file, line: 1, text });
            }
        }
    }
    (texts, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_their_line_and_the_view_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let views = Views::new(folder.path().to_owned());
        let write = |text: &str| std::fs::write(folder.path().join("maps.toml"), text).expect("writable");
        let reload = || -> Vec<(usize, String)> {
            let faults = views.reload(&Mappings::new());
            faults.into_iter().map(|fault| (fault.line, fault.text)).collect()
        };
        write("query = \"+title:maps -draft\"\nsets = [\"x:a\"]\n");
        assert_eq!(reload(), []);
        let before = views.all();
        assert_eq!(before["maps"].query.as_deref(), Some("+title:maps -draft"));
        write("\nrepositories = [\"nowhere\"]\nquery = \"colour:green\"\nother = 1\n");
        let faults = reload();
        let expected = ["no mirrored repository", "has the field colour", "other"];
        for (line, expected) in (2..).zip(expected) {
            assert!(faults.iter().any(|(at, text)| *at == line && text.contains(expected)), "{faults:?}");
        }
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert_eq!(views.all(), before);
        assert_eq!(reload(), [], "reported once");
        std::fs::remove_file(folder.path().join("maps.toml")).expect("it is there");
        assert_eq!(reload(), []);
        assert!(views.all().is_empty());
    }
}
