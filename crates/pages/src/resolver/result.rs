//! What the resolver found.

use crate::record::{RecordAddress, encoded_segment};
use oaimend_oai::named_enum;

/// The records that have or name an identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverResult {
    /// The identifier as it was requested.
    pub identifier: String,
    /// What the text is in metadata: the names of kinds, such as `doi`, with the normalised identifiers.
    pub meanings: Vec<(&'static str, String)>,
    /// The records whose OAI identifier it is.
    pub identified: Vec<FoundItem>,
    /// Other records that name it, the best ones first.
    pub named_by: Vec<FoundItem>,
    /// Whether there may be more records that name it.
    pub has_more: bool,
    /// The ids of repositories that may have further records.
    pub incomplete: Vec<String>,
    /// What the configured services know of it, in the order of the configuration.
    pub services: Vec<ServiceResult>,
}

/// An item of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundItem {
    /// The repository id.
    pub repository: String,
    /// The OAI identifier.
    pub identifier: String,
    /// Whether the record has a page.
    pub has_page: bool,
    /// The name of the field that names the requested identifier; `None` for the record that has it.
    pub named_in: Option<&'static str>,
    /// Its formats, in order.
    pub formats: Vec<FoundFormat>,
}

/// A record of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFormat {
    /// The metadataPrefix.
    pub prefix: String,
    /// The datestamp in the mirror.
    pub stamp: String,
    /// The datestamp of the source, as a second.
    pub source_datestamp: String,
    /// Whether the record is deleted.
    pub is_deleted: bool,
}

/// What another service knows of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceResult {
    /// The name of the service.
    pub name: String,
    /// Whether it has the record.
    pub state: ServiceState,
    /// The page of the record there, if it has it.
    pub url: Option<String>,
}

named_enum! {
    /// Whether a service has a record.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ServiceState {
        /// It has the record.
        Found = "found",
        /// It does not have the record.
        NotFound = "not-found",
        /// It did not answer in time, or failed.
        NotReached = "not-reached",
        /// It was not requested, because too many requests to services ran.
        Busy = "busy",
        /// It was not requested, because a crawler reads this, or the identifier is illegal.
        NotRequested = "not-requested",
    }
}

impl ResolverResult {
    /// Whether neither the mirror nor a service knows the identifier.
    pub fn is_unknown(&self) -> bool {
        let is_at_service = self.services.iter().any(|service| service.state == ServiceState::Found);
        self.identified.is_empty() && self.named_by.is_empty() && !is_at_service
    }
}

impl FoundItem {
    /// Whether it has a record that is not deleted.
    pub fn is_live(&self) -> bool {
        self.formats.iter().any(|format| !format.is_deleted)
    }

    /// The page of the record. `base` is the public URL or its path, without a slash at its end.
    pub fn page(&self, base: &str) -> Option<String> {
        self.has_page.then(|| self.address().page(base))
    }

    /// The `GetRecord` request to the mirror for a format.
    pub fn in_mirror(&self, base: &str, prefix: &str) -> String {
        let [repository, identifier, prefix] =
            [&self.repository, &self.identifier, prefix].map(encoded_segment);
        format!("{base}/_mirror/{repository}?verb=GetRecord&identifier={identifier}&metadataPrefix={prefix}")
    }

    /// The `GetRecord` request to the repository for a format.
    pub fn in_repository(&self, base: &str, prefix: &str) -> String {
        RecordAddress { format: Some(prefix), ..self.address() }.get_record(base)
    }

    fn address(&self) -> RecordAddress<'_> {
        RecordAddress { repository: &self.repository, identifier: &self.identifier, format: None }
    }
}

/// The page of a record at a service, by its template with `{identifier}`.
pub fn service_link(template: &str, identifier: &str) -> String {
    template.replace("{identifier}", &encoded_segment(identifier))
}
