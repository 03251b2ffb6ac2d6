//! The members of views, in memory.

use super::Handle;
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use oaimend_store::{
    FollowedChanges, FollowedCollection, Generation, MemberQuery, Prefix, RepositoryId, SaveError,
    ViewMember, ViewState, ViewStore, WITHOUT_RECORD,
};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct ViewRows {
    states: BTreeMap<String, ViewState>,
    /// By generation, repository and prefix.
    collections: BTreeMap<(u64, String, String), Collection>,
    next_generation: u64,
}

#[derive(Debug, Default)]
struct Collection {
    followed: FollowedCollection,
    members: BTreeMap<String, ViewMember>,
}

impl ViewRows {
    fn remove_replaced(&mut self, view: &str) {
        let Some(state) = self.states.get_mut(view) else { return };
        for number in state.replaced.drain(..) {
            self.collections.retain(|(of, ..), _| *of != number);
        }
    }

    fn follow(&mut self, changes: FollowedChanges) {
        let FollowedChanges { generation, followed, changes } = changes;
        let key = (generation, followed.repository.clone(), followed.prefix.clone());
        let collection = self.collections.entry(key).or_default();
        collection.followed = followed;
        for change in changes {
            let was_member = collection.members.contains_key(&change.identifier);
            if change.is_stored(was_member) {
                collection.members.insert(change.identifier.clone(), change);
            }
        }
    }

    fn switch(&mut self, view: &str, since_secs: Option<UnixSecs>) {
        let state = self.states.entry(view.to_owned()).or_default();
        let Some(next) = state.next.take() else { return };
        let number = next.number;
        let before = state.current.replace(next);
        state.since_secs = since_secs;
        let Some(before) = before else { return };
        state.replaced.push(before.number);
        let of_before = self.collections.iter().filter(|((of, ..), _)| *of == before.number);
        let of_before: Vec<_> = of_before.map(|(key, old)| (key.clone(), old.members.clone())).collect();
        for ((_, repository, prefix), old) in of_before {
            let followed = FollowedCollection {
                repository: repository.clone(),
                prefix: prefix.clone(),
                ..FollowedCollection::default()
            };
            let new = Collection { followed, members: BTreeMap::new() };
            let collection = self.collections.entry((number, repository, prefix)).or_insert(new);
            let taken = collection.members.values().map(|member| member.position.sequence + 1).max();
            let mut sequence = taken.unwrap_or_default().max(WITHOUT_RECORD);
            for (identifier, member) in old {
                if collection.members.contains_key(&identifier) {
                    continue;
                }
                let left_secs = since_secs.unwrap_or(member.position.secs);
                collection.members.insert(identifier, member.taken_over(left_secs, sequence));
                sequence += 1;
            }
        }
    }

    fn members(&self, query: &MemberQuery) -> Vec<ViewMember> {
        let key = (query.generation, query.repository.clone(), query.prefix.clone());
        let Some(collection) = self.collections.get(&key) else { return Vec::new() };
        let is_wanted = |member: &&ViewMember| {
            let secs = member.position.secs;
            query.from_secs.is_none_or(|from| from <= secs)
                && query.until_secs.is_none_or(|until| secs <= until)
                && query.after.is_none_or(|after| {
                    if query.newest_first { member.position < after } else { member.position > after }
                })
        };
        let mut members: Vec<ViewMember> = collection.members.values().filter(is_wanted).cloned().collect();
        members.sort_by_key(|member| member.position);
        if query.newest_first {
            members.reverse();
        }
        members
    }
}

impl Handle {
    fn views<T>(&self, task: impl FnOnce(&mut ViewRows) -> T) -> Result<T, SaveError> {
        self.with(|shared| task(&mut shared.views)).ok_or(SaveError::Closed)
    }
}

#[async_trait]
impl ViewStore for Handle {
    async fn state(&self, view: &str) -> Result<ViewState, SaveError> {
        self.views(|views| views.states.get(view).cloned().unwrap_or_default())
    }

    async fn begin_generation(&self, view: &str, definition: &str) -> Result<u64, SaveError> {
        self.views(|views| {
            let number = views.next_generation;
            views.next_generation += 1;
            let next = Generation { number, definition: definition.to_owned() };
            let state = views.states.entry(view.to_owned()).or_default();
            let abandoned = state.next.replace(next);
            state.replaced.extend(abandoned.map(|abandoned| abandoned.number));
            number
        })
    }

    async fn follow(&self, changes: FollowedChanges) -> Result<(), SaveError> {
        self.views(|views| views.follow(changes))
    }

    async fn followed(&self, generation: u64) -> Result<Vec<FollowedCollection>, SaveError> {
        self.views(|views| {
            let of_generation = views.collections.iter().filter(|((number, ..), _)| *number == generation);
            of_generation.map(|(_, collection)| collection.followed.clone()).collect()
        })
    }

    async fn prepare_switch(
        &self,
        _view: &str,
        _now_secs: UnixSecs,
        _count_max: usize,
    ) -> Result<bool, SaveError> {
        self.views(|_| false)
    }

    async fn remove_replaced(&self, view: &str, _count_max: usize) -> Result<bool, SaveError> {
        self.views(|views| views.remove_replaced(view))?;
        Ok(false)
    }

    async fn switch(&self, view: &str, since_secs: Option<UnixSecs>) -> Result<(), SaveError> {
        self.views(|views| views.switch(view, since_secs))
    }

    async fn members(&self, query: MemberQuery) -> Result<Vec<ViewMember>, SaveError> {
        self.views(|views| views.members(&query).into_iter().take(query.count_max).collect())
    }

    async fn count(&self, query: MemberQuery) -> Result<u64, SaveError> {
        self.views(|views| views.members(&query).len() as u64)
    }

    async fn find(
        &self,
        generation: u64,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<ViewMember>>, SaveError> {
        self.views(|views| {
            let key = (generation, repository.0.to_owned(), prefix.0.to_owned());
            let collection = views.collections.get(&key);
            let find = |identifier| collection?.members.get(identifier).cloned();
            identifiers.iter().map(find).collect()
        })
    }

    fn close(&self) {
        self.end();
    }
}
