//! What an operator says of a local repository.

use oaimend_store::ListedFormat;
use std::collections::BTreeMap;

/// What an operator says of a local repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalSettings {
    /// The name of the repository in the store and in its URL.
    pub id: String,
    /// `repositoryName` of Identify.
    pub repository_name: String,
    /// `adminEmail` of Identify; empty: an address in the domain of the base URL.
    pub admin_emails: Vec<String>,
    /// The base URL of the repository.
    pub base_url: String,
    /// Whether each item has `oai_dc`, as OAI-PMH 2.0 demands (section 3.4). XOAI leaves it out.
    pub dc_required: bool,
    /// Whether an identifier may be that of a record in another repository.
    pub foreign_identifiers: bool,
    /// The formats by their metadataPrefix. Others are known from their first records.
    pub formats: BTreeMap<String, FormatSettings>,
    /// The names of sets by their setSpecs. The name of another set is its setSpec.
    pub set_names: BTreeMap<String, String>,
}

/// A format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatSettings {
    /// The URL of its schema.
    pub schema: String,
    /// The namespace of its root elements.
    pub namespace: String,
}

impl FormatSettings {
    /// The format with its prefix.
    pub(crate) fn listed_as(&self, prefix: &str) -> ListedFormat {
        let Self { schema, namespace } = self.clone();
        ListedFormat { prefix: prefix.to_owned(), schema, namespace }
    }
}
