//! The members of a view, as its lists read them.

use super::definition::{Definition, ViewSettings};
use super::follower::{Follower, failed};
use async_trait::async_trait;
use oaimend_mirror::view::{MemberRecord, Membership};
use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, Reason};
use oaimend_store::{ListFilter, MemberQuery, Position, Prefix, RepositoryId, ViewMember};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of records that a request judges. A list ends before the others.
pub(super) const JUDGED_MAX: usize = 1_000;

/// The state of a view that its requests share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Held while members change.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// The settings of the last request.
    pub(super) latest: Mutex<Option<ViewSettings>>,
    /// Whether a task judges the commits that requests have left.
    pub(super) is_continuing: AtomicBool,
    /// The number of generations that were replaced. It rises before the old one is gone.
    pub(super) switches: AtomicU64,
}

/// The members of the generation in use.
#[derive(Debug)]
pub(super) struct CurrentMembers {
    pub(super) follower: Follower,
    pub(super) shared: Arc<Shared>,
    pub(super) generation: u64,
    pub(super) definition: Definition,
    /// The number of replaced generations when this one was found in use.
    pub(super) switches: u64,
}

impl CurrentMembers {
    /// A result, unless the generation may have been replaced before it was read.
    fn if_in_use<T>(&self, read: T) -> Result<T, Failure> {
        if self.shared.switches.load(Ordering::SeqCst) == self.switches {
            return Ok(read);
        }
        let details = "the definition of the view has just changed; send the request again".to_owned();
        Err(Failure::new(Reason::MirrorIncomplete, details))
    }

    fn query(&self, filter: &ListFilter) -> MemberQuery {
        MemberQuery {
            generation: self.generation,
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
        let _turn = self.shared.turn.lock().await;
        let followed = self.follower.follow(self.generation, &self.definition, JUDGED_MAX).await?;
        self.if_in_use(followed.complete_until_secs().ok_or_else(being_read)?)
    }

    async fn find(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<MemberRecord>>, Failure> {
        let found = self.follower.views.find(self.generation, repository, prefix, identifiers).await;
        let found = found.map_err(failed)?;
        self.if_in_use(found.into_iter().map(|found| found.map(member_record)).collect())
    }
}

/// The failure of a request to a view without a usable generation.
pub(super) fn being_read() -> Failure {
    let details = "the members of the view are being read from the mirror; wait".to_owned();
    Failure::new(Reason::MirrorIncomplete, details)
}
