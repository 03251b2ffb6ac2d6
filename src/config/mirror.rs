//! The keys of the mirror: the `[mirror]` table of `oaimend.toml`; `serve` and the `mirror` table of a mapping.

use super::identify::{mail_address, read_name};
use super::keys::{
    Decimals, Flag, Keys, Text, declare, list, millis, named, seconds, string, unique_list, whole,
};
use oaimend_mirror::settings::{MirrorPolicy, MirrorSettings, SetMembership};
use oaimend_oai::named_enum;
use oaimend_rules::schedule::{FreshnessTarget, IntervalBounds};
use oaimend_store::Duplicates;

named_enum! {
    /// The part of the program that answers the requests for a repository.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ServeFrom {
        /// The source only.
        #[default]
        Live = "live",
        /// The source; the mirror if the source fails.
        LiveThenMirror = "live-then-mirror",
        /// The mirror only.
        Mirror = "mirror",
    }
}

/// The shortest interval that can be configured.
const INTERVAL_SECS_MIN: u64 = 60;
/// The longest one.
const YEAR_SECS: u64 = 31_536_000;

/// The keys of the `[mirror]` table of `oaimend.toml`.
pub(super) fn declare_policy(policy: &mut MirrorPolicy, keys: &mut Keys<'_, '_>) {
    let mut share = policy.freshness.share();
    declare! { keys:
        /// The share of records that should be up to date. The schedule finds the intervals for it.
        freshness: Decimals::FromToLessThan(0.5, 1.0) => share,
    }
    policy.freshness = FreshnessTarget::new(share).unwrap_or(policy.freshness);
    declare_intervals(&mut policy.intervals, keys);
    declare! { keys:
        /// Maximum number of harvests that run at the same time. The others wait.
        harvests_max: whole(1..=1000) => policy.harvests_max,
        /// Whether `/_all` serves all mirrored repositories as one.
        aggregate: Flag => policy.aggregate,
        /// `repositoryName` of `/_all`. Without it the name is `oaimend at PUBLIC_URL`.
        aggregate_name: string("string", read_name) => policy.aggregate_name,
        /// `adminEmail` of `/_all`. Without them it is `admin_email`, or the addresses of the mirrored
        /// repositories.
        aggregate_emails: list("mail addresses", mail_address()) => policy.aggregate_emails,
        /// Which records `/_all` shows if several repositories have the same identifier.
        collisions: named() => policy.collisions,
        /// Whether resumptionTokens of the mirror have the attribute `totalElements`.
        total_elements: Flag => policy.total_elements,
        /// The free space that dumps leave on the disk of the data folder, in bytes, so that harvests can be stored. On a
        /// disk of which this is more than a tenth, they leave a tenth.
        dump_reserve_bytes: whole(0..=1 << 50) => policy.dump_reserve_bytes,
    }
}

fn declare_intervals(intervals: &mut IntervalBounds, keys: &mut Keys<'_, '_>) {
    let (mut min_secs, mut max_secs) = (intervals.min_secs() as u64, intervals.max_secs() as u64);
    declare! { keys:
        /// The shortest interval between the starts of two harvests of a repository.
        interval_min_secs: whole(INTERVAL_SECS_MIN..=YEAR_SECS) => min_secs,
    }
    // A schema cannot compare two keys.
    let least = if keys.reading().is_some() { min_secs } else { INTERVAL_SECS_MIN };
    declare! { keys:
        /// The longest interval. It is not below `interval_min_secs`.
        interval_max_secs: whole(least..=YEAR_SECS) => max_secs,
    }
    *intervals = IntervalBounds::new(min_secs as f64, max_secs.max(min_secs) as f64).unwrap_or(*intervals);
}

/// The keys of the `mirror` table of a mapping.
pub(super) fn declare_settings(settings: &mut MirrorSettings, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// The mirrored formats. Without them it is every format that the source lists.
        prefixes: unique_list("metadataPrefixes", printable("metadataPrefix", "is not a metadataPrefix")) => settings.prefixes,
        /// The mirrored sets. Without them it is the whole repository.
        sets: unique_list("setSpecs", printable("setSpec", "is not a setSpec")) => settings.sets,
        /// Where the mirror learns which records are in a set: from the headers of the records, or also from the
        /// lists of all sets, which each harvest then requests.
        set_membership: named() => settings.set_membership,
        /// Which records the mirror stores if a list contains an identifier with different contents: the first one, the
        /// one with the latest datestamp, or all of them, with `#2`, `#3` and so on after the identifier. With `"first"`
        /// and `"suffix"`, each harvest lists all records.
        duplicates: named() => settings.duplicates,
        /// The time between the starts of two harvests. Without it the schedule decides.
        interval_secs: seconds(INTERVAL_SECS_MIN..=YEAR_SECS) => settings.interval,
        /// The pause between two requests of one harvest.
        request_gap_millis: millis(0..=3_600_000) => settings.request_gap,
        /// How much an outdated record of this repository matters, relative to other repositories. With 4, the
        /// repository is harvested twice as often.
        weight: Decimals::AboveUpTo(0.0, WEIGHT_MAX) => settings.weight,
        /// The rank of this repository for `mirror.collisions`. The highest one is preferred.
        priority: whole(0..=1000) => settings.priority,
    }
    let lists_sets = settings.set_membership == SetMembership::Harvest;
    if let Some(table) = keys.reading()
        && lists_sets
        && settings.duplicates == Duplicates::Suffix
    {
        table.report_missing(
            "mirror.duplicates = \"suffix\" excludes mirror.set_membership = \"harvest\": a list of a set does not show \
             which of several records with one identifier it contains"
                .to_owned(),
        );
    }
}

/// The highest weight of a repository.
const WEIGHT_MAX: f64 = 1000.0;

/// A text of visible ASCII characters, such as a setSpec.
pub(super) fn printable(title: &'static str, problem: &'static str) -> Text<'static, String> {
    string(title, move |text| {
        let is_legal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_legal.then(|| text.to_owned()).ok_or_else(|| problem.to_owned())
    })
}
