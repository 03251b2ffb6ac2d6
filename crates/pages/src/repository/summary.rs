//! A repository as the overview shows it.

use oaimend_store::DayCounts;

/// A repository as the overview shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositorySummary {
    /// Its id.
    pub id: String,
    /// Its name; `None` if it is not known yet.
    pub name: Option<String>,
    /// Its state.
    pub state: RepositoryState,
    /// The time of the first failure of its source after the last success; `None` if it does not fail.
    pub fails_since: Option<String>,
    /// The number of its records in the format with most of them; `None` if it is not mirrored.
    pub records: Option<u64>,
    /// Whether its records have pages.
    pub has_record_pages: bool,
    /// The begin of the last complete harvest; of a repository that is not mirrored the last response of its source.
    pub last_success_at: Option<String>,
    /// The counts of the last days, the oldest first.
    pub days: Vec<DayCounts>,
}

/// The state of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepositoryState {
    /// It is not mirrored: its source answers each request.
    #[default]
    Live,
    /// The mirror has all its records.
    Complete,
    /// A harvest of the mirror runs.
    Harvesting,
    /// The last harvest of the mirror was not complete.
    Incomplete,
    /// The mirror has never harvested it.
    NeverHarvested,
    /// The store of the mirror cannot be read.
    Unreadable,
}

impl RepositorySummary {
    /// The name, or the id.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// The counts of all days together.
    pub fn total(&self) -> DayCounts {
        self.days.iter().fold(DayCounts::default(), |mut total, day| {
            total.add(*day);
            total
        })
    }
}
