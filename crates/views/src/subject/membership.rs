//! The members of a view, as its lists read them.

use super::definition::{Definition, ViewSettings};
use super::follower::{Follower, failed};
use async_trait::async_trait;
use oaimend_mirror::view::{MemberRecord, Membership};
use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, Reason};
use oaimend_store::{
    FollowedCollection, ListFilter, MemberQuery, Position, Prefix, RepositoryId, ViewMember,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of records that a request judges. A list ends before the others.
pub(super) const JUDGED_MAX: usize = 1_000;

/// The state of a view that its requests share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Held while members change. It contains the last known state, as long as nobody changes them.
    pub(super) turn: tokio::sync::Mutex<Option<Known>>,
    /// The settings of the last request.
    pub(super) latest: Mutex<Option<ViewSettings>>,
    /// Whether a task judges the commits that requests have left.
    pub(super) is_continuing: AtomicBool,
    /// The number of generations that were replaced. It rises before the old one is gone.
    pub(super) switches: AtomicU64,
}

/// A generation in use that needs no work: it has the configured definition, its members follow from all commits, and no
/// generation is begun or to be removed. Requests need not read this again before the next change of the mirror.
#[derive(Debug)]
pub(super) struct Known {
    /// The changes of the mirror before its commits were judged.
    pub(super) changes: u64,
    pub(super) in_use: Arc<InUse>,
}

impl Known {
    /// Whether the mirror has not changed since.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read.
    pub(super) async fn is_latest(&self, follower: &Follower) -> Result<bool, Failure> {
        Ok(follower.mirror.changes().await? == self.changes)
    }
}

/// The generation in use when a request began.
#[derive(Debug)]
pub(super) struct InUse {
    pub(super) generation: u64,
    pub(super) definition: Definition,
    /// The lowest datestamp of its members.
    pub(super) since_secs: Option<UnixSecs>,
    /// The collections that it follows, or has members of.
    pub(super) followed: Vec<FollowedCollection>,
    /// The number of replaced generations when it was found in use.
    pub(super) switches: u64,
}

/// The members of the generation in use.
#[derive(Debug)]
pub(super) struct CurrentMembers {
    pub(super) follower: Follower,
    pub(super) shared: Arc<Shared>,
    pub(super) in_use: Arc<InUse>,
}

impl CurrentMembers {
    /// A result, unless the generation may have been replaced before it was read.
    pub(super) fn if_in_use<T>(&self, read: T) -> Result<T, Failure> {
        if self.shared.switches.load(Ordering::SeqCst) == self.in_use.switches {
            return Ok(read);
        }
        let details = "the definition of the view has just changed; send the request again".to_owned();
        Err(Failure::new(Reason::MirrorIncomplete, details))
    }

    fn query(&self, filter: &ListFilter) -> MemberQuery {
        MemberQuery {
            generation: self.in_use.generation,
            repository: filter.repository.clone(),
            prefix: filter.prefix.clone(),
            from_secs: filter.from_secs,
            until_secs: filter.until_secs,
            ..MemberQuery::default()
        }
    }
}

fn member_record(member: ViewMember) -> MemberRecord {
    let ViewMember { identifier, position, has_left } = member;
    MemberRecord { identifier, position, has_left }
}

#[async_trait]
impl Membership for CurrentMembers {
    async fn list(
        &self,
        filter: &ListFilter,
        after: Option<Position>,
        count_max: usize,
    ) -> Result<Vec<MemberRecord>, Failure> {
        let query = MemberQuery { after, count_max, ..self.query(filter) };
        let members = self.follower.views.members(query).await.map_err(failed)?;
        self.if_in_use(members.into_iter().map(member_record).collect())
    }

    async fn count(&self, filter: &ListFilter) -> Result<u64, Failure> {
        let count = self.follower.views.count(self.query(filter)).await.map_err(failed)?;
        self.if_in_use(count)
    }

    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure> {
        let mut turn = self.shared.turn.lock().await;
        if let Some(known) = &*turn
            && known.in_use.generation == self.in_use.generation
            && known.is_latest(&self.follower).await?
        {
            return self.if_in_use(UnixSecs::MAX);
        }
        turn.take();
        let InUse { generation, definition, .. } = &*self.in_use;
        let followed = self.follower.follow(*generation, definition, JUDGED_MAX).await?;
        self.if_in_use(followed.complete_until_secs().ok_or_else(being_read)?)
    }

    async fn find(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<MemberRecord>>, Failure> {
        let found = self.follower.views.find(self.in_use.generation, repository, prefix, identifiers).await;
        let found = found.map_err(failed)?;
        self.if_in_use(found.into_iter().map(|found| found.map(member_record)).collect())
    }
}

/// The failure of a request to a view without a usable generation.
pub(super) fn being_read() -> Failure {
    let details = "the members of the view are being read from the mirror; wait".to_owned();
    Failure::new(Reason::MirrorIncomplete, details)
}

/// The failure of a request for a record whose last change the view has not judged.
pub(super) fn behind(identifier: &str) -> Failure {
    let details = format!("the view has not read the last change of {identifier} from the mirror yet; wait");
    Failure::new(Reason::MirrorIncomplete, details)
}
