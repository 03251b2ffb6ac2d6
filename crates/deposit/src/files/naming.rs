//! The identifiers and formats of the records in a file.

use crate::dublin_core::{DUBLIN_CORE, DUBLIN_CORE_NAMESPACE};
use crate::error::DepositError;
use crate::settings::FormatSettings;
use oaimend_crosswalks::BUILT_IN;
use std::collections::BTreeMap;
use url::Url;

/// The start of the identifiers that the repository with this base URL makes: `oai:`, its domain, and its id.
pub fn identifier_start(base_url: &str) -> String {
    let url = Url::parse(base_url).ok();
    let domain = url.as_ref().and_then(Url::domain).filter(|domain| domain.contains('.'));
    let id = base_url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    format!("oai:{}:{id}/", domain.unwrap_or("localhost.localdomain"))
}

/// What the place of a file says of its records.
#[derive(Clone, Copy, Debug)]
pub struct FileNaming<'a> {
    /// The start of identifiers that the files themselves do not have, such as `oai:group.example:theses/`.
    pub identifier_start: &'a str,
    /// The name of the file: its path below the folder without the ending.
    pub name: &'a str,
    /// The metadataPrefix of XML; `None`: that of its namespace.
    pub prefix: Option<&'a str>,
    /// The formats of the repository that oaimend does not know by itself, by their metadataPrefixes; `None`: those are unknown.
    pub formats: Option<&'a BTreeMap<String, FormatSettings>>,
    /// The sets of records whose file does not name any.
    pub set_specs: &'a [String],
}

impl FileNaming<'_> {
    /// The identifier of a file with one record.
    pub(super) fn identifier_of_file(&self) -> String {
        self.identifier_of(self.name)
    }

    /// The identifier of the record with this key. Characters that are not legal in it become `%XX`.
    pub(super) fn identifier_of(&self, key: &str) -> String {
        let mut identifier = self.identifier_start.to_owned();
        for byte in key.bytes() {
            // OAI identifier format: uric characters.
            if byte.is_ascii_alphanumeric() || b"-_.!~*'();/?:@&=+$,".contains(&byte) {
                identifier.push(char::from(byte));
            } else {
                identifier.push_str(&format!("%{byte:02X}"));
            }
        }
        identifier
    }

    /// The metadataPrefix of metadata with this namespace.
    pub(super) fn prefix_of(&self, namespace: &str) -> Result<String, DepositError> {
        if let Some(prefix) = self.prefix {
            return Ok(prefix.to_owned());
        }
        let mut formats = self.formats.into_iter().flatten();
        if let Some((prefix, _)) = formats.find(|(_, format)| format.namespace == namespace) {
            return Ok(prefix.clone());
        }
        if namespace == DUBLIN_CORE_NAMESPACE {
            return Ok(DUBLIN_CORE.to_owned());
        }
        let known = BUILT_IN.iter().find(|row| row.namespace == namespace);
        known.map(|row| row.prefix.to_owned()).ok_or_else(|| {
            DepositError::Unfit(format!(
                "the namespace {namespace} belongs to no format that oaimend knows; name its metadataPrefix by --prefix, or for \
                 a folder by [formats.PREFIX] in the mapping"
            ))
        })
    }
}
