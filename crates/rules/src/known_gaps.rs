//! The items that harvests know to be missing, and the state that the copy shows meanwhile.

use super::harvest_mark::HarvestMark;
use oaimend_oai::UnixSecs;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Maximum number of missing items of one format that are known one by one. Beyond it, the state of the copy stays.
pub const GAPS_MAX: usize = 2_000;
/// Maximum length of the identifier of a known gap, in bytes. An item with a longer one cannot be requested alone, so
/// it counts as an item without identifier.
pub const GAP_IDENTIFIER_BYTES_MAX: usize = 1_024;
/// The harvests that must return the same unreadable bytes before an item is unrepairable.
pub const UNREPAIRABLE_HARVESTS: u32 = 3;
/// Maximum number of unrepairable items that one harvest requests again: those that were requested least often.
pub const UNREPAIRABLE_FETCHES_MAX: usize = 100;

/// A missing item, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingItem {
    /// The record with this identifier.
    Named(String),
    /// An item that cannot be requested alone, with the hash of its bytes.
    Unnamed(u64),
}

/// How a harvest saw a missing item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// In a list, with the hash of its unreadable bytes; `None` without bytes of the item, such as after a failed
    /// request.
    Listed(Option<u64>),
    /// In the response to a request for this record alone.
    Fetched(u64),
}

/// The known gaps of one format: items that a list contained, and that are not in the copy.
///
/// The state S of the copy stops at a gap, because a list that claims a later state would lose the item for harvesters.
/// An item whose bytes were the same in [`UNREPAIRABLE_HARVESTS`] harvests is unrepairable: it still counts as missing,
/// but S moves on without it. Failed requests never make an item unrepairable.
///
/// ```
/// use oaimend_oai::UnixSecs;
/// use oaimend_rules::{HarvestMark, KnownGaps, MissingItem, Sighting};
///
/// let (before, reached) = (HarvestMark::restore(UnixSecs(1_000), 0), HarvestMark::restore(UnixSecs(5_000), 0));
/// let mut gaps = KnownGaps::default();
/// gaps.note(MissingItem::Named("oai:x:1".to_owned()), Sighting::Listed(None), Some(before));
/// gaps.end_harvest(Some(UnixSecs(1_000)));
/// assert_eq!(gaps.state(reached), Some(before));
/// gaps.resolve("oai:x:1");
/// assert_eq!(gaps.state(reached), Some(reached));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownGaps {
    /// The gaps that are known one by one.
    pub gaps: BTreeMap<MissingItem, Gap>,
    /// The items for which there was no room.
    pub beyond: Option<GapsBeyond>,
}

/// The known facts of one gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The state that the harvest with the gap continued from; `None` if it requested all records.
    pub before: Option<HarvestMark>,
    /// The hash of the bytes in the last list with the item.
    pub listed: Option<u64>,
    /// The hash of the bytes in the last response for the record alone.
    pub fetched: Option<u64>,
    /// The harvests in a row that returned these bytes. Harvests without any bytes do not count.
    pub harvests: u32,
    /// The requests for the record alone.
    pub fetches: u32,
    /// Whether the current harvest has listed the item.
    pub is_listed_now: bool,
    /// Whether the current harvest has received bytes of the item.
    pub has_bytes_now: bool,
    /// Whether these bytes differ from those of earlier harvests.
    pub has_changed_now: bool,
}

/// Gaps that are only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapsBeyond {
    /// The earliest state that a harvest with such a gap continued from; `None` if it requested all records.
    pub before: Option<HarvestMark>,
    /// Their number in the harvests so far.
    pub count: u64,
    /// Those that the current harvest has met.
    pub count_now: u64,
}

impl Gap {
    fn is_unrepairable(&self) -> bool {
        self.harvests >= UNREPAIRABLE_HARVESTS
    }

    fn note(&mut self, sighting: Sighting, before: Option<HarvestMark>) {
        let (known, hash) = match sighting {
            Sighting::Listed(hash) => {
                self.is_listed_now = true;
                (&mut self.listed, hash)
            }
            Sighting::Fetched(hash) => (&mut self.fetched, Some(hash)),
        };
        let is_same = hash.is_some() && *known == hash;
        self.has_changed_now |= hash.is_some() && known.is_some() && !is_same;
        self.has_bytes_now |= hash.is_some();
        *known = hash.or(*known);
        if self.is_unrepairable() && !is_same {
            // The source may have another version, which is readable soon.
            (self.harvests, self.before) = (0, before);
        } else if !self.is_unrepairable() {
            self.before = earlier(self.before, before);
        }
    }

