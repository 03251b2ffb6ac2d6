//! The simulated mirror of two repositories: commits that take time, with the stamps of one clock.

use super::super::source::{RECORDS, Record};
use oaimend_oai::UnixSecs;
use oaimend_rules::{CollectionState, ListTimes, PendingCommit, StampClock};
use oaimend_test_support::random::Random;

pub(super) const REPOSITORIES: usize = 2;
/// The largest number of records in a commit.
const CHANGES_MAX: usize = 5;

/// A record of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) record: Record,
    pub(super) stamp_secs: UnixSecs,
    pub(super) sequence: u64,
}

/// The records of a repository.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) state: CollectionState,
    pub(super) stored: [Option<Stored>; RECORDS],
}

/// A commit that is not visible yet.
#[derive(Debug)]
struct Commit {
    pending: PendingCommit,
    changes: Vec<(usize, Record)>,
}

#[derive(Debug)]
pub(super) struct Mirror {
    pub(super) clock: StampClock,
    /// The stored reservation.
    reserved_secs: Option<UnixSecs>,
    pub(super) collections: [Collection; REPOSITORIES],
    commits: [Option<Commit>; REPOSITORIES],
    numbers: u64,
    versions: u32,
}

impl Mirror {
    pub(super) fn new() -> Self {
        let empty = |number| Collection {
            state: CollectionState { number, next_sequence: 0 },
            stored: [None; RECORDS],
        };
        Self {
            clock: StampClock::resume(None, None),
            reserved_secs: None,
            collections: [empty(0), empty(1)],
            commits: [None, None],
            numbers: 2,
            versions: 0,
        }
    }

    pub(super) fn has_commit(&self) -> bool {
        self.commits.iter().any(Option::is_some)
    }

    /// Begins a commit to a repository, or makes the one that was begun visible.
    pub(super) fn step(&mut self, random: &mut Random, our_secs: UnixSecs) {
        let repository = random.below(REPOSITORIES);
        if self.commits[repository].is_some() {
            return self.finish(repository);
        }
        let changes = (0..=random.below(CHANGES_MAX)).map(|_| self.change(random, repository)).collect();
        self.commits[repository] = Some(Commit { pending: self.clock.begin_commit(our_secs), changes });
    }

    /// Creates, changes, deletes or restores a record, or copies it from the other repository. Its version decides which
    /// words it contains.
    fn change(&mut self, random: &mut Random, repository: usize) -> (usize, Record) {
        self.versions += 1;
        let id = random.below(RECORDS);
        let [before, of_other] = [repository, 1 - repository].map(|one| self.collections[one].stored[id]);
        let is_deleted = random.chance(25);
        let kept = if is_deleted {
            before
        } else if of_other.is_some() && random.chance(30) {
            of_other
        } else {
            None
        };
        let is_in_set = kept.map_or(random.chance(50), |kept| kept.record.is_in_set);
        (id, Record { version: self.versions, is_deleted, stamp_secs: UnixSecs(0), is_in_set })
    }

    /// Makes all commits visible.
    pub(super) fn finish_all(&mut self) {
        (0..REPOSITORIES).for_each(|repository| self.finish(repository));
    }

    fn finish(&mut self, repository: usize) {
        let Some(Commit { pending, changes }) = self.commits[repository].take() else { return };
        let Collection { state, stored } = &mut self.collections[repository];
        for (id, record) in changes {
            let sequence = state.next_sequence;
            stored[id] = Some(Stored { record, stamp_secs: pending.stamp_secs(), sequence });
            state.next_sequence += 1;
        }
        self.clock.finish_commit(pending);
    }

    /// Removes a repository, which is harvested again by later commits.
    pub(super) fn forget(&mut self, repository: usize) {
        self.finish(repository);
        let state = CollectionState { number: self.numbers, next_sequence: 0 };
        self.numbers += 1;
        self.collections[repository] = Collection { state, stored: [None; RECORDS] };
    }

    /// Stops and starts the program: commits are rolled back.
    pub(super) fn restart(&mut self) {
        self.commits = [None, None];
        let stored = self.collections.iter().flat_map(|collection| collection.stored.iter().flatten());
        let highest_secs = stored.map(|stored| stored.stamp_secs).max();
        self.clock = StampClock::resume(highest_secs, self.reserved_secs);
    }

    /// Stores that all stamps after a restart are at this one or later.
    pub(super) fn reserve(&mut self, until_secs: UnixSecs) {
        self.reserved_secs = self.reserved_secs.max(Some(until_secs));
    }

    pub(super) fn begin_list(&mut self, our_secs: UnixSecs) -> ListTimes {
        if let Some(until_secs) = self.clock.reservation_due(our_secs) {
            self.reserve(until_secs);
            self.clock.reserve(until_secs);
        }
        self.clock.begin_list(our_secs).expect("a reservation")
    }
}
