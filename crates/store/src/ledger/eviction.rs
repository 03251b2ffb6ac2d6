//! Which lists and states a ledger evicts: abandoned ones, and the oldest ones when a repository has too many.

use super::lists::{HarvestStates, KEPT_SECS};
use oaimend_oai::UnixSecs;
use std::collections::HashMap;

/// Maximum number of first tokens of a repository whose states are kept. With more of them, a list may be believed to
/// be newer than an old harvest of it.
const STATES_MAX: u64 = 20_000;
/// How many states are removed at once when a repository has more. States of the same second go together or stay.
const STATES_EVICTED_TOGETHER: u64 = 2_500;
/// Maximum number of lists of a repository. More of them can begin between two transactions.
pub const LISTS_MAX: u64 = 1_000;
/// How many lists are removed at once when a repository has more.
pub const LISTS_EVICTED_TOGETHER: u64 = 125;
/// How often abandoned lists are looked for, in seconds.
pub const EVICTION_INTERVAL_SECS: i64 = 3600;

/// Numbers of lists and states of a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Lists.
    pub lists: u64,
    /// First tokens that have states.
    pub states: u64,
}

/// For each repository: the room that the last eviction left. An eviction reads every list of a repository, so that it
/// runs only when the room is used up or [`EVICTION_INTERVAL_SECS`] have passed.
#[derive(Debug, Default)]
pub struct Evictions(HashMap<String, Room>);

/// The number of rows that may be added before the next eviction.
#[derive(Clone, Copy, Debug)]
struct Room {
    left: RowCounts,
    evicted_at_secs: UnixSecs,
}

impl Evictions {
    /// The room for lists and the room for states after `new` ones are added. `None`: an eviction of them is due first.
    pub fn left(&self, repository: &str, new: RowCounts, now_secs: UnixSecs) -> (Option<u64>, Option<u64>) {
        let Some(Room { left, .. }) = self.current(repository, now_secs) else { return (None, None) };
        (left.lists.checked_sub(new.lists), left.states.checked_sub(new.states))
    }

    /// Notes the room that is left after rows were added.
    pub fn note(&mut self, repository: &str, left: RowCounts, now_secs: UnixSecs) {
        let last = self.current(repository, now_secs);
        let evicted_at_secs = last.map_or(now_secs, |room| room.evicted_at_secs);
        self.0.insert(repository.to_owned(), Room { left, evicted_at_secs });
    }

    fn current(&self, repository: &str, now_secs: UnixSecs) -> Option<Room> {
        let last = self.0.get(repository).copied();
        last.filter(|room| now_secs < room.evicted_at_secs.plus(EVICTION_INTERVAL_SECS))
    }
}

/// The lists of a repository that are evicted before `new` ones start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEviction {
    /// The lists to remove, the oldest first.
    pub lists: Vec<u64>,
    /// How many more lists may start after the new ones: some, because an eviction reads all lists.
    pub left: u64,
}

impl ListEviction {
    /// Chooses among `known` lists. `touched` contains the time of the last request and the number of each list that
    /// is not in use.
    pub fn choose(mut touched: Vec<(UnixSecs, u64)>, known: u64, new: u64, now_secs: UnixSecs) -> Self {
        touched.sort_unstable();
        let surplus = evicted_together(known + new, LISTS_MAX, LISTS_EVICTED_TOGETHER);
        let lists: Vec<u64> = touched
            .iter()
            .enumerate()
            .filter(|(at, (secs, _))| (*at as u64) < surplus || secs.plus(KEPT_SECS) < now_secs)
            .map(|(_, (_, list))| *list)
            .collect();
        let left = LISTS_MAX.saturating_sub(known - lists.len() as u64 + new);
        Self { lists, left }
    }
}

/// The states of a repository that stay when `new` ones are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptStates {
    since_secs: Option<UnixSecs>,
    now_secs: UnixSecs,
}