    fn end_harvest(&mut self) {
        if self.has_changed_now {
            self.harvests = 1;
        } else if self.has_bytes_now {
            self.harvests = self.harvests.saturating_add(1);
        }
        (self.is_listed_now, self.has_bytes_now, self.has_changed_now) = (false, false, false);
    }

    /// Whether only a list can show the bytes of the item.
    fn needs_list(&self) -> bool {
        !self.is_unrepairable() && self.listed.is_some() && self.fetched.is_none()
    }
}

impl KnownGaps {
    /// Whether no item is missing.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The number of missing items, unrepairable ones included.
    pub fn count(&self) -> u64 {
        let beyond = self.beyond.map_or(0, |beyond| beyond.count.max(beyond.count_now));
        (self.gaps.len() as u64).saturating_add(beyond)
    }

    /// The number of missing items that are unrepairable.
    pub fn unrepairable(&self) -> u64 {
        self.gaps.values().filter(|gap| gap.is_unrepairable()).count() as u64
    }

    /// Whether the record with this identifier is known to be missing.
    pub fn contains(&self, identifier: &str) -> bool {
        !self.gaps.is_empty() && self.gaps.contains_key(&named(identifier))
    }

    /// Notes an item that the current harvest could not store. `before` is the state that this harvest continues from;
    /// `None` if it requests all records.
    pub fn note(&mut self, item: MissingItem, sighting: Sighting, before: Option<HarvestMark>) {
        let has_room = self.gaps.len() < GAPS_MAX;
        let gap = match self.gaps.entry(item) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(new) if has_room => Some(new.insert(Gap { before, ..Gap::default() })),
            Entry::Vacant(_) => None,
        };
        match gap {
            Some(gap) => gap.note(sighting, before),
            None => self.note_beyond(1, before),
        }
    }

    /// Notes items that are not known one by one.
    pub fn note_beyond(&mut self, count: u64, before: Option<HarvestMark>) {
        if count == 0 {
            return;
        }
        let beyond = self.beyond.get_or_insert(GapsBeyond { before, ..GapsBeyond::default() });
        beyond.before = earlier(beyond.before, before);
        beyond.count_now = beyond.count_now.saturating_add(count);
    }

    /// Notes a request for a record alone.
    pub fn note_fetch(&mut self, identifier: &str) {
        if let Some(gap) = self.gaps.get_mut(&named(identifier)) {
            gap.fetches = gap.fetches.saturating_add(1);
        }
    }

    /// Notes that a record is in the copy.
    pub fn resolve(&mut self, identifier: &str) {
        if !self.gaps.is_empty() {
            self.gaps.remove(&named(identifier));
        }
    }

    /// Notes that the source does not know a record. Returns whether the gap is closed: it stays if the current harvest
    /// has listed the record, because one of both responses is wrong.
    pub fn withdraw(&mut self, identifier: &str) -> bool {
        let item = named(identifier);
        let is_gone = self.gaps.get(&item).is_some_and(|gap| !gap.is_listed_now);
        if is_gone {
            self.gaps.remove(&item);
        }
        is_gone
    }

    /// The records to request alone, in the order of the number of earlier requests.
    pub fn to_fetch(&self) -> Vec<String> {
        let of_kind = |is_unrepairable: bool| {
            let gaps = self.gaps.iter().filter(move |(_, gap)| gap.is_unrepairable() == is_unrepairable);
            let mut found: Vec<(u32, &str)> =
                gaps.filter_map(|(item, gap)| Some((gap.fetches, item.identifier()?))).collect();
            found.sort_unstable();
            found
        };
        let unrepairable = of_kind(true).into_iter().take(UNREPAIRABLE_FETCHES_MAX);
        let all = of_kind(false).into_iter().chain(unrepairable);
        all.map(|(_, identifier)| identifier.to_owned()).collect()
    }

    /// Ends a complete harvest with this `from`; `None` if it requested all records. Gaps are closed if the source would
    /// have listed them, and has not.
    pub fn end_harvest(&mut self, from_secs: Option<UnixSecs>) {
        let covers = |before: Option<HarvestMark>| match (from_secs, before) {
            (None, _) => true,
            (Some(from_secs), Some(before)) => from_secs <= before.from_secs(),
            (Some(_), None) => false,
        };
        self.gaps.retain(|_, gap| {
            let is_missing = gap.is_listed_now || gap.has_bytes_now || !covers(gap.before);
            gap.end_harvest();
            is_missing
        });
        self.beyond = self.beyond.and_then(|beyond| {
            let before = if covers(beyond.before) { 0 } else { beyond.count };
            let count = before.saturating_add(beyond.count_now);
            (count > 0).then_some(GapsBeyond { count, count_now: 0, ..beyond })
        });
    }

    /// The state S that the copy shows after a harvest has reached a mark; `None` if the first harvest met a gap that is
    /// still open, so that no state is known.
    pub fn state(&self, reached: HarvestMark) -> Option<HarvestMark> {
        let open = self.gaps.values().filter(|gap| !gap.is_unrepairable()).map(|gap| gap.before);
        let befores = open.chain(self.beyond.map(|beyond| beyond.before));
        befores.fold(Some(reached), earlier)
    }

    /// The mark from which the next harvest continues after a harvest has reached a mark; `None` if it requests all
    /// records. It is the state S if only a list can show some of the items.
    pub fn next_harvest(&self, reached: HarvestMark) -> Option<HarvestMark> {
        let has_room = self.gaps.len() < GAPS_MAX;
        let are_listed = self.gaps.values().any(Gap::needs_list) || self.beyond.is_some() && has_room;
        if are_listed { self.state(reached) } else { Some(reached) }
    }
}

