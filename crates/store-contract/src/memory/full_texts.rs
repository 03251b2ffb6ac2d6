//! The full texts of mirrored items, in memory.

use super::Handle;
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use oaimend_store::{FollowedFullTexts, FullText, FullTextStore, SaveError};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct FullTextRows {
    followed: BTreeMap<String, FollowedFullTexts>,
    /// By repository and OAI identifier.
    items: BTreeMap<(String, String), FullText>,
}

impl FullTextRows {
    /// The items of a repository that wait, by the time of the next attempt.
    fn waiting(&self, repository: &str) -> Vec<(UnixSecs, String)> {
        let of_repository = self.items.iter().filter(|((of, _), _)| of == repository);
        let mut waiting: Vec<(UnixSecs, String)> = of_repository
            .filter_map(|((_, identifier), text)| Some((text.not_before_secs()?, identifier.clone())))
            .collect();
        waiting.sort();
        waiting
    }
}

impl Handle {
    fn full_texts<T>(&self, task: impl FnOnce(&mut FullTextRows) -> T) -> Result<T, SaveError> {
        self.with(|shared| task(&mut shared.full_texts)).ok_or(SaveError::Closed)
    }
}

#[async_trait]
impl FullTextStore for Handle {
    async fn followed(&self, repository: &str) -> Result<Option<FollowedFullTexts>, SaveError> {
        self.full_texts(|rows| rows.followed.get(repository).cloned())
    }

    async fn follow(&self, repository: &str, followed: FollowedFullTexts) -> Result<(), SaveError> {
        self.full_texts(|rows| drop(rows.followed.insert(repository.to_owned(), followed)))
    }

    async fn find(
        &self,
        repository: &str,
        identifiers: Vec<String>,
    ) -> Result<Vec<Option<FullText>>, SaveError> {
        self.full_texts(|rows| {
            let find = |identifier| rows.items.get(&(repository.to_owned(), identifier)).cloned();
            identifiers.into_iter().map(find).collect()
        })
    }

    async fn put(
        &self,
        repository: &str,
        identifier: &str,
        full_text: Option<FullText>,
    ) -> Result<(), SaveError> {
        self.full_texts(|rows| {
            let key = (repository.to_owned(), identifier.to_owned());
            match full_text {
                Some(full_text) => drop(rows.items.insert(key, full_text)),
                None => drop(rows.items.remove(&key)),
            }
        })
    }

    async fn due(
        &self,
        repository: &str,
        now_secs: UnixSecs,
        count_max: usize,
    ) -> Result<Vec<String>, SaveError> {
        self.full_texts(|rows| {
            let due = rows.waiting(repository).into_iter().take_while(|(secs, _)| *secs <= now_secs);
            due.take(count_max).map(|(_, identifier)| identifier).collect()
        })
    }

    async fn waiting(&self, repository: &str) -> Result<u64, SaveError> {
        self.full_texts(|rows| rows.waiting(repository).len() as u64)
    }

    async fn forget(&self, repository: &str) -> Result<(), SaveError> {
        self.full_texts(|rows| {
            rows.followed.remove(repository);
            rows.items.retain(|(of, _), _| of != repository);
        })
    }

    fn close(&self) {
        self.end();
    }
}
