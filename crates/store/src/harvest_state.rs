//! What the mirror remembers of its harvests: small typed records beside the mirrored records.
//!
//! Each value has a revision. A store replaces a value only if the caller has read its latest revision, so two
//! writers never overwrite each other. Times are seconds since 1970.

use crate::Collisions;
use crate::duplicates::DuplicateProgress;
use oaimend_oai::UnixSecs;
use oaimend_rules::{HarvestMark, KnownGaps};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The sets that this harvest has completed, if it harvests single sets. The empty one is the whole
    /// repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets_done: Vec<String>,
    /// The start of this harvest, or between harvests of the last one; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<HarvestStart>,
    /// The state that this harvest reaches, once its first set is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<CompleteHarvest>,
    /// The state that the last complete harvest reached; `None` before the first one.
    #[serde(default)]
    pub last_complete: Option<CompleteHarvest>,
    /// The sets that were in the last complete harvest. The empty one is the whole repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets_covered: Vec<String>,
    /// Items that complete harvests could not store. Earlier versions only counted them; see [`Self::gaps`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// The items that harvests could not store, and that are not in the mirror since.
    #[serde(default, with = "stored_gaps", skip_serializing_if = "KnownGaps::is_empty")]
    pub gaps: KnownGaps,
    /// The last comparison of all identifiers with those of the source; `None` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// What this harvest, or between harvests the last one, knows of identifiers that are listed twice; `None` before the
    /// first one. Earlier versions did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<DuplicateProgress>,
}

/// The result of a comparison of all identifiers with those of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// The time of the comparison, by the own clock.
    pub at_secs: UnixSecs,
    /// The vanished records that wait for a confirmation.
    pub held: u64,
    /// The vanished records of which the source did not say whether they exist.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unconfirmed: u64,
}

impl HarvestProgress {
    /// The number of items that are missing in the mirror, or may be deleted at the source.
    pub fn missing_items(&self) -> u64 {
        let unconfirmed = self.sweep.map_or(0, |sweep| sweep.unconfirmed);
        self.missing.saturating_add(self.gaps.count()).saturating_add(unconfirmed)
    }

    /// The state that the copy shows, for lists in place of the source: a harvest from it on would repeat all known gaps.
    /// `None` before the first complete harvest, and while that one has gaps.
    pub fn state(&self) -> Option<HarvestMark> {
        self.gaps.state(self.last_complete?.mark())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The start of a harvest, which can be interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarvestStart {
    /// The state that it continues from; `None` if it requests all records.
    pub state: Option<CompleteHarvest>,
    /// The `from`, which is not after this state.
    pub from_secs: Option<UnixSecs>,
}

/// The state that a complete harvest reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteHarvest {
    /// The `from` of the next harvest, by the clock of the source.
    pub from_secs: UnixSecs,
    /// How far the clock of the source was ahead of the own clock, in seconds.
    pub lead_secs: i64,
}

impl CompleteHarvest {
    /// The same as a mark.
    pub const fn mark(self) -> HarvestMark {
        HarvestMark::restore(self.from_secs, self.lead_secs)
    }
}

impl From<HarvestMark> for CompleteHarvest {
    fn from(mark: HarvestMark) -> Self {
        Self { from_secs: mark.from_secs(), lead_secs: mark.lead_secs() }
    }
}

/// A list whose harvest has begun and has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenList {
    /// The set that was requested; empty: the whole repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub set: String,
    /// The window that was requested.
    pub window: TimeSpan,
    /// The token that requests the next page; `None` if the first page is next.
    pub next_token: Option<String>,
    /// The number of records that the list has delivered.
    pub cursor: u64,
    /// The state that the harvest reaches when it is complete.
    pub reaches: CompleteHarvest,
}

/// A time span. Both bounds are included; `None` is an open bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSpan {
    /// The first second.
    pub from_secs: Option<UnixSecs>,
    /// The last second.
    pub until_secs: Option<UnixSecs>,
}