impl MissingItem {
    /// The identifier of the record, if it can be requested alone.
    fn identifier(&self) -> Option<&str> {
        match self {
            Self::Named(identifier) => Some(identifier),
            Self::Unnamed(_) => None,
        }
    }
}

fn named(identifier: &str) -> MissingItem {
    MissingItem::Named(identifier.to_owned())
}

/// The earlier of two states; `None` is before all of them.
fn earlier(one: Option<HarvestMark>, other: Option<HarvestMark>) -> Option<HarvestMark> {
    one.zip(other).map(|(one, other)| if other.from_secs() < one.from_secs() { other } else { one })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: HarvestMark = HarvestMark::restore(UnixSecs(1_000), 0);
    const REACHED: HarvestMark = HarvestMark::restore(UnixSecs(5_000), 0);

    #[test]
    fn state_stops_at_a_gap_until_its_record_is_there_or_gone() {
        let mut gaps = KnownGaps::default();
        assert_eq!(gaps.state(REACHED), Some(REACHED));
        for name in ["a", "b"] {
            gaps.note(named(name), Sighting::Listed(None), Some(BEFORE));
        }
        gaps.end_harvest(Some(UnixSecs(1_000)));
        // Many harvests pass, and every request for the records fails.
        for _ in 0..10 {
            assert_eq!((gaps.state(REACHED), gaps.count()), (Some(BEFORE), 2));
            assert_eq!(gaps.next_harvest(REACHED), Some(REACHED), "records with names need no list");
            gaps.end_harvest(Some(UnixSecs(5_000)));
        }
        gaps.resolve("a");
        assert_eq!(gaps.state(REACHED), Some(BEFORE));
        assert!(gaps.withdraw("b"));
        assert_eq!((gaps.state(REACHED), gaps.is_empty()), (Some(REACHED), true));
    }

    #[test]
    fn record_that_is_listed_is_not_gone() {
        let mut gaps = KnownGaps::default();
        gaps.note(named("a"), Sighting::Listed(Some(7)), Some(BEFORE));
        assert!(!gaps.withdraw("a"), "the same harvest has listed it");
        gaps.end_harvest(Some(UnixSecs(1_000)));
        assert!(gaps.withdraw("a"));
    }

    #[test]
    fn same_bytes_of_three_harvests_are_unrepairable_and_other_bytes_are_a_new_gap() {
        let mut gaps = KnownGaps::default();
        for (harvest, expected) in
            [(1, Some(BEFORE)), (2, Some(BEFORE)), (3, Some(REACHED)), (4, Some(REACHED))]
        {
            gaps.note(named("a"), Sighting::Fetched(7), Some(BEFORE));
            gaps.end_harvest(Some(UnixSecs(5_000)));
            assert_eq!(gaps.state(REACHED), expected, "harvest {harvest}");
            assert_eq!((gaps.count(), gaps.unrepairable()), (1, u64::from(harvest >= 3)));
        }
        assert_eq!(gaps.to_fetch(), ["a"], "it is still requested");
        let later = HarvestMark::restore(UnixSecs(4_000), 0);
        gaps.note(named("a"), Sighting::Fetched(8), Some(later));
        assert_eq!(gaps.state(REACHED), Some(later));
        gaps.end_harvest(Some(UnixSecs(5_000)));
        assert_eq!(gaps.state(REACHED), Some(later));
    }

    #[test]
    fn item_without_a_name_is_listed_again_until_it_is_unrepairable_or_not_listed_any_more() {
        let met = || {
            let mut gaps = KnownGaps::default();
            gaps.note(MissingItem::Unnamed(7), Sighting::Listed(Some(7)), Some(BEFORE));
            gaps.end_harvest(Some(UnixSecs(1_000)));
            assert_eq!(gaps.next_harvest(REACHED), Some(BEFORE));
            gaps
        };
        let mut gone = met();
        gone.end_harvest(Some(UnixSecs(5_000)));
        assert_eq!(gone.count(), 1, "this harvest has not listed its time");
        gone.end_harvest(Some(UnixSecs(1_000)));
        assert!(gone.is_empty());
        let mut unrepairable = met();
        for _ in 0..2 {
            unrepairable.note(MissingItem::Unnamed(7), Sighting::Listed(Some(7)), Some(BEFORE));
            unrepairable.end_harvest(Some(UnixSecs(1_000)));
        }
        assert_eq!((unrepairable.unrepairable(), unrepairable.next_harvest(REACHED)), (1, Some(REACHED)));
        unrepairable.end_harvest(Some(UnixSecs(5_000)));
        assert_eq!(unrepairable.count(), 1);
    }

    #[test]
    fn gap_of_the_first_harvest_leaves_no_state() {
        let mut gaps = KnownGaps::default();
        gaps.note(named("a"), Sighting::Listed(Some(7)), None);
        gaps.end_harvest(None);
        assert_eq!((gaps.state(REACHED), gaps.next_harvest(REACHED)), (None, None));
        gaps.note(named("a"), Sighting::Fetched(9), Some(REACHED));
        assert_eq!((gaps.state(REACHED), gaps.next_harvest(REACHED)), (None, Some(REACHED)));
        gaps.resolve("a");
        assert_eq!(gaps.state(REACHED), Some(REACHED));
    }

    #[test]
    fn beyond_the_limit_the_state_stays_until_a_list_shows_less() {
        let mut gaps = KnownGaps::default();
        let list = |gaps: &mut KnownGaps, count: usize| {
            for number in 0..count {
                gaps.note(named(&number.to_string()), Sighting::Fetched(7), Some(BEFORE));
            }
            gaps.end_harvest(Some(UnixSecs(1_000)));
        };
        for _ in 0..5 {
            list(&mut gaps, GAPS_MAX + 3);
            assert_eq!((gaps.count(), gaps.state(REACHED)), (GAPS_MAX as u64 + 3, Some(BEFORE)));
            assert_eq!(gaps.next_harvest(REACHED), Some(REACHED), "there is no room to learn more");
        }
        assert_eq!(gaps.to_fetch().len(), UNREPAIRABLE_FETCHES_MAX);
        gaps.resolve("0");
        assert_eq!(gaps.next_harvest(REACHED), Some(BEFORE));
        list(&mut gaps, 0);
        assert_eq!((gaps.count(), gaps.state(REACHED)), (0, Some(REACHED)));
    }

    #[test]
    fn records_that_were_requested_least_are_requested_first() {
        let mut gaps = KnownGaps::default();
        for name in ["a", "b", "c"] {
            gaps.note(named(name), Sighting::Listed(None), None);
        }
        gaps.note_fetch("a");
        gaps.note_fetch("b");
        gaps.note_fetch("b");
        assert_eq!(gaps.to_fetch(), ["c", "a", "b"]);
    }
}
