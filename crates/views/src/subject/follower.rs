//! Follows the commits of the mirror for one generation of a view.

use super::definition::Definition;
use oaimend_repository::{Failure, Reason};
use oaimend_rules::{CollectionState, Followed};
use oaimend_search::Query;
use oaimend_store::{
    CollectionVersion, FollowedChanges, FollowedCollection, ListFilter, ListQuery, MirrorError, MirrorStore,
    Position, Prefix, RepositoryId, SaveError, StoredRecord, ViewMember, ViewStore,
};
use std::sync::Arc;

/// Maximum number of records that one transaction judges.
const RECORDS_MAX: usize = 500;
/// Bytes of records that are in memory at once. A single record may exceed it.
const BYTES_MAX: usize = 8 << 20;

/// Judges the commits of a mirror, and stores the members of views.
#[derive(Clone, Debug)]
pub(super) struct Follower {
    pub(super) mirror: Arc<dyn MirrorStore>,
    pub(super) views: Arc<dyn ViewStore>,
}

/// A collection that has commits which are not known yet.
struct Behind {
    followed: FollowedCollection,
    version: CollectionVersion,
}

impl Follower {
    /// Judges commits that a generation does not know, at most about `records_max` records. A generation whose query is in a
    /// language that the program does not know any more is replaced.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read, a record is damaged, or the members cannot be stored. The next call continues.
    pub(super) async fn follow(
        &self,
        generation: u64,
        definition: &Definition,
        records_max: usize,
    ) -> Result<Followed, Failure> {
        let (query, behind) = (definition.parsed_query(), self.behind(generation, definition).await?);
        let (Some(query), Some(behind)) = (query, behind) else { return Ok(Followed::Replaced) };
        let (mut left, mut all) = (records_max, Followed::All);
        for Behind { mut followed, version } in behind {
            while followed.next_sequence < version.next_sequence {
                let (repository, prefix) = (followed.repository.clone(), followed.prefix.clone());
                if left == 0 {
                    let first = self.page(&followed, 1, false).await?.0;
                    let unknown = first.first().map_or(version.last_stamp_secs, |record| record.stamp_secs);
                    all = all.before(unknown);
                    break;
                }
                let (records, next) = self.page(&followed, left.min(RECORDS_MAX), true).await?;
                left = left.saturating_sub(records.len().max(1));
                let next_sequence = match (next, records.last()) {
                    (Some(next), _) => next.sequence + 1,
                    (None, last) => version.next_sequence.max(last.map_or(0, |last| last.sequence + 1)),
                };
                let collection = Some(version.collection);
                followed = FollowedCollection { repository, prefix, collection, next_sequence };
                let changes = judge(definition, &query, &followed.repository, records).await?;
                let changes = FollowedChanges { generation, followed: followed.clone(), changes };
                self.views.follow(changes).await.map_err(failed)?;
            }
        }
        Ok(all)
    }

    /// The collections with unknown commits; `None` if one was replaced.
    async fn behind(&self, generation: u64, definition: &Definition) -> Result<Option<Vec<Behind>>, Failure> {
        let mut known = self.views.followed(generation).await.map_err(failed)?;
        let mut behind = Vec::new();
        for source in &definition.sources {
            let repository = RepositoryId(&source.id);
            for format in self.mirror.catalog(repository).await?.formats {
                let prefix = format.prefix;
                if !source.prefixes.is_empty() && !source.prefixes.contains(&prefix) {
                    continue;
                }
                let version = self.mirror.version(repository, Prefix(&prefix)).await?;
                let place =
                    known.iter().position(|known| known.repository == source.id && known.prefix == prefix);
                let new = || FollowedCollection {
                    repository: source.id.clone(),
                    prefix,
                    ..FollowedCollection::default()
                };
                let followed = place.map_or_else(new, |place| known.swap_remove(place));
                if is_replaced(&followed, version.as_ref()) {
                    return Ok(None);
                }
                match version {
                    Some(version) if followed.next_sequence < version.next_sequence => {
                        behind.push(Behind { followed, version });
                    }
                    _ => {}
                }
            }
        }
        // A repository that is not in the store any more lists no formats.
        for followed in known {
            let (repository, prefix) = (RepositoryId(&followed.repository), Prefix(&followed.prefix));
            if is_replaced(&followed, self.mirror.version(repository, prefix).await?.as_ref()) {
                return Ok(None);
            }
        }
        Ok(Some(behind))
    }

    /// The next changes of a collection, and where those after them begin.
    async fn page(
        &self,
        followed: &FollowedCollection,
        count_max: usize,
        with_bytes: bool,
    ) -> Result<(Vec<StoredRecord>, Option<Position>), Failure> {
        let filter = ListFilter {
            repository: followed.repository.clone(),
            prefix: followed.prefix.clone(),
            sequences: Some(followed.next_sequence..u64::MAX),
            ..ListFilter::default()
        };
        let query = ListQuery { filter, after: None, count_max, bytes_max: BYTES_MAX, with_bytes };
        let page = self.mirror.list(query).await?;
        // Without the damaged record, the view would keep what it knew of it.
        if page.damaged > 0 { Err(MirrorError::Damaged.into()) } else { Ok((page.records, page.next)) }
    }
}

/// Whether a collection is not the one that was followed.
fn is_replaced(followed: &FollowedCollection, version: Option<&CollectionVersion>) -> bool {
    let state = |version: &CollectionVersion| CollectionState {
        number: version.collection,
        next_sequence: version.next_sequence,
    };
    followed.collection.is_some_and(|number| {
        CollectionState { number, next_sequence: followed.next_sequence }.is_replaced(version.map(state))
    })
}

/// Judges records of a repository, on a thread for blocking work.
async fn judge(
    definition: &Definition,
    query: &Query,
    repository: &str,
    records: Vec<StoredRecord>,
) -> Result<Vec<ViewMember>, Failure> {
    let (definition, query, repository) = (definition.clone(), query.clone(), repository.to_owned());
    let judged = tokio::task::spawn_blocking(move || {
        let member = |record: StoredRecord| ViewMember {
            has_left: !definition.contains(&repository, &record, &query),
            position: Position { secs: record.stamp_secs, sequence: record.sequence },
            identifier: record.identifier,
        };
        records.into_iter().map(member).collect()
    });
    judged.await.map_err(|error| MirrorError::Stopped(error.to_string()).into())
}

/// The failure of the store of the views.
pub(super) fn failed(error: SaveError) -> Failure {
    let reason = if matches!(error, SaveError::Closed) { Reason::TakenOver } else { Reason::Mirror };
    Failure::new(reason, format!("the members of the view cannot be read or stored: {error}"))
}