/// What the mirror remembers of a repository, for all its formats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepositoryState {
    /// The number of times that the state was stored. 0: never.
    pub revision: u64,
    /// Whether the source honours `from` and `until`; `None` if unknown.
    #[serde(default)]
    pub honours_windows: Option<bool>,
    /// The longest window that the source answered completely, in seconds; `None` if every window was.
    #[serde(default)]
    pub window_secs_max: Option<u64>,
    /// The spans of the lists with datestamps of the source, in order of time.
    #[serde(default)]
    pub source_spans: Vec<ListSpan>,
    /// The spans of the lists with stamps, in order of time.
    #[serde(default)]
    pub stamp_spans: Vec<ListSpan>,
    /// The last harvest; `None` before the end of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_harvest: Option<HarvestNote>,
    /// The begin of the last complete harvest, by the own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_secs: Option<UnixSecs>,
    /// What the schedule has learned from the harvests.
    #[serde(default)]
    pub schedule: ScheduleState,
    /// What the view of all repositories consists of. Only its own state has it, from its first response on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateState>,
    /// The collections of records that are made of stored ones, by the names that their view gives them. Only the state of
    /// the view of all repositories has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub derived: BTreeMap<String, DerivedCollection>,
}

/// A collection of records that are made of stored ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedCollection {
    /// What the records are made of, and by which version of which function.
    pub version: String,
    /// The stamp of the last change of the version; `None`: there was none.
    pub since_secs: Option<UnixSecs>,
}

/// What the view of all repositories consists of, apart from the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregateState {
    /// The rule for records with the same identifier.
    pub collisions: Collisions,
    /// The number of repositories that were removed from the store.
    pub removals: u64,
    /// The repositories by their ids.
    pub members: BTreeMap<String, MemberState>,
}

/// A repository in the view of all repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// Whether the configuration does not mirror it any more. Its records are deleted in the view.
    #[serde(default)]
    pub is_withdrawn: bool,
    /// The formats that are mirrored; empty for all formats of the source. Records in other formats are deleted in the
    /// view.
    #[serde(default)]
    pub prefixes: BTreeSet<String>,
    /// The base URL in the provenance of its records.
    #[serde(default)]
    pub provenance_base_url: Option<String>,
    /// The rank of its records.
    #[serde(default)]
    pub priority: u64,
    /// The lowest datestamp of its records, in seconds since 1970. `None`: their stamps are their datestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_secs: Option<UnixSecs>,
}

/// What the schedule has learned from the harvests of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScheduleState {
    /// The rate of updates of the whole repository (λ), in updates per second; `None` before the first observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates_per_sec: Option<f64>,
    /// The records of the source in all formats by its own count, deleted ones included; `None` if the last complete
    /// harvest did not see such a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_elements: Option<u64>,
    /// The failed harvests since the last complete one.
    #[serde(default)]
    pub failures: u32,
    /// The known records that these failed harvests have changed or deleted.
    #[serde(default)]
    pub changed: u64,
    /// The unknown records that they have added.
    #[serde(default)]
    pub added: u64,
}

/// The number of records of a page, by the effect of its commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Records that were new, or changed, or came back.
    pub stored: u64,
    /// Those of `stored` and `deleted` that were unknown before.
    pub added: u64,
    /// Records that were live before, or unknown, and are deleted now. They are not in `stored`.
    pub deleted: u64,
    /// Records with a new datestamp and the same content. They keep their stamp.
    pub touched: u64,
    /// Records that were stored already.
    pub unchanged: u64,
    /// setSpecs of records that are deeper or longer than the limits, or too many. Their highest levels are stored.
    pub surplus_sets: u64,
    /// The revision of the stored progress.
    pub revision: u64,
}

impl Committed {
    /// Adds the numbers of another commit. The revision stays.
    pub const fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.added += other.added;
        self.deleted += other.deleted;
        self.touched += other.touched;
        self.unchanged += other.unchanged;
        self.surplus_sets += other.surplus_sets;
    }
}

