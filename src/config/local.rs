//! The keys of a local repository, which has no source.

use super::identify::read_name;
use super::keys::{Keys, Table, declare, named, path, string};
use super::static_file::NOT_REQUESTED;
use super::{base_url::read_base_url, keys::Flag};
use oaimend_deposit::FormatSettings;
use oaimend_oai::{named_enum, set_spec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

named_enum! {
    /// Where the records of a mapping come from.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum MappingKind {
        /// From a source: a server, a static repository file or a tape.
        #[default]
        Source = "source",
        /// From those who write them here.
        Local = "local",
    }
}

/// The choices for a local repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalChoices {
    /// Whether each item has `oai_dc`.
    pub dc_required: bool,
    /// Whether an identifier may be that of a record in another repository.
    pub foreign_identifiers: bool,
    /// Formats that its first record need not describe, by their metadataPrefix.
    pub formats: BTreeMap<String, FormatSettings>,
    /// The names of sets, by their setSpecs.
    pub set_names: BTreeMap<String, String>,
    /// The folder whose files are its records; `None`: writers send them.
    pub folder: Option<PathBuf>,
    /// The folder with the schemas by which metadata must be valid; `None`: it need not be.
    pub schema_dir: Option<PathBuf>,
}

impl Default for LocalChoices {
    fn default() -> Self {
        Self {
            dc_required: true,
            foreign_identifiers: false,
            formats: BTreeMap::new(),
            set_names: BTreeMap::new(),
            folder: None,
            schema_dir: None,
        }
    }
}

/// Keys of a mapping that concern a source.
const OF_SOURCE: &[&str] = &[
    "base_url",
    "static_file",
    "tape_file",
    "static_check_secs",
    "serve",
    "mirror",
    "quirks",
    "user",
    "password_file",
    "bearer_token_file",
    "proxy",
    "headers",
    "tls",
    "report_to",
    "live_pages",
    "stale_lists",
    "connect_timeout_secs",
    "read_timeout_secs",
    "user_agent",
    "from",
    "allow_private",
    "redirect_hosts",
    "on_unrepairable",
    "provenance",
    "repairs",
];
/// Keys of a mapping that concern a local repository.
pub(super) const OF_LOCAL: &[&str] =
    &["dc_required", "foreign_identifiers", "folder", "schema_dir", "formats", "sets"];

/// Whether a key of a mapping concerns a source.
pub(super) fn is_of_source(key: &str) -> bool {
    OF_SOURCE.contains(&key) || NOT_REQUESTED.contains(&key)
}

impl LocalChoices {
    /// The keys of a mapping; `None`: it has a source.
    /// Relative paths start at `mappings`, the folder of the mapping.
    pub(super) fn declare(before: Option<Self>, keys: &mut Keys<'_, '_>, mappings: &Path) -> Option<Self> {
        let mut kind = if before.is_some() { MappingKind::Local } else { MappingKind::Source };
        declare! { keys:
            /// Where the records come from: from a source, or from those who write them here, which is a local repository.
            kind: named() => kind,
        }
        if let Some(table) = keys.reading() {
            reject_others(table, kind);
        }
        let mut choices = before.unwrap_or_default();
        declare! { keys:
            /// Whether each item of a local repository has `oai_dc`, as OAI-PMH demands. It is made of the formats that have
            /// a crosswalk, and others are refused without it.
            dc_required: Flag => choices.dc_required,
            /// Whether an identifier of a local repository may be that of a record in another repository.
            foreign_identifiers: Flag => choices.foreign_identifiers,
            /// The folder whose XML, BibTeX and CSV files are the records of a local repository. Nobody else writes then.
            folder: path("path", mappings) => choices.folder,
            /// The folder with XML Schemas by which the metadata of a local repository must be valid, as for
            /// `oaimend check --schema-dir`. It needs the program xmllint. Formats without a schema in it are not checked.
            schema_dir: path("path", mappings) => choices.schema_dir,
        }
        let meaning = "Formats of a local repository, by their metadataPrefix. Others are known from their first records.";
        keys.named_tables("formats", meaning, |keys, prefix| {
            let mut format = FormatSettings::default();
            declare! { keys:
                /// The URL of the schema.
                schema: string("URL", |url| read_base_url(url).map(String::from)) => format.schema,
                /// The namespace of the root elements.
                namespace: string("URI", read_name) => format.namespace,
            }
            keys.require("schema", "a format needs schema and namespace");
            keys.require("namespace", "a format needs schema and namespace");
            if let Some(table) = keys.reading()
                && (prefix.value.contains(':') || set_spec::read(prefix.value.as_bytes()).is_none())
            {
                let problem = "is not a metadataPrefix; expected letters, digits and -_.!~*'()";
                table.report_fault(prefix.span.clone(), format!("{:?} {problem}", prefix.value));
            }
            choices.formats.insert(prefix.value, format);
        });
        choices.declare_sets(keys);
        (kind == MappingKind::Local).then_some(choices)
    }

    fn declare_sets(&mut self, keys: &mut Keys<'_, '_>) {
        let meaning = "Sets of a local repository, by their setSpec.";
        keys.named_tables("sets", meaning, |keys, set_spec| {
            let mut name = String::new();
            declare! { keys:
                /// The name of the set, for people. The name of a set without one is its setSpec.
                name: string("text", read_name) => name,
            }
            keys.require("name", "a set needs a name");
            if let Some(table) = keys.reading()
                && set_spec::read(set_spec.value.as_bytes()).is_none()
            {
                let problem =
                    "is not a setSpec; expected letters, digits and -_.!~*'() with colons between its parts";
                table.report_fault(set_spec.span.clone(), format!("{:?} {problem}", set_spec.value));
            }
            self.set_names.insert(set_spec.value, name);
        });
    }
}

fn reject_others(table: &mut Table<'_, '_>, kind: MappingKind) {
    let (keys, why): (Vec<&'static str>, _) = match kind {
        MappingKind::Local => {
            (OF_SOURCE.iter().chain(NOT_REQUESTED).copied().collect(), "a local repository has no source")
        }
        MappingKind::Source => (OF_LOCAL.to_vec(), "it requires kind = \"local\""),
    };
    for key in keys {
        table.reject_key(key, why);
    }
}
