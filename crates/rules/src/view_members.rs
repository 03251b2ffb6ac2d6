//! The members of a view: which records it contains, and up to which time its lists are complete.

use super::ListTimes;
use oaimend_oai::UnixSecs;

/// A record that a view contains, or that has left it.
///
/// A view chooses records of the mirror by a definition. It has the datestamps of the mirror: a record that begins to
/// match, or stops, does so by a commit to the mirror, and its member gets the stamp of this commit. A record that has
/// left stays as a deleted one for ever, because a harvester may have its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The stamp of the commit that the member follows from.
    pub stamp_secs: UnixSecs,
    /// Whether the record has left the view: it is deleted, or does not match any more.
    pub has_left: bool,
}

impl Member {
    /// The member after a commit to its record; `None` if the view never contained the record and does not contain it
    /// now. `was_member` includes members that have left.
    pub fn after_commit(stamp_secs: UnixSecs, is_match: bool, was_member: bool) -> Option<Self> {
        (is_match || was_member).then_some(Self { stamp_secs, has_left: !is_match })
    }

    /// The member of a definition that came into use at `redefined_secs`. It has left then if only the definition before
    /// contained it. Its older stamp is gone with the definition: after a removed collection, a restart and a clock that
    /// was set back, it can be later than all times of lists.
    pub fn after_redefinition(chosen: Option<Self>, redefined_secs: UnixSecs) -> Self {
        chosen.unwrap_or(Self { stamp_secs: redefined_secs, has_left: true })
    }
}

/// The datestamp of a member. A redefinition of the view at `redefined_secs` changes all its members.
///
/// ```
/// use oaimend_oai::UnixSecs;
/// use oaimend_rules::member_datestamp;
///
/// assert_eq!(member_datestamp(UnixSecs(100), None), UnixSecs(100));
/// assert_eq!(member_datestamp(UnixSecs(100), Some(UnixSecs(500))), UnixSecs(500));
/// assert_eq!(member_datestamp(UnixSecs(900), Some(UnixSecs(500))), UnixSecs(900));
/// ```
pub fn member_datestamp(stamp_secs: UnixSecs, redefined_secs: Option<UnixSecs>) -> UnixSecs {
    redefined_secs.map_or(stamp_secs, |redefined_secs| redefined_secs.max(stamp_secs))
}

/// A collection of the mirror, or what a follower knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionState {
    /// Its number. A collection that was removed and harvested again has another one.
    pub number: u64,
    /// All changes have lower sequences.
    pub next_sequence: u64,
}

impl CollectionState {
    /// Whether `current` is not the collection that was followed up to this state. It has another number, or fewer
    /// changes: the mirror was restored from a backup. The members of a removed collection are not known any more.
    pub fn is_replaced(self, current: Option<Self>) -> bool {
        current
            .is_none_or(|current| current.number != self.number || current.next_sequence < self.next_sequence)
    }
}

/// The commits that the members of a definition follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// All commits that were visible.
    All,
    /// The commits with stamps up to this one, in seconds since 1970.
    Until(UnixSecs),
    /// A commit can be missing, because a collection was replaced. The members have to be read again.
    Replaced,
}

impl Followed {
    /// The same without the commits of a collection from this stamp on.
    #[must_use]
    pub fn before(self, unknown_secs: UnixSecs) -> Self {
        let until_secs = unknown_secs.minus(1);
        match self {
            Self::All => Self::Until(until_secs),
            Self::Until(secs) => Self::Until(secs.min(until_secs)),
            Self::Replaced => Self::Replaced,
        }
    }

    /// The stamp up to which the members are complete; `None` if no list can begin.
    pub fn complete_until_secs(self) -> Option<UnixSecs> {
        match self {
            Self::All => Some(UnixSecs::MAX),
            Self::Until(secs) => Some(secs),
            Self::Replaced => None,
        }
    }
}

/// What a follower does to make a view follow its configured definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redefinition {
    /// Nothing: the definition in use is the configured one.
    None,
    /// It continues with the definition that is being read.
    Continue,
    /// It reads the members of the configured definition from the first commit on.
    Begin,
}