/// The end of a harvest of all formats, for operators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarvestNote {
    /// Its begin, by the own clock.
    pub began_secs: UnixSecs,
    /// Its end, by the own clock.
    pub ended_secs: UnixSecs,
    /// Records that were new, or changed, or came back.
    pub stored: u64,
    /// Records that became deleted.
    pub deleted: u64,
    /// setSpecs of records that were left out, because they are deeper or longer than the limits, or too many.
    #[serde(default)]
    pub surplus_sets: u64,
    /// Records whose identifier came before in a list, with another content.
    #[serde(default)]
    pub duplicates: u64,
    /// Records whose identifier came before in a list, with the same content.
    #[serde(default)]
    pub repetitions: u64,
    /// Why it is not complete; empty if it is. With the format, where one failed.
    #[serde(default)]
    pub errors: Vec<String>,
}

/// The time between the state that a list showed and the end of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSpan {
    /// All changes before this time were in the list.
    pub state_secs: UnixSecs,
    /// The last time that a harvester can derive from the list.
    pub until_secs: UnixSecs,
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
    /// Whether the headers of all records name all their sets, so that a set that none names is empty. A source is believed
    /// only if its headers name sets at all; a local repository writes the headers itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub headers_are_whole: bool,
    /// The results of requests to the source for the members of its sets, by format.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set_members: BTreeMap<String, SetMembers>,
}

/// The results of requests to a source for the members of its sets in one format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMembers {
    /// Whether the stored records name the sets that the source listed them in, in addition to those in their headers.
    #[serde(default)]
    pub is_harvested: bool,
    /// The sets all of whose members are known, with the state of the mirror when the source listed them.
    #[serde(default)]
    pub known: BTreeMap<String, CompleteHarvest>,
    /// Whether a header without any set was harvested.
    #[serde(default)]
    pub has_records_without_sets: bool,
    /// The sets that the source lists, that no stored record names, and for which it was not asked yet.
    #[serde(default, rename = "unasked", skip_serializing_if = "BTreeSet::is_empty")]
    pub unrequested: BTreeSet<String>,
    /// The sets with members that the stored records do not name.
    #[serde(default)]
    pub unknown: BTreeSet<String>,
    /// The sets that stored records name because the source listed them there once, and that are not listed any more.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub outdated: BTreeSet<String>,
    /// The next sequence of the collection after the last requests. If it is the same, no record has changed since.
    #[serde(default)]
    pub next_sequence: u64,
    /// The time of the last requests for all sets, by the own clock.
    #[serde(default, rename = "asked_at_secs")]
    pub requested_at_secs: UnixSecs,
}

/// One format of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFormat {
    /// The metadataPrefix.
    pub prefix: String,
    /// The URL of the schema.
    pub schema: String,
    /// The namespace of the metadata.
    pub namespace: String,
}

/// Maximum number of sets of a repository, with the parents of sets.
pub const SETS_MAX: usize = 200_000;

/// One set of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSet {
    /// The setSpec.
    pub set_spec: String,
    /// The setName.
    pub name: String,
}

