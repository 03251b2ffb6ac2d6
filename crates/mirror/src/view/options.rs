//! The limits and the repositories of a view.

use oaimend_oai::UnixSecs;
use oaimend_store::{Collisions, RepositoryId};

/// The limits of the responses of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewOptions {
    /// Maximum number of records of a page, at least 1.
    pub page_records_max: usize,
    /// The bytes of records after which a page ends. The last record may exceed it.
    pub page_bytes_max: usize,
    /// Maximum number of sets of a page of `ListSets`, at least 1.
    pub page_sets_max: usize,
    /// Maximum number of bytes of a response that is held until it is whole, for HTTP/1.0.
    pub spool_bytes_max: usize,
    /// Whether tokens have the attribute `totalElements`: the number of all records in the format. The schema does
    /// not have this attribute. Schedules of other mirrors use it.
    pub total_elements: bool,
    /// Which records lists of several repositories show if they have the same identifier.
    pub collisions: Collisions,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            page_records_max: 100,
            page_bytes_max: 1 << 20,
            page_sets_max: 500,
            spool_bytes_max: 64 << 20,
            total_elements: false,
            collisions: Collisions::default(),
        }
    }
}

/// The limits of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageLimits {
    pub(super) records_max: usize,
    pub(super) bytes_max: usize,
    pub(super) with_bytes: bool,
}

/// A mirrored repository, as the views present it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MirroredSource {
    /// Its name in the store and in the configuration.
    pub id: String,
    /// The formats that are mirrored; empty for all formats that the source lists.
    pub prefixes: Vec<String>,
    /// The sets that are mirrored; empty for the whole repository.
    pub sets: Vec<String>,
    /// The base URL of the source, if records get an `about` with their provenance. The view of all repositories
    /// needs it.
    pub provenance_base_url: Option<String>,
    /// The rank of its records for [`Collisions::Prefer`]. The highest one is shown.
    pub priority: u64,
    /// The lowest datestamp of its records, in seconds since 1970: the last change of what the view shows of it.
    /// `None`: their stamps are their datestamps. The view of all repositories sets it.
    pub since_secs: Option<UnixSecs>,
    /// The number of the definition that chose its records, which two definitions with one time differ in. Views of chosen
    /// records set it.
    pub definition: u64,
    /// Whether its mapping was removed. Its records are deleted in the view. The view of all repositories sets it.
    pub is_withdrawn: bool,
}

impl MirroredSource {
    /// The key of its records in the store.
    pub(crate) fn repository(&self) -> RepositoryId<'_> {
        RepositoryId(&self.id)
    }

    /// Whether its records in a format are deleted in a view, because the configuration does not mirror them any more.
    pub(super) fn is_withdrawn_in(&self, prefix: &str) -> bool {
        let is_mirrored = self.prefixes.is_empty() || self.prefixes.iter().any(|mirrored| mirrored == prefix);
        self.is_withdrawn || !is_mirrored
    }
}

/// What the view of all repositories consists of.
#[derive(Clone, Debug, Default)]
pub struct AggregateSettings {
    /// The limits of its responses, and its rule for records with the same identifier.
    pub options: ViewOptions,
    /// The mirrored repositories.
    pub sources: Vec<MirroredSource>,
    /// Its name in Identify.
    pub repository_name: String,
    /// Its addresses in Identify; empty: those of the repositories.
    pub admin_emails: Vec<String>,
}