impl KeptStates {
    /// Chooses among all states of a repository: those that no harvest needs any more go, and the oldest ones if there
    /// are too many.
    pub fn choose(states: impl IntoIterator<Item = HarvestStates>, new: u64, now_secs: UnixSecs) -> Self {
        let needed = states.into_iter().filter(|states| !states.is_over(now_secs));
        let mut since: Vec<UnixSecs> = needed.map(|states| states.since_secs()).collect();
        since.sort_unstable();
        let surplus = evicted_together(since.len() as u64 + new, STATES_MAX, STATES_EVICTED_TOGETHER);
        let first = usize::try_from(surplus).ok().and_then(|surplus| since.get(surplus));
        Self { since_secs: first.copied(), now_secs }
    }

    /// Whether these states stay.
    pub fn contains(&self, states: &HarvestStates) -> bool {
        let is_recent = self.since_secs.is_some_and(|since| states.since_secs() >= since);
        is_recent && !states.is_over(self.now_secs)
    }

    /// How many more states may be added after the new ones.
    pub const fn left(kept: u64, new: u64) -> u64 {
        STATES_MAX.saturating_sub(kept + new)
    }
}

/// How many of `count` rows go, so that at most `count_max` stay and the next eviction is not due at once.
const fn evicted_together(count: u64, count_max: u64, together: u64) -> u64 {
    match count.saturating_sub(count_max) {
        0 => 0,
        more => more - 1 + together,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_lists_go_and_then_the_oldest() {
        let now_secs = UnixSecs(10 * KEPT_SECS);
        let touched = vec![(now_secs, 1), (now_secs.minus(KEPT_SECS + 1), 2), (now_secs.minus(KEPT_SECS), 3)];
        let eviction = ListEviction::choose(touched, 4, 1, now_secs);
        assert_eq!(eviction, ListEviction { lists: vec![2], left: LISTS_MAX - 4 });
        let touched = (0..LISTS_MAX).rev().map(|list| (now_secs.plus(list as i64), list));
        let ListEviction { lists, left } = ListEviction::choose(touched.collect(), LISTS_MAX, 1, now_secs);
        assert_eq!(lists, (0..LISTS_EVICTED_TOGETHER).collect::<Vec<u64>>());
        assert_eq!(left, LISTS_EVICTED_TOGETHER - 1);
    }

    #[test]
    fn the_oldest_states_go_and_those_of_one_second_stay_together() {
        let state = |since: u64| HarvestStates::new(UnixSecs(1_000_000 + since as i64));
        let all = || (0..STATES_MAX).map(|number| state(number / 3));
        let kept = KeptStates::choose(all(), 0, UnixSecs(1_000_000));
        assert!(kept.contains(&state(0)), "there is room");
        let kept = KeptStates::choose(all(), 1, UnixSecs(1_000_000));
        let first = STATES_EVICTED_TOGETHER / 3;
        assert!(!kept.contains(&state(first - 1)) && kept.contains(&state(first)));
        let old = HarvestStates::new(UnixSecs(0));
        let later = KeptStates::choose([old, state(0)], 1, UnixSecs(1_000_000 * 10));
        assert!(!later.contains(&old) && !later.contains(&state(0)), "no harvest takes that long");
    }

    #[test]
    fn an_eviction_is_due_when_its_room_or_its_time_is_used_up() {
        let (mut evictions, one) = (Evictions::default(), RowCounts { lists: 1, states: 1 });
        assert_eq!(evictions.left("x", one, UnixSecs(100)), (None, None));
        evictions.note("x", RowCounts { lists: 1, states: 0 }, UnixSecs(100));
        assert_eq!(evictions.left("x", one, UnixSecs(200)), (Some(0), None));
        assert_eq!(evictions.left("y", one, UnixSecs(200)), (None, None));
        evictions.note("x", RowCounts { lists: 5, states: 5 }, UnixSecs(200));
        assert_eq!(evictions.left("x", one, UnixSecs(99 + EVICTION_INTERVAL_SECS)), (Some(4), Some(4)));
        assert_eq!(
            evictions.left("x", one, UnixSecs(100 + EVICTION_INTERVAL_SECS)),
            (None, None),
            "since the first"
        );
    }
}
