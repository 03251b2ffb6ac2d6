//! The simulated view: its members follow the mirror in small steps, and its definition changes.

use super::super::source::{RECORDS, Record};
use super::Broken;
use super::mirror::{Mirror, REPOSITORIES, Stored};
use oaimend_oai::UnixSecs;
use oaimend_rules::{CollectionState, Followed, Member, PendingCommit, Redefinition, Switch};
use oaimend_test_support::random::Random;

/// The sequence of members without a record.
const WITHOUT_RECORD: u64 = 1 << 62;
/// The words that a record can contain. Its version decides which one is absent.
const WORDS: u32 = 3;

/// What a view contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    /// The priorities of its repositories.
    pub(super) sources: [Option<u64>; REPOSITORIES],
    /// Whether it is limited to the set.
    is_of_set: bool,
    /// The word that it searches.
    word: u32,
}

impl Definition {
    pub(super) fn random(random: &mut Random) -> Self {
        let sources = [[Some(0), Some(1)], [Some(1), Some(0)], [Some(0), None], [None, Some(0)]];
        Self {
            sources: sources[random.below(sources.len())],
            is_of_set: random.chance(40),
            word: random.next() as u32 % WORDS,
        }
    }

    /// The predicate over records.
    pub(super) fn contains(self, record: Record) -> bool {
        let has_word = record.version % WORDS != self.word;
        !record.is_deleted && has_word && (record.is_in_set || !self.is_of_set)
    }
}

/// A member, and the sequence of its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) member: Member,
    pub(super) sequence: u64,
}

type Members = [[Option<Known>; RECORDS]; REPOSITORIES];

/// The members that one definition chooses.
#[derive(Clone, Debug)]
pub(super) struct Generation {
    pub(super) number: u64,
    pub(super) definition: Definition,
    pub(super) members: Members,
    /// The members before the last step.
    members_before: Members,
    followed: [Option<CollectionState>; REPOSITORIES],
    judged_max: usize,
}

impl Generation {
    /// Judges the next records that the mirror has committed.
    pub(super) fn follow(&mut self, mirror: &Mirror, broken: Option<Broken>) -> Followed {
        self.members_before = self.members;
        for (known, collection) in self.followed.iter().zip(&mirror.collections) {
            let is_replaced = known.is_some_and(|known| known.is_replaced(Some(collection.state)));
            if is_replaced && broken != Some(Broken::ReplacedCollectionsAreFollowed) {
                return Followed::Replaced;
            }
        }
        let (mut left, mut all) = (self.judged_max, Followed::All);
        for (repository, collection) in mirror.collections.iter().enumerate() {
            if self.definition.sources[repository].is_none() {
                continue;
            }
            let first = self.followed[repository].map_or(0, |known| known.next_sequence);
            let stored = collection.stored.iter().enumerate();
            let mut unknown: Vec<(usize, Stored)> =
                stored.filter_map(|(id, stored)| Some((id, (*stored)?))).collect();
            unknown.retain(|(_, stored)| stored.sequence >= first);
            unknown.sort_by_key(|(_, stored)| stored.sequence);
            let mut state = collection.state;
            state.next_sequence = state.next_sequence.max(first);
            for (id, stored) in unknown {
                if left == 0 {
                    state.next_sequence = stored.sequence;
                    let is_of_one = broken == Some(Broken::CompleteInOneRepository);
                    all = if is_of_one { Followed::All } else { all }.before(stored.stamp_secs);
                    break;
                }
                left -= 1;
                self.judge((repository, id), stored, broken);
            }
            self.followed[repository] = Some(state);
        }
        all
    }

    fn judge(&mut self, (repository, id): (usize, usize), stored: Stored, broken: Option<Broken>) {
        let before = self.members[repository][id];
        let is_match = self.definition.contains(stored.record);
        let stamp_secs = match (broken, before) {
            (Some(Broken::DeparturesKeepTheirStamp), Some(before)) if !is_match => before.member.stamp_secs,
            _ => stored.stamp_secs,
        };
        let was_member = before.is_some() && broken != Some(Broken::DeparturesAreForgotten);
        let member = Member::after_commit(stamp_secs, is_match, was_member);
        let known = member.map(|member| Known { member, sequence: stored.sequence });
        self.members[repository][id] = known;
    }
}

/// The state of the view when a request begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    pub(super) generation: u64,
    pub(super) settings: Definition,
    pub(super) since_secs: Option<UnixSecs>,
    /// How far the members were known then.
    pub(super) followed: Followed,
}

#[derive(Debug)]
pub(super) struct View {
    pub(super) broken: Option<Broken>,
    /// The definition as it is configured now.
    pub(super) settings: Definition,
    pub(super) current: Option<Generation>,
    next: Option<Generation>,
    pub(super) since_secs: Option<UnixSecs>,
    /// The commit that puts the next generation into use, and its stamp.
    switching: Option<(Option<PendingCommit>, UnixSecs)>,
    numbers: u64,
    /// The records that one step judges: so few that the view is often behind.
    judged_max: usize,
    pub(super) redefinitions: usize,
    pub(super) taken_over: usize,
}

