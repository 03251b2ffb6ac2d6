//! The settings of the mirror, as plain values: the program reads them from its configuration.

use oaimend_oai::named_enum;
use oaimend_rules::schedule::{FreshnessTarget, IntervalBounds};
use oaimend_store::{Collisions, Duplicates};
use std::time::Duration;

/// What holds for all mirrored repositories: the `[mirror]` table of `oaimend.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorPolicy {
    /// The share of records that should be up to date.
    pub freshness: FreshnessTarget,
    /// The shortest and the longest interval that the schedule chooses.
    pub intervals: IntervalBounds,
    /// Harvests running at the same time.
    pub harvests_max: usize,
    /// Whether all mirrored repositories are served as one, at `/_all`.
    pub aggregate: bool,
    /// Its `repositoryName`; `None`: a name with the public URL.
    pub aggregate_name: Option<String>,
    /// Its `adminEmail`s; empty: those of the mirrored repositories.
    pub aggregate_emails: Vec<String>,
    /// Which records the view of all repositories shows if several repositories have the same identifier.
    pub collisions: Collisions,
    /// Whether resumptionTokens of the mirror have the attribute `totalElements`.
    pub total_elements: bool,
    /// The free space that dumps leave on the disk, in bytes; on a smaller disk a tenth of it.
    pub dump_reserve_bytes: u64,
}

impl Default for MirrorPolicy {
    fn default() -> Self {
        Self {
            freshness: FreshnessTarget::new(0.95).expect("a share from 0.5 to 1"),
            intervals: IntervalBounds::new(INTERVAL_MIN_SECS as f64, INTERVAL_MAX_SECS as f64)
                .expect("the bounds are in order"),
            harvests_max: 4,
            aggregate: true,
            aggregate_name: None,
            aggregate_emails: Vec::new(),
            collisions: Collisions::default(),
            total_elements: false,
            dump_reserve_bytes: DUMP_RESERVE_BYTES,
        }
    }
}

/// The default of [`MirrorPolicy::dump_reserve_bytes`]. It is more than the mirror itself leaves, because its harvests must go
/// on when dumps cannot be written any more.
const DUMP_RESERVE_BYTES: u64 = 1 << 30;

/// The default bounds of the intervals: an hour and a week.
pub const INTERVAL_MIN_SECS: u64 = 3_600;
/// The upper one.
pub const INTERVAL_MAX_SECS: u64 = 604_800;

named_enum! {
    /// Where the mirror takes the members of sets from.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum SetMembership {
        /// From the headers of records.
        #[default]
        Headers = "headers",
        /// From the lists of the sets too: each harvest requests them.
        Harvest = "harvest",
    }
}

/// How a repository is mirrored.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorSettings {
    /// The formats; empty: every format that the source lists.
    pub prefixes: Vec<String>,
    /// The sets; empty: the whole repository.
    pub sets: Vec<String>,
    /// Where the members of sets are taken from.
    pub set_membership: SetMembership,
    /// Which records are stored if a list contains an identifier with different contents.
    pub duplicates: Duplicates,
    /// The time between the starts of two harvests; `None`: the schedule decides.
    pub interval: Option<Duration>,
    /// The pause between two requests of one harvest.
    pub request_gap: Duration,
    /// The importance of the freshness of this repository for the schedule.
    pub weight: f64,
    /// The rank among repositories with the same identifiers. A higher number is preferred.
    pub priority: u64,
}

impl Default for MirrorSettings {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            sets: Vec::new(),
            set_membership: SetMembership::default(),
            duplicates: Duplicates::default(),
            interval: None,
            request_gap: Duration::ZERO,
            weight: 1.0,
            priority: 0,
        }
    }
}
