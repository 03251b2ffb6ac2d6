//! What the mirror remembers of its harvests: small typed records beside the mirrored records.
//!
//! Each value has a revision. A store replaces a value only if the caller has read its latest revision, so two
//! writers never overwrite each other. Times are seconds since 1970.

use serde::{Deserialize, Serialize};

/// The progress of the harvest of one format of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarvestProgress {
    /// The number of times that the progress was stored. 0: never.
    pub revision: u64,
    /// The windows whose lists ended properly, in order of time, without overlaps.
    #[serde(default)]
    pub complete_windows: Vec<TimeSpan>,
    /// The list that is being harvested; `None` between harvests.
    #[serde(default)]
    pub open_list: Option<OpenList>,
    /// The responseDate of the first page of the last complete harvest; `None` before the first one.
    #[serde(default)]
    pub last_complete_secs: Option<i64>,
}

/// A list whose harvest has begun and has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenList {
    /// The window that was requested.
    pub window: TimeSpan,
    /// The token that requests the next page; `None` if the first page is next.
    pub next_token: Option<String>,
    /// The number of records that the list has delivered.
    pub cursor: u64,
    /// The responseDate of the first page of the harvest.
    pub first_response_secs: i64,
}

/// A time span. Both bounds are included; `None` is an open bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSpan {
    /// The first second.
    pub from_secs: Option<i64>,
    /// The last second.
    pub until_secs: Option<i64>,
}

/// What the mirror remembers of a repository, for all its formats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryState {
    /// The number of times that the state was stored. 0: never.
    pub revision: u64,
    /// Whether the source honours `from` and `until`; `None` if unknown.
    #[serde(default)]
    pub honours_windows: Option<bool>,
    /// The longest window that the source answered completely, in seconds; `None` if every window was.
    #[serde(default)]
    pub window_secs_max: Option<u64>,
    /// The clock of the source minus the own clock, in seconds.
    #[serde(default)]
    pub clock_skew_secs: i64,
    /// The times during which the mirror answered in place of the source, in order, without overlaps.
    #[serde(default)]
    pub served_intervals: Vec<ServedInterval>,
}

/// A time during which the mirror answered in place of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedInterval {
    /// The time of the last complete harvest before. Changes of the source after it were not served.
    pub synced_secs: i64,
    /// The last response of the mirror.
    pub end_secs: i64,
}

/// The formats and sets that a source lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    /// The formats, in the order of the source.
    #[serde(default)]
    pub formats: Vec<ListedFormat>,
    /// The sets, in the order of the source.
    #[serde(default)]
    pub sets: Vec<ListedSet>,
}

/// One format of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFormat {
    /// The metadataPrefix.
    pub prefix: String,
    /// The URL of the schema.
    pub schema: String,
    /// The namespace of the metadata.
    pub namespace: String,
}

/// One set of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSet {
    /// The setSpec.
    pub set_spec: String,
    /// The setName.
    pub name: String,
}