impl View {
    pub(super) fn new(broken: Option<Broken>, settings: Definition, judged_max: usize) -> Self {
        Self {
            broken,
            settings,
            current: None,
            next: None,
            since_secs: None,
            switching: None,
            numbers: 0,
            judged_max,
            redefinitions: 0,
            taken_over: 0,
        }
    }

    /// Makes a step. Returns whether the view knows all commits in its configured definition.
    pub(super) fn advance(&mut self, mirror: &mut Mirror, our_secs: UnixSecs) -> bool {
        if let Some((pending, stamp_secs)) = self.switching.take() {
            self.switch(Some(stamp_secs));
            if let Some(pending) = pending {
                mirror.clock.finish_commit(pending);
            }
            return false;
        }
        let (broken, settings) = (self.broken, self.settings);
        let mut of_current = Followed::Replaced;
        if let Some(current) = &mut self.current {
            of_current = current.follow(mirror, broken);
        }
        let is_configured = |generation: &Generation| generation.definition == settings;
        let [in_use, being_read] = [&self.current, &self.next].map(|one| one.as_ref().map(is_configured));
        let is_replaced = of_current == Followed::Replaced;
        let redefinition = match broken {
            Some(Broken::ChangesAreTakenBack) if in_use == Some(true) && !is_replaced => Redefinition::None,
            _ => Redefinition::of(in_use, being_read, is_replaced),
        };
        match redefinition {
            Redefinition::None => return of_current == Followed::All,
            Redefinition::Continue => {}
            Redefinition::Begin => self.begin(),
        }
        let Some(next) = &mut self.next else { return false };
        let followed = next.follow(mirror, broken);
        if followed == Followed::Replaced {
            self.begin();
        }
        match Switch::of(followed, self.current.is_some()) {
            Switch::Wait => {}
            Switch::First => self.switch(None),
            Switch::Commit => {
                let pending = mirror.clock.begin_commit(our_secs);
                let stamp_secs = pending.stamp_secs();
                mirror.reserve(stamp_secs.plus(1));
                if broken == Some(Broken::RedefinitionsAreNoCommits) {
                    mirror.clock.finish_commit(pending);
                    self.switching = Some((None, stamp_secs));
                } else {
                    self.switching = Some((Some(pending), stamp_secs));
                }
            }
        }
        false
    }

    /// Begins a generation of the configured definition.
    fn begin(&mut self) {
        self.numbers += 1;
        let members = [[None; RECORDS]; REPOSITORIES];
        self.next = Some(Generation {
            number: self.numbers,
            definition: self.settings,
            members,
            members_before: members,
            followed: [None; REPOSITORIES],
            judged_max: self.judged_max,
        });
    }

    /// Puts the next generation into use.
    fn switch(&mut self, stamp_secs: Option<UnixSecs>) {
        let Some(mut next) = self.next.take() else { return };
        if let Some(before) = self.current.take() {
            self.redefinitions += 1;
            let is_taken_over = self.broken != Some(Broken::OldMembersAreForgotten);
            let old = before.members.iter().flatten();
            for (chosen, old) in next.members.iter_mut().flatten().zip(old) {
                let (Some(old), Some(stamp_secs)) = (old, stamp_secs) else { continue };
                let is_new = chosen.is_none();
                if is_new && !is_taken_over {
                    continue;
                }
                self.taken_over += usize::from(is_new);
                let redefined_secs = match self.broken {
                    Some(Broken::OldMembersKeepTheirStamp) => old.member.stamp_secs,
                    _ => stamp_secs,
                };
                let member = Member::after_redefinition(chosen.map(|chosen| chosen.member), redefined_secs);
                let sequence = chosen.map_or(WITHOUT_RECORD, |chosen| chosen.sequence);
                *chosen = Some(Known { member, sequence });
            }
        }
        next.members_before = next.members;
        self.current = Some(next);
        if self.broken != Some(Broken::RedefinitionsWithoutStamp) {
            self.since_secs = stamp_secs;
        }
    }

    /// The state for a request that begins now; `None` if the members were never known completely.
    pub(super) fn open(&mut self, mirror: &mut Mirror, our_secs: UnixSecs) -> Option<Opened> {
        if self.switching.is_none() {
            self.advance(mirror, our_secs);
        }
        let (since_secs, settings) = (self.since_secs, self.settings);
        let current = self.current.as_mut()?;
        let followed = current.follow(mirror, self.broken);
        Some(Opened { generation: current.number, settings, since_secs, followed })
    }

    /// Stops and starts the program. A redefinition that is not visible is rolled back; its members stay.
    pub(super) fn restart(&mut self) {
        self.switching = None;
        if self.broken == Some(Broken::PlacesWithoutMembers) {
            for generation in [&mut self.current, &mut self.next].into_iter().flatten() {
                generation.members = generation.members_before;
            }
        }
    }

    /// The record of an item that the view contains, if it follows the mirror completely.
    pub(super) fn truth(&self, mirror: &Mirror, id: usize) -> Option<Record> {
        let record = |repository: usize| {
            let priority = self.settings.sources[repository]?;
            let record = mirror.collections[repository].stored[id]?.record;
            self.settings.contains(record).then_some((priority, record))
        };
        let best = (0..REPOSITORIES).filter_map(record).max_by_key(|(priority, _)| *priority);
        best.map(|(_, record)| record)
    }
}
