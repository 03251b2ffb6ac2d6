//! The members of views, as a trait: which records of the mirror a view contains, and which have left it.
//!
//! The members that one definition of a view chooses are a *generation*. While a new generation is read from the
//! mirror, the one before stays in use; [`ViewStore::switch`] replaces it. Its members that the new one does not
//! contain become members that have left, so a harvester learns of them.
//!
//! In a generation, the members of a collection are in the order of their positions: the stamp and the sequence of
//! the change in the mirror that they follow from. A member that leaves keeps its identifier for ever.
//!
//! All operations can be expressed in SQL: each is one transaction over a table of views, one of followed collections and
//! one of members, with an index by position.

use super::keys::{Prefix, RepositoryId};
use super::mirror::Position;
use super::save_error::SaveError;
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use oaimend_rules::Member;
use serde::{Deserialize, Serialize};

/// The first sequence of members that have no record in the mirror, because they were taken over from the generation
/// before. No collection has as many changes.
pub const WITHOUT_RECORD: u64 = 1 << 62;

/// The store of the views. A view that was never stored has no generation; it is no error.
#[async_trait]
pub trait ViewStore: std::fmt::Debug + Send + Sync {
    /// The state of a view.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn state(&self, view: &str) -> Result<ViewState, SaveError>;

    /// Begins a generation of a view for this definition, and returns its number. One that was begun before and is not
    /// in use is replaced.
    ///
    /// # Errors
    ///
    /// Nothing is stored.
    async fn begin_generation(&self, view: &str, definition: &str) -> Result<u64, SaveError>;

    /// Stores changes of a generation, and the place in the mirror up to which they are known, both or none.
    ///
    /// A change of a record that is no member and does not become one is left out.
    ///
    /// # Errors
    ///
    /// Nothing is stored.
    async fn follow(&self, changes: FollowedChanges) -> Result<(), SaveError>;

    /// The collections that a generation follows, or has members of.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn followed(&self, generation: u64) -> Result<Vec<FollowedCollection>, SaveError>;

    /// Does a part of [`ViewStore::switch`] that nobody sees: examines the next members of the generation in use, at most
    /// `count_max`, and takes over those that the begun one does not have. Their stamps are at most `now_secs`, so that the
    /// switch dates no member again unless the clock is set back meanwhile. Returns whether there are more. A later call
    /// continues, also after a restart.
    ///
    /// # Errors
    ///
    /// Nothing is stored.
    async fn prepare_switch(
        &self,
        view: &str,
        now_secs: UnixSecs,
        count_max: usize,
    ) -> Result<bool, SaveError>;

    /// Puts the begun generation of a view into use. The members of the one before that it does not have are taken over
    /// as members that have left at `since_secs`, which becomes the lowest datestamp of all its members. It is short after
    /// [`ViewStore::prepare_switch`] has examined them.
    ///
    /// # Errors
    ///
    /// The generation before stays in use.
    async fn switch(&self, view: &str, since_secs: Option<UnixSecs>) -> Result<(), SaveError>;

    /// Removes members of the replaced generations of a view, at most `count_max`. Returns whether there are more.
    ///
    /// # Errors
    ///
    /// Nothing is removed.
    async fn remove_replaced(&self, view: &str, count_max: usize) -> Result<bool, SaveError>;

    /// The next members of a collection in the order of their positions, or the last ones in the opposite order.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn members(&self, query: MemberQuery) -> Result<Vec<ViewMember>, SaveError>;

    /// The number of the members that [`ViewStore::members`] returns in all.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn count(&self, query: MemberQuery) -> Result<u64, SaveError>;

    /// The members with these identifiers, in their order; `None` for one that never was a member.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn find(
        &self,
        generation: u64,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<ViewMember>>, SaveError>;

    /// Closes it; later calls fail with [`SaveError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The state of a view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewState {
    /// The generation in use; `None` before the first one is complete.
    pub current: Option<Generation>,
    /// The generation that is read from the mirror, to replace it.
    pub next: Option<Generation>,
    /// The lowest datestamp of all members, in seconds since 1970: the last change of the definition. `None`: the first
    /// generation is in use, and the stamps of the members are their datestamps.
    pub since_secs: Option<UnixSecs>,
    /// The numbers of the generations that were replaced, until [`ViewStore::remove_replaced`] has removed their members.
    pub replaced: Vec<u64>,
}

/// A generation of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Its number. No two generations of a store have the same one.
    pub number: u64,
    /// What it was chosen by.
    pub definition: String,
}

/// A collection as a generation knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedCollection {
    /// The repository.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// The number of the collection in the mirror; `None` if only members that have left are known of it.
    pub collection: Option<u64>,
    /// All changes with lower sequences are known.
    pub next_sequence: u64,
}

/// Changes of the members of a generation in one collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedChanges {
    /// The generation.
    pub generation: u64,
    /// The collection, after the changes.
    pub followed: FollowedCollection,
    /// The changes in the order of the mirror.
    pub changes: Vec<ViewMember>,
}

/// A member of a view in a collection, or a change of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewMember {
    /// The identifier.
    pub identifier: String,
    /// The stamp and the sequence of the record.
    pub position: Position,
    /// Whether the record has left the view: it is deleted, or does not match any more.
    pub has_left: bool,
}

impl ViewMember {
    /// Whether a generation stores this change. `was_member` includes members that have left.
    pub fn is_stored(&self, was_member: bool) -> bool {
        Member::after_commit(self.position.secs, !self.has_left, was_member).is_some()
    }

    /// The member in a generation that does not choose its record, and comes into use at `left_secs`. `sequence` is that of
    /// a member without a record.
    #[must_use]
    pub fn taken_over(self, left_secs: UnixSecs, sequence: u64) -> Self {
        let left = Member::after_redefinition(None, left_secs);
        let position = Position { secs: left.stamp_secs, sequence };
        Self { position, has_left: left.has_left, ..self }
    }
}

/// A request for members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberQuery {
    /// The generation.
    pub generation: u64,
    /// The repository.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// The lowest stamp, in seconds since 1970; `None`: no bound.
    pub from_secs: Option<UnixSecs>,
    /// The highest stamp, in seconds since 1970; `None`: no bound.
    pub until_secs: Option<UnixSecs>,
    /// Only members after the one at this position, in the order of the query; `None`: from its first one.
    pub after: Option<Position>,
    /// Whether the order is the opposite one: the last member first.
    pub newest_first: bool,
    /// Maximum number of members.
    pub count_max: usize,
}