impl Redefinition {
    /// The decision for the definition in use and the one that is being read, each with whether it is the configured
    /// one. `is_replaced`: the members in use have to be read again.
    ///
    /// A definition that is being read, and is configured no more, has changed the view already: lists do not show the
    /// repositories that it left out. So the definition in use is then read again, and becomes a change.
    pub fn of(in_use: Option<bool>, being_read: Option<bool>, is_replaced: bool) -> Self {
        match (in_use, being_read) {
            (_, Some(true)) => Self::Continue,
            (Some(true), None) if !is_replaced => Self::None,
            _ => Self::Begin,
        }
    }
}

/// How a definition whose members were read comes into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Not yet: commits are unknown.
    Wait,
    /// At once: no harvester has seen a member.
    First,
    /// As a commit, whose stamp is the lowest datestamp of all members. Lists that begin before the commit is visible
    /// end before this stamp.
    Commit,
}

impl Switch {
    /// The decision for members that follow from these commits. `has_current`: another definition is in use.
    pub fn of(followed: Followed, has_current: bool) -> Self {
        match followed {
            Followed::All if has_current => Self::Commit,
            Followed::All => Self::First,
            Followed::Until(_) | Followed::Replaced => Self::Wait,
        }
    }
}

impl ListTimes {
    /// The times of a list over members that are complete up to this stamp. Determine the stamp after the start of the
    /// list: a commit that becomes visible between the two is then in the list, or after its responseDate.
    #[must_use]
    pub fn up_to(self, complete_until_secs: UnixSecs) -> Self {
        Self {
            response_date_secs: self.response_date_secs.min(complete_until_secs),
            until_secs: self.until_secs.min(complete_until_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_leaves_and_is_never_forgotten() {
        let at = UnixSecs(7);
        assert_eq!(Member::after_commit(at, false, false), None);
        let live = Member { stamp_secs: at, has_left: false };
        let left = Member { has_left: true, ..live };
        assert_eq!([false, true].map(|was| Member::after_commit(at, true, was)), [Some(live); 2]);
        assert_eq!(Member::after_commit(at, false, true), Some(left));
        assert_eq!(Member::after_redefinition(None, at), left);
        assert_eq!(Member::after_redefinition(Some(live), UnixSecs(9)), live);
    }

    #[test]
    fn lists_end_before_the_first_unknown_commit() {
        let followed = Followed::All.before(UnixSecs(50)).before(UnixSecs(40)).before(UnixSecs(60));
        assert_eq!(followed.complete_until_secs(), Some(UnixSecs(39)));
        assert_eq!(Followed::Replaced.before(UnixSecs(50)).complete_until_secs(), None);
        let times = ListTimes { response_date_secs: UnixSecs(45), until_secs: UnixSecs(46) };
        assert_eq!(times.up_to(UnixSecs::MAX), times);
        let earlier = ListTimes { response_date_secs: UnixSecs(39), until_secs: UnixSecs(39) };
        assert_eq!(times.up_to(UnixSecs(39)), earlier);
    }

    #[test]
    fn a_collection_with_another_number_or_fewer_changes_is_another_one() {
        let known = CollectionState { number: 3, next_sequence: 10 };
        let current = |number, next_sequence| Some(CollectionState { number, next_sequence });
        let states = [None, current(4, 20), current(3, 9), current(3, 10), current(3, 20)];
        let replaced = states.map(|current| known.is_replaced(current));
        assert_eq!(replaced, [true, true, true, false, false]);
    }

    #[test]
    fn a_change_that_is_taken_back_is_a_change() {
        assert_eq!(Redefinition::of(None, None, false), Redefinition::Begin);
        assert_eq!(Redefinition::of(None, Some(true), false), Redefinition::Continue);
        assert_eq!(Redefinition::of(Some(true), None, false), Redefinition::None);
        assert_eq!(Redefinition::of(Some(true), None, true), Redefinition::Begin);
        assert_eq!(Redefinition::of(Some(false), None, false), Redefinition::Begin);
        assert_eq!(Redefinition::of(Some(false), Some(true), true), Redefinition::Continue);
        assert_eq!(Redefinition::of(Some(true), Some(false), false), Redefinition::Begin);
        assert_eq!(Redefinition::of(Some(true), Some(true), false), Redefinition::Continue);
        assert_eq!(Switch::of(Followed::All, false), Switch::First);
        assert_eq!(Switch::of(Followed::All, true), Switch::Commit);
        assert_eq!(Switch::of(Followed::Until(UnixSecs(1)), true), Switch::Wait);
    }
}
