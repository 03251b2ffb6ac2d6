//! The views: the files `views/<name>.toml`, read again while the program runs.
//!
//! Invariant: a file with faults takes no view down. Its view keeps the previous definition.
//!
//! A repository that has a mapping but is not mirrored is a warning, because a change of its mapping must not prevent the
//! next start. One without a mapping is a fault.

use super::Mapping;
use super::crosswalks::Crosswalks;
use super::identify::{mail_address, read_name};
use super::keys::{self, Keys, declare, list, string, unique_list};
use super::mapping::check_id;
use super::mirror::printable;
use oaimend_base::error::Fault;
use oaimend_crosswalks::CrosswalkChoices;
use oaimend_search::DUBLIN_CORE;
use oaimend_search::query::{QueryLanguage, parse};
use std::collections::BTreeMap;
use std::io;
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
    /// The ids of its repositories, mirrored or not; empty: all mirrored ones.
    pub repositories: Vec<String>,
    /// The sets that it is limited to, such as `x` or `x:a`; empty: all.
    pub sets: Vec<String>,
    /// Its formats; empty: all.
    pub formats: Vec<String>,
    /// The formats that are made of its formats, without the defaults.
    pub crosswalks: CrosswalkChoices,
    /// Its query in `odlsearch1`.
    pub query: Option<String>,
}

/// All views, by name. Shared: each request sees one consistent state.
#[derive(Debug, Default)]
pub struct Views {
    folder: Option<PathBuf>,
    current: RwLock<Arc<BTreeMap<String, Arc<ViewFile>>>>,
    /// The files and repositories at the last reload.
    seen: Mutex<Option<Seen>>,
}

type Mappings = BTreeMap<String, Arc<Mapping>>;
/// The text of each file. An error is the text of a fault.
type Texts = BTreeMap<PathBuf, Result<String, String>>;

/// All that faults and warnings depend on.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    texts: Result<Texts, String>,
    /// Whether each repository is mirrored.
    repositories: BTreeMap<String, bool>,
}

impl ViewFile {
    /// The keys of the file.
    fn declare(&mut self, keys: &mut Keys<'_, '_>, mappings: Option<&Mappings>) {
        let repository = string("repository id", |id| match mappings {
            Some(mappings) if !mappings.contains_key(id) => {
                Err("is no repository; expected the name of a mapping file with a [mirror] table".to_owned())
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
            /// The formats that are made of its formats if it lacks them. `"off"` turns one off that `oaimend.toml` turns
            /// on.
            crosswalks: Crosswalks => self.crosswalks,
            /// The query that its records match, such as `"title:maps +language:en -draft"`. Without it, all
            /// records are in the view.
            query: string("query", read_query) => self.query,
        }
    }

    /// The keys with the default values.
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

    /// Reads the folder again if a file in it or the mirrored repositories have changed, logs the warnings, and returns
    /// the faults. Without a folder there is no view.
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

    /// The repositories of views that are not mirrored. Their records are deleted in the views, or never were there.
    pub fn warnings(&self, mappings: &Mappings) -> Vec<Fault> {
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        let is_unmirrored = |id: &&String| mappings.get(*id).is_none_or(|mapping| mapping.mirror.is_none());
        let warnings_of = |view: &Arc<ViewFile>| -> Vec<Fault> {
            let file = folder.join(format!("{}.toml", view.name));
            let warning = |id: &String| {
                let text =
                    format!("the repository \"{id}\" is not mirrored; the view has none of its records");
                Fault { file: file.clone(), line: 1, text }
            };
            view.repositories.iter().filter(is_unmirrored).map(warning).collect()
        };
        self.all().values().flat_map(warnings_of).collect()
    }

    /// Replaces the views by those in the files. A view whose file has faults is unchanged.
    fn read(&self, texts: &Texts, mappings: &Mappings) -> Vec<Fault> {
        let (before, mut all, mut faults) = (self.all(), BTreeMap::new(), Vec::new());
        for (file, text) in texts {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut view = ViewFile { name: name.clone(), ..ViewFile::default() };
            let fault = |text: String| Fault { file: file.clone(), line: 1, text };
            let mut found = match text {
                Ok(text) => keys::read(file, text, |keys| view.declare(keys, Some(mappings))),
                Err(problem) => vec![fault(problem.clone())],
            };
            if let Err(problem) = check_id(&name) {
                found.push(fault(format!("the file name \"{name}\" {problem}")));
            }
            match before.get(&name) {
                Some(known) if !found.is_empty() => drop(all.insert(name, Arc::clone(known))),
                _ if found.is_empty() => drop(all.insert(name, Arc::new(view))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_upstream::settings::Limits;

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
        let expected = ["no repository", "has the field colour", "other"];
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

    #[test]
    fn a_view_follows_the_mappings_of_its_repositories() {
        let folder = tempfile::tempdir().expect("a folder");
        let views = Views::new(folder.path().to_owned());
        std::fs::write(folder.path().join("maps.toml"), "repositories = [\"x\"]\n").expect("writable");
        let mapping = |is_mirrored: bool| {
            let mut mapping =
                Mapping::new("x", "https://x.example/oai", &Limits::default()).expect("no faults");
            mapping.mirror = is_mirrored.then(Default::default);
            Mappings::from([("x".to_owned(), Arc::new(mapping))])
        };
        assert_eq!(views.reload(&Mappings::new()).len(), 1);
        assert!(views.all().is_empty());
        for is_mirrored in [true, false] {
            assert_eq!(views.reload(&mapping(is_mirrored)), []);
            assert_eq!(views.all()["maps"].repositories, ["x"]);
            assert_eq!(views.warnings(&mapping(is_mirrored)).is_empty(), is_mirrored);
        }
        assert_eq!(views.reload(&Mappings::new()).len(), 1);
        assert_eq!(views.all()["maps"].repositories, ["x"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_leaves_its_view_unchanged() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("views");
        std::fs::create_dir(&folder).expect("writable");
        let views = Views::new(folder.clone());
        let file = folder.join("maps.toml");
        std::fs::write(&file, "query = \"maps\"\n").expect("writable");
        assert_eq!(views.reload(&Mappings::new()), []);
        let before = views.all();
        std::fs::write(&file, b"query = \"\xff\"\n").expect("writable");
        let faults = views.reload(&Mappings::new());
        assert!(matches!(faults.as_slice(), [fault] if fault.file == file), "{faults:?}");
        assert_eq!(views.all(), before);
        assert_eq!(views.reload(&Mappings::new()), [], "reported once");
        std::fs::write(&file, "query = \"maps\"\n").expect("writable");
        assert_eq!(views.reload(&Mappings::new()), []);
        std::fs::remove_dir_all(&folder).expect("it is there");
        std::fs::write(&folder, "").expect("writable");
        assert_eq!(views.reload(&Mappings::new()).len(), 1);
        assert_eq!(views.all(), before);
    }
}
