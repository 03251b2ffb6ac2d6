//! The results of maintenance: what `oaimend mirror verify`, `accept-loss`, `compact` and `forget` print, and what the admin listener
//! sends for them, one JSON object in each line.

use crate::harvest::{Comparison, Difference, HarvestError, HarvestSettings, Harvester};
use crate::repository_index::INDEX_NAME;
use crate::view::AggregateRepository;
use oaimend_base::suggestions::suggest_ids;
use oaimend_store::{CollectionSize, MirrorError, MirrorStore, RepositoryId};
use serde::{Deserialize, Serialize};

/// A line of the response of the admin listener to a request for maintenance. The last one is the result, except for a
/// comparison: it has one result for each format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaintenanceLine {
    /// The work has not ended yet.
    Running {
        /// The time since its request, in seconds.
        secs: u64,
    },
    /// All records were checked.
    Verified {
        /// The number of checked records.
        records: u64,
        /// The number of damaged records that this check found.
        damaged: u64,
    },
    /// The loss of damaged records was accepted.
    LossAccepted {
        /// The number of records that are missing since.
        missing: u64,
    },
    /// The space of replaced records was freed.
    Compacted {
        /// The number of freed bytes.
        freed_bytes: u64,
    },
    /// A format was compared with the source.
    Compared(ComparisonReport),
    /// Everything that was stored of the repository was removed.
    Forgotten {
        /// Whether the server harvests it again.
        is_mirrored: bool,
    },
    /// The work failed.
    Failed {
        /// The format that it failed for; `None`: the whole repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
        /// The reason.
        error: String,
    },
}

impl MaintenanceLine {
    /// A comparison with the source that failed, for one format or for the whole repository.
    pub fn not_compared(prefix: Option<&str>, error: &HarvestError) -> Self {
        Self::Failed { prefix: prefix.map(str::to_owned), error: format!("not compared: {error}") }
    }
}

/// The differences between the mirror and the source in one format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonReport {
    /// The metadataPrefix.
    pub prefix: String,
    /// The number of records that the source lists, without deleted ones.
    pub listed: u64,
    /// Records that the source lists and the mirror does not have.
    pub missing: Difference,
    /// Records that the mirror has and the source does not list.
    pub vanished: Difference,
    /// Records with another datestamp.
    pub changed: Difference,
}

impl ComparisonReport {
    /// Maximum number of identifiers that are named for each kind of difference.
    const NAMED_MAX: usize = 20;

    /// The report about a comparison.
    pub fn new(prefix: &str, comparison: Comparison) -> Self {
        let Comparison { listed, mut missing, mut changed, mut vanished, .. } = comparison;
        for difference in [&mut missing, &mut changed, &mut vanished] {
            difference.identifiers.truncate(Self::NAMED_MAX);
        }
        Self { prefix: prefix.to_owned(), listed, missing, vanished, changed }
    }

    /// Whether the mirror has the same records as the source.
    pub fn is_equal(&self) -> bool {
        [&self.missing, &self.vanished, &self.changed].iter().all(|difference| difference.count == 0)
    }
}

/// Compares all stored formats of a repository with its source. Failures of the source are results.
///
/// # Errors
///
/// The store cannot be read.
pub async fn compare_with_source(
    harvester: &Harvester,
    settings: &HarvestSettings,
) -> Result<Vec<MaintenanceLine>, MirrorError> {
    let id = &harvester.id;
    let sizes = harvester.store.collections(RepositoryId(id)).await?;
    if sizes.is_empty() {
        let error = format!("never harvested; run: oaimend mirror sync {id}");
        return Ok(vec![MaintenanceLine::Failed { prefix: None, error }]);
    }
    let mut lines = Vec::new();
    for CollectionSize { prefix, .. } in sizes {
        lines.push(match harvester.compare(settings, &prefix).await {
            Ok(comparison) => MaintenanceLine::Compared(ComparisonReport::new(&prefix, comparison)),
            Err(error) => MaintenanceLine::not_compared(Some(&prefix), &error),
        });
    }
    Ok(lines)
}

/// The names of the stored repositories, in order.
///
/// # Errors
///
/// The store cannot be read.
pub async fn stored_repositories(store: &dyn MirrorStore) -> Result<Vec<String>, MirrorError> {
    let mut stored = store.repositories().await?;
    // The store contains the state of the view of all repositories too, and the index of the served ones.
    stored.retain(|id| ![AggregateRepository::NAME, INDEX_NAME].contains(&id.as_str()));
    Ok(stored)
}

/// The error about a repository that is not stored.
pub fn describe_unstored(id: &str, stored: &[String]) -> String {
    let expected = match stored {
        [] => "it is empty; run: oaimend mirror sync".to_owned(),
        stored => {
            let known: Vec<&str> = stored.iter().map(String::as_str).collect();
            format!("expected {}", suggest_ids(id, &known))
        }
    };
    format!("the mirror stores nothing of \"{}\"; {expected}", id.escape_debug())
}
