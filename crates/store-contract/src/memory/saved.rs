//! What the small stores saved, in memory.

use super::Handle;
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use oaimend_store::{
    ActivityStore, CapabilityStore, Detection, NoticeStore, ProfileStore, RepositoryActivity, RepositoryId,
    SaveError, SavedProfile, WatchedRepository,
};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug, Default)]
pub(super) struct Saved {
    pub(super) profiles: HashMap<String, SavedProfile>,
    pub(super) capabilities: HashMap<String, Detection>,
    pub(super) activity: HashMap<String, RepositoryActivity>,
    watched: BTreeMap<String, WatchedRepository>,
    reports: BTreeMap<String, UnixSecs>,
}

impl Handle {
    fn saved<T>(&self, task: impl FnOnce(&mut Saved) -> T) -> Result<T, SaveError> {
        self.with(|shared| task(&mut shared.saved)).ok_or(SaveError::Closed)
    }
}

#[async_trait]
impl ProfileStore for Handle {
    async fn save(&self, repository: &str, profile: SavedProfile) -> Result<(), SaveError> {
        self.saved(|saved| {
            let known = saved.profiles.entry(repository.to_owned()).or_default();
            known.dates = profile.dates;
            known.sets.retain(|(name, _)| profile.sets.iter().all(|(changed, _)| changed != name));
            known.sets.extend(profile.sets);
        })
    }

    fn close(&self) {
        self.end();
    }
}

#[async_trait]
impl CapabilityStore for Handle {
    async fn save(&self, repository: &str, detection: Detection) -> Result<(), SaveError> {
        self.saved(|saved| drop(saved.capabilities.insert(repository.to_owned(), detection)))
    }

    fn close(&self) {
        self.end();
    }
}

impl ActivityStore for Handle {
    fn save(&self, changed: &[(String, RepositoryActivity)]) -> Result<(), SaveError> {
        self.saved(|saved| saved.activity.extend(changed.iter().cloned()))
    }

    fn close(&self) {
        self.end();
    }
}

#[async_trait]
impl NoticeStore for Handle {
    async fn watched(&self) -> Result<BTreeMap<String, WatchedRepository>, SaveError> {
        self.saved(|saved| saved.watched.clone())
    }

    async fn save_watched(&self, watched: BTreeMap<String, WatchedRepository>) -> Result<(), SaveError> {
        self.saved(|saved| saved.watched = watched)
    }

    async fn report_sent_secs(&self, repository: RepositoryId<'_>) -> Result<Option<UnixSecs>, SaveError> {
        self.saved(|saved| saved.reports.get(repository.0).copied())
    }

    async fn save_report_sent(
        &self,
        repository: RepositoryId<'_>,
        sent_secs: Option<UnixSecs>,
    ) -> Result<(), SaveError> {
        self.saved(|saved| match sent_secs {
            Some(secs) => drop(saved.reports.insert(repository.0.to_owned(), secs)),
            None => drop(saved.reports.remove(repository.0)),
        })
    }

    fn close(&self) {
        self.end();
    }
}