/// How the known gaps are stored: as a list. Gaps that are only counted are an element without identifier and bytes.
mod stored_gaps {
    use crate::harvest_state::{CompleteHarvest, is_zero};
    use oaimend_rules::{Gap, GapsBeyond, KnownGaps, MissingItem};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default)]
    struct StoredGap {
        #[serde(skip_serializing_if = "Option::is_none")]
        identifier: Option<String>,
        /// The hash of the bytes of an item without identifier.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        before: Option<CompleteHarvest>,
        #[serde(skip_serializing_if = "Option::is_none")]
        listed: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fetched: Option<u64>,
        harvests: u32,
        fetches: u32,
        is_listed_now: bool,
        has_bytes_now: bool,
        has_changed_now: bool,
        #[serde(skip_serializing_if = "is_zero")]
        count: u64,
        #[serde(skip_serializing_if = "is_zero")]
        count_now: u64,
    }

    pub(crate) fn serialize<S: Serializer>(gaps: &KnownGaps, to: S) -> Result<S::Ok, S::Error> {
        let beyond = gaps.beyond.iter().map(|beyond| StoredGap {
            before: beyond.before.map(CompleteHarvest::from),
            count: beyond.count,
            count_now: beyond.count_now,
            ..StoredGap::default()
        });
        to.collect_seq(gaps.gaps.iter().map(|(item, gap)| StoredGap::new(item, *gap)).chain(beyond))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<KnownGaps, D::Error> {
        let mut gaps = KnownGaps::default();
        for stored in Vec::<StoredGap>::deserialize(from)? {
            let before = stored.before.map(CompleteHarvest::mark);
            match (&stored.identifier, stored.bytes) {
                (Some(identifier), _) => {
                    gaps.gaps.insert(MissingItem::Named(identifier.clone()), stored.to_gap());
                }
                (None, Some(bytes)) => {
                    gaps.gaps.insert(MissingItem::Unnamed(bytes), stored.to_gap());
                }
                (None, None) => {
                    let StoredGap { count, count_now, .. } = stored;
                    gaps.beyond = Some(GapsBeyond { before, count, count_now });
                }
            }
        }
        Ok(gaps)
    }

    impl StoredGap {
        fn new(item: &MissingItem, gap: Gap) -> Self {
            let Gap {
                before,
                listed,
                fetched,
                harvests,
                fetches,
                is_listed_now,
                has_bytes_now,
                has_changed_now,
            } = gap;
            let (identifier, bytes) = match item {
                MissingItem::Named(identifier) => (Some(identifier.clone()), None),
                MissingItem::Unnamed(bytes) => (None, Some(*bytes)),
            };
            let before = before.map(CompleteHarvest::from);
            Self {
                identifier,
                bytes,
                before,
                listed,
                fetched,
                harvests,
                fetches,
                is_listed_now,
                has_bytes_now,
                has_changed_now,
                ..Self::default()
            }
        }

        fn to_gap(&self) -> Gap {
            let Self {
                listed,
                fetched,
                harvests,
                fetches,
                is_listed_now,
                has_bytes_now,
                has_changed_now,
                ..
            } = *self;
            let before = self.before.map(CompleteHarvest::mark);
            Gap { before, listed, fetched, harvests, fetches, is_listed_now, has_bytes_now, has_changed_now }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_rules::{MissingItem, Sighting};

    #[test]
    fn known_gaps_are_stored_and_read_again() {
        let mut progress = HarvestProgress::default();
        let before = Some(HarvestMark::restore(UnixSecs(1_000), -3));
        progress.gaps.note(MissingItem::Named("a\"<".to_owned()), Sighting::Listed(None), None);
        progress.gaps.note(MissingItem::Named("b".to_owned()), Sighting::Fetched(u64::MAX), before);
        progress.gaps.note(MissingItem::Unnamed(7), Sighting::Listed(Some(7)), before);
        progress.gaps.note_beyond(5, before);
        progress.gaps.note_fetch("b");
        for _ in 0..2 {
            let json = serde_json::to_vec(&progress).expect("JSON");
            assert_eq!(serde_json::from_slice::<HarvestProgress>(&json).expect("the same"), progress);
            progress.gaps.end_harvest(Some(UnixSecs(0)));
        }
    }

    #[test]
    fn progress_of_earlier_versions_is_read() {
        let json =
            r#"{"revision":4,"last_complete":{"from_secs":9,"lead_secs":1},"missing":3,"missing_open":2}"#;
        let progress: HarvestProgress = serde_json::from_str(json).expect("an earlier format");
        assert_eq!(
            (progress.missing_items(), progress.state()),
            (3, Some(HarvestMark::restore(UnixSecs(9), 1)))
        );
        let json = serde_json::to_string(&HarvestProgress::default()).expect("JSON");
        assert!(!json.contains("gaps"), "{json}");
    }
}
