//! The federations: the files `federations/<name>.toml`, and the tables `[[federations]]` of `oaimend.toml`.

use super::identify::{mail_address, read_name};
use super::keys::{self, Keys, declare, list, named, string, unique_list};
use super::named_files::{Mappings, NamedFile, NamedFiles};
use oaimend_federation::OnFailure;

/// The name of the federation of all repositories, and the first path segment of the others.
pub const FEDERATION_NAME: &str = "_federation";

/// The file or the table of a federation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FederationFile {
    /// Its name: that of the file or in the table, and the last path segment of its URL.
    pub name: String,
    /// The path of its URL, without the first slash.
    pub path: String,
    /// `repositoryName`.
    pub repository_name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
    /// `adminEmail`.
    pub admin_emails: Vec<String>,
    /// The ids of its repositories; empty: all.
    pub repositories: Vec<String>,
    /// What happens when a repository fails.
    pub on_failure: OnFailure,
}

/// All federations, by name.
pub type Federations = NamedFiles<FederationFile>;

impl NamedFile for FederationFile {
    fn named(name: String) -> Self {
        Self { path: format!("{FEDERATION_NAME}/{name}"), name, ..Self::default() }
    }

    fn name(&self) -> &str {
        &self.name
    }

    #[expect(private_interfaces, reason = "only this crate reads files")]
    fn declare(&mut self, keys: &mut Keys<'_, '_>, mappings: Option<&Mappings>) {
        let repository = string("repository id", |id| match mappings {
            Some(mappings) if !mappings.contains_key(id) => {
                Err("is no repository; expected the name of a mapping file".to_owned())
            }
            _ => Ok(id.to_owned()),
        });
        declare! { keys:
            /// `repositoryName` of Identify. Without it, its name.
            repository_name: string("string", read_name) => self.repository_name,
            /// What the federation is about, for Identify.
            description: string("string", read_name) => self.description,
            /// `adminEmail` of Identify. Without them it is those of the repositories.
            admin_emails: list("mail addresses", mail_address()) => self.admin_emails,
            /// The repositories that it consists of, live or mirrored. Without them it is all.
            repositories: unique_list("repository ids", repository) => self.repositories,
            /// What happens to a list when a repository fails: `fail` answers with 503 at its place, `last` delivers the
            /// other repositories first and answers with 503 in place of the end, and with `mirror` its mirror answers.
            on_failure: named() => self.on_failure,
        }
    }

    fn warnings(&self, mappings: &Mappings) -> Vec<String> {
        if self.on_failure != OnFailure::Mirror {
            return Vec::new();
        }
        let is_unmirrored = |id: &&String| mappings.get(*id).is_some_and(|mapping| mapping.mirror.is_none());
        let warning = |id: &String| {
            format!("the repository \"{id}\" is not mirrored, so lists get 503 when it fails (on_failure)")
        };
        self.repositories.iter().filter(is_unmirrored).map(warning).collect()
    }
}

impl FederationFile {
    /// The keys with the default values.
    pub(super) fn describe_defaults() -> keys::Description {
        keys::describe(|keys| Self::default().declare(keys, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Mapping, TablesFile};
    use oaimend_upstream::settings::Limits;
    use std::sync::Arc;

    #[test]
    fn a_federation_is_read_with_its_faults_and_warnings() {
        let folder = tempfile::tempdir().expect("a folder");
        let federations = Federations::new(folder.path().to_owned());
        let write = |text: &str| std::fs::write(folder.path().join("maps.toml"), text).expect("writable");
        let mapping = Mapping::new("x", "https://x.example/oai", &Limits::default()).expect("no faults");
        let mappings = Mappings::from([("x".to_owned(), Arc::new(mapping))]);
        write("repositories = [\"x\"]\non_failure = \"mirror\"\n");
        assert_eq!(federations.reload(&mappings), []);
        let before = federations.all();
        assert_eq!(before["maps"].on_failure, OnFailure::Mirror);
        assert_eq!(federations.warnings(&mappings).len(), 1);
        write("repositories = [\"y\"]\non_failure = \"never\"\n");
        let faults = federations.reload(&mappings);
        assert!(
            faults.iter().any(|fault| fault.line == 1 && fault.text.contains("is no repository")),
            "{faults:?}"
        );
        assert!(faults.iter().any(|fault| fault.line == 2 && fault.text.contains("mirror")), "{faults:?}");
        assert_eq!(federations.all(), before);
    }

    #[test]
    fn tables_define_federations_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let federations = Federations::new(folder.path().to_owned());
        let mapping = Mapping::new("x", "https://x.example/oai", &Limits::default()).expect("no faults");
        let mappings = Mappings::from([("x".to_owned(), Arc::new(mapping))]);
        let read = |text: &str| {
            let (path, text) = ("oaimend.toml".into(), text.to_owned());
            federations.set_tables(Some(Arc::new(TablesFile { path, text, key: "federations" })));
            federations.reload(&mappings)
        };
        let maps = "[cache]\nenabled = 1\n[[federations]]\nname = \"maps\"\nrepositories = [\"x\"]\n";
        assert_eq!(read(&format!("{maps}on_failure = \"mirror\"\n")), []);
        let before = federations.all();
        assert_eq!((before["maps"].path.as_str(), before.len()), ("_federation/maps", 1));
        let warnings = federations.warnings(&mappings);
        assert!(
            matches!(&*warnings, [warning] if warning.line == 3 && warning.file.ends_with("oaimend.toml"))
        );
        for (text, line, problem) in [
            (maps.replace("\"x\"", "\"y\""), 5, "is no repository"),
            (maps.replace("name = \"maps\"", ""), 3, "has no name"),
            (maps.replace("maps", "a/b"), 4, "a/b"),
            (maps.replace("repositories", "members"), 5, "unknown key"),
            (format!("{maps}[[federations]]\nname = \"maps\"\n"), 6, "the table in line 3"),
        ] {
            let faults = read(&text);
            assert!(
                matches!(&*faults, [fault] if fault.line == line && fault.text.contains(problem)),
                "{faults:?}"
            );
            assert_eq!(federations.all(), before, "{problem}");
        }
        std::fs::write(folder.path().join("maps.toml"), "").expect("writable");
        let faults = read(maps);
        assert!(
            matches!(&*faults, [fault] if fault.line == 3 && fault.text.contains("maps.toml")),
            "{faults:?}"
        );
        assert_eq!(federations.all(), before);
        std::fs::remove_file(folder.path().join("maps.toml")).expect("it is there");
        assert_eq!(read(""), []);
        assert!(federations.all().is_empty());
    }
}
