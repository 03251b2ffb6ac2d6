//! The views: the files `views/<name>.toml`.
//!
//! A repository that has a mapping but is not mirrored is a warning, because a change of its mapping must not prevent the
//! next start. One without a mapping is a fault.

use super::crosswalks::Crosswalks;
use super::identify::{mail_address, read_name};
use super::keys::{self, Keys, declare, list, string, unique_list};
use super::mirror::printable;
use super::named_files::{Mappings, NamedFile, NamedFiles};
use oaimend_crosswalks::CrosswalkChoices;
use oaimend_search::DUBLIN_CORE;
use oaimend_search::query::{QueryLanguage, parse};

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

/// All views, by name.
pub type Views = NamedFiles<ViewFile>;

impl NamedFile for ViewFile {
    fn named(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    #[expect(private_interfaces, reason = "only this crate reads files")]
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

    /// The repositories that are not mirrored. Their records are deleted in the view, or never were there.
    fn warnings(&self, mappings: &Mappings) -> Vec<String> {
        let is_unmirrored = |id: &&String| mappings.get(*id).is_none_or(|mapping| mapping.mirror.is_none());
        let warning = |id: &String| {
            format!("the repository \"{id}\" is not mirrored; the view has none of its records")
        };
        self.repositories.iter().filter(is_unmirrored).map(warning).collect()
    }
}

impl ViewFile {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mapping;
    use oaimend_upstream::settings::Limits;
    use std::sync::Arc;

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
