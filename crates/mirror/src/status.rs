//! What the mirror contains of a repository, for operators: the admin listener and `oaimend mirror status`.

use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_store::{HarvestNote, HarvestProgress, MirrorError, MirrorStore, Prefix, RepositoryId, TimeSpan};
use serde::{Deserialize, Serialize};

/// What the mirror contains of a repository. Times are `YYYY-MM-DDThh:mm:ssZ`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepositoryStatus {
    /// The id of the repository.
    pub id: String,
    /// The formats, in the order of their prefixes.
    pub formats: Vec<FormatStatus>,
    /// How the last harvest ended; `None` before the end of the first one.
    pub last_harvest: Option<HarvestReport>,
    /// The begin of the last harvest that was complete.
    pub last_success_at: Option<String>,
    /// Its learned updates per second in all formats (λ); `None` before the first complete harvest.
    pub updates_per_sec: Option<f64>,
    /// The records of the source in all formats by its own count, deleted ones included; `None` if it names none.
    #[serde(default)]
    pub total_elements: Option<u64>,
}

/// What the mirror contains of one format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatStatus {
    /// The metadataPrefix.
    pub prefix: String,
    /// The number of records that are not deleted.
    pub records: u64,
    /// The number of deleted records.
    pub deleted: u64,
    /// The number of records that were lost to damage, and are fetched again.
    pub damaged: u64,
    /// The number of items that are missing: in quarantine, too long, vanished without a proof, or damaged with an
    /// accepted loss.
    pub missing: u64,
    /// The missing items whose bytes stay unreadable. The others are fetched again with each harvest.
    #[serde(default)]
    pub unrepairable: u64,
    /// The records of the last lists, or of those that are being read, whose identifier came before with another content.
    #[serde(default)]
    pub duplicates: u64,
    /// The number of vanished records that wait for a confirmation.
    pub held_deletions: u64,
    /// The bytes of the records on disk, replaced ones included, without indexes.
    pub disk_bytes: u64,
    /// All changes of the source before this time, by its clock, are in the mirror, except for unrepairable items.
    pub complete_until: Option<String>,
    /// The same time by the own clock, in seconds since 1970.
    pub complete_until_secs: Option<UnixSecs>,
    /// Whether a harvest runs, or was interrupted and continues with the next one.
    pub harvest_open: bool,
    /// The windows of this harvest that are complete; between harvests all times up to `complete_until`.
    pub coverage: Vec<CoveredWindow>,
    /// The time of the last comparison of all identifiers with those of the source.
    pub swept_at: Option<String>,
}

/// A window of datestamps of the source; `None` is an open bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredWindow {
    /// The first second.
    pub from: Option<String>,
    /// The last second.
    pub until: Option<String>,
}

/// How a harvest ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarvestReport {
    /// Its begin.
    pub began_at: String,
    /// Its end.
    pub ended_at: String,
    /// Records that were new, or changed, or came back.
    pub stored: u64,
    /// Records that became deleted.
    pub deleted: u64,
    /// setSpecs of records that were left out, because they are deeper or longer than the limits, or too many.
    pub surplus_sets: u64,
    /// Records whose identifier came before in a list, with another content.
    #[serde(default)]
    pub duplicates: u64,
    /// Records whose identifier came before in a list, with the same content.
    #[serde(default)]
    pub repetitions: u64,
    /// Why it is not complete; empty if it is.
    pub errors: Vec<String>,
}

/// Reads the status of a repository. A repository that was never harvested has no formats.
///
/// # Errors
///
/// The store cannot be read.
pub async fn repository_status(store: &dyn MirrorStore, id: &str) -> Result<RepositoryStatus, MirrorError> {
    let mut formats = Vec::new();
    for size in store.collections(RepositoryId(id)).await? {
        let progress = store.progress(RepositoryId(id), Prefix(&size.prefix)).await?;
        let reached = progress.state();
        formats.push(FormatStatus {
            records: size.records,
            deleted: size.tombstones,
            damaged: size.damaged,
            missing: progress.missing_items() + size.lost,
            unrepairable: progress.gaps.unrepairable(),
            duplicates: progress.duplicates.unwrap_or_default().counts.duplicates,
            held_deletions: progress.sweep.map_or(0, |sweep| sweep.held),
            disk_bytes: size.disk_bytes,
            complete_until: reached.map(|reached| to_datestamp(reached.from_secs())),
            complete_until_secs: reached.map(|reached| reached.from_secs().minus(reached.lead_secs())),
            harvest_open: progress.open_list.is_some() || !progress.sets_done.is_empty(),
            coverage: coverage(&progress),
            swept_at: progress.sweep.map(|sweep| to_datestamp(sweep.at_secs)),
            prefix: size.prefix,
        });
    }
    let state = store.repository_state(RepositoryId(id)).await?;
    Ok(RepositoryStatus {
        id: id.to_owned(),
        formats,
        last_harvest: state.last_harvest.map(HarvestReport::from),
        last_success_at: state.last_success_secs.map(to_datestamp),
        updates_per_sec: state.schedule.updates_per_sec,
        total_elements: state.schedule.total_elements,
    })
}

impl RepositoryStatus {
    /// The time since the state of the source that all formats have reached, in seconds. `None` if a format was
    /// never harvested completely.
    pub fn lag_secs(&self, now_secs: UnixSecs) -> Option<i64> {
        let oldest = self.formats.iter().map(|format| format.complete_until_secs).min()?;
        oldest.map(|oldest| now_secs.since(oldest).max(0))
    }
}

impl From<HarvestNote> for HarvestReport {
    fn from(note: HarvestNote) -> Self {
        let HarvestNote {
            began_secs,
            ended_secs,
            stored,
            deleted,
            surplus_sets,
            duplicates,
            repetitions,
            errors,
        } = note;
        let (began_at, ended_at) = (to_datestamp(began_secs), to_datestamp(ended_secs));
        Self { began_at, ended_at, stored, deleted, surplus_sets, duplicates, repetitions, errors }
    }
}

fn coverage(progress: &HarvestProgress) -> Vec<CoveredWindow> {
    let window = |span: &TimeSpan| CoveredWindow {
        from: span.from_secs.map(to_datestamp),
        until: span.until_secs.map(to_datestamp),
    };
    match (&progress.open_list, progress.state()) {
        (None, Some(reached)) => {
            vec![CoveredWindow { from: None, until: Some(to_datestamp(reached.from_secs().minus(1))) }]
        }
        _ => progress.complete_windows.iter().map(window).collect(),
    }
}

fn to_datestamp(secs: UnixSecs) -> String {
    from_secs(secs, Granularity::Second)
}
