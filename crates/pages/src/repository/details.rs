//! A repository as its page shows it.

use super::check_result::CheckResult;
use super::summary::RepositorySummary;
use super::timeline::Timeline;
use oaimend_store::{FrequentRepair, SourceFailure};

/// A repository as its page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryDetails {
    /// What the overview shows too.
    pub summary: RepositorySummary,
    /// What the source says of itself, as far as it is known.
    pub identification: Identification,
    /// The formats; `None` if they are not known yet.
    pub formats: Option<Vec<FormatDetails>>,
    /// The sets, or the first of them; `None` if they are not known yet.
    pub sets: Option<Vec<SetDetails>>,
    /// The sets that are not in `sets`.
    pub left_out_sets: usize,
    /// The mirror; `None` if the repository is not mirrored.
    pub mirror: Option<MirrorDetails>,
    /// The most frequent repairs of the last days, the most frequent first.
    pub repairs: Vec<FrequentRepair>,
    /// The last failures of the source, the newest first. Operators see all of it, others the time and the reason.
    pub failures: Vec<SourceFailure>,
    /// The result of the last check; `None` if there is none for the current source.
    pub check: Option<CheckResult>,
}

/// What a source says of itself. A field that is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identification {
    /// `repositoryName`.
    pub name: Option<String>,
    /// `adminEmail`.
    pub admin_emails: Vec<String>,
    /// `earliestDatestamp`.
    pub earliest_datestamp: Option<String>,
    /// `deletedRecord`: `no`, `transient` or `persistent`.
    pub deleted_record: Option<String>,
    /// `granularity`.
    pub granularity: Option<String>,
    /// The version of OAI-PMH that the source speaks.
    pub version: Option<String>,
}

/// A format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatDetails {
    /// The metadataPrefix.
    pub prefix: String,
    /// The namespace of the metadata.
    pub namespace: String,
    /// The records of the mirror that are not deleted, and the deleted ones; `None` if the format is not mirrored.
    pub records: Option<(u64, u64)>,
}

/// A set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetDetails {
    /// The setSpec.
    pub set_spec: String,
    /// The setName.
    pub name: String,
}

/// The mirror of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorDetails {
    /// The time of the next harvest.
    pub next_harvest_at: Option<String>,
    /// The end of the last harvest.
    pub last_harvest_at: Option<String>,
    /// The records that it has stored and deleted.
    pub last_changes: (u64, u64),
    /// Items that harvests could not store: in quarantine, or too long.
    pub missing: u64,
    /// The windows of datestamps that are complete; `None` before the first harvest.
    pub timeline: Option<Timeline>,
    /// Whether the repository has a URL of its own that the mirror answers.
    pub has_own_url: bool,
}

/// What only operators of oaimend may know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorDetails {
    /// The base URL of the source, without the values of its query; `None`: there is no source.
    pub source_base_url: Option<String>,
    /// The seconds until the source gets requests again; `None` if it gets them.
    pub circuit_open_secs: Option<u64>,
    /// The mapping with all its values, without secrets.
    pub configuration: String,
}
