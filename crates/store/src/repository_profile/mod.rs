//! The profile of each repository, as observed in its responses: its granularity, its oldest datestamp, and the use
//! of each setSpec that looks escaped.
//!
//! All profiles are held in memory. Most responses add nothing, which is decided without the disk. They are a snapshot:
//! what was saved when the store was opened, and what this process has observed since. What another process saves
//! meanwhile is not seen until the store is opened again.
//!
//! Invariant: when [`RepositoryProfiles::update`] returns, the change is on disk. Until then the same change counts as
//! new in every other response.
//!
//! An escaped setSpec can be unescaped without an entry ([`set_spec`]). The entry of a legal set whose name looks
//! escaped prevents that.

use super::save_error::SaveError;
use async_trait::async_trait;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::set_spec;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// Where profiles are saved.
#[async_trait]
pub trait ProfileStore: std::fmt::Debug + Send + Sync {
    /// Saves the datestamps of one repository, and these of its sets, in place of older values. The caller runs one
    /// save at a time.
    ///
    /// # Errors
    ///
    /// They are not saved.
    async fn save(&self, repository: &str, profile: SavedProfile) -> Result<(), SaveError>;

    /// Closes it; later calls fail with [`SaveError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The datestamps of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileDates {
    /// The granularity that Identify announces.
    pub granularity: Option<Granularity>,
    /// The earliestDatestamp that Identify announces.
    pub earliest: Option<String>,
    /// The oldest datestamp of a delivered record.
    pub oldest_seen: Option<String>,
}

/// How an escaped-looking setSpec was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetUsage {
    /// As the escaped form of a setSpec that the schema does not allow.
    pub escaped: bool,
    /// As a setSpec of the source itself.
    pub legal: bool,
}

impl SetUsage {
    /// Whether two sets of the source have this name.
    pub(crate) fn is_collision(self) -> bool {
        self.escaped && self.legal
    }

    /// Both observations together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { escaped: self.escaped || other.escaped, legal: self.legal || other.legal }
    }
}

/// The observations in one response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileUpdate {
    /// Its datestamps.
    pub dates: ProfileDates,
    /// Its setSpecs that look escaped.
    pub sets: BTreeMap<String, SetUsage>,
}

/// The saved part of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedProfile {
    /// The datestamps.
    pub dates: ProfileDates,
    /// setSpecs that look escaped.
    pub sets: Vec<(String, SetUsage)>,
}

/// Maximum number of setSpecs in the profile of one repository, and of bytes of their names. Further setSpecs are
/// unescaped without an entry.
pub const SETS_MAX: usize = 10_000;
const SETS_BYTES_MAX: usize = 1 << 20;

/// The profiles of all repositories. Clones share them.
#[derive(Clone, Debug)]
pub struct RepositoryProfiles(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn ProfileStore>,
    known: Mutex<HashMap<String, Profile>>,
    /// Held during a save, so that the last save has the latest values.
    saving: AsyncMutex<()>,
}

#[derive(Debug, Default)]
pub(crate) struct Profile {
    dates: ProfileDates,
    /// The oldest observed datestamp, where it is or was lower than earliestDatestamp.
    lowered: Option<String>,
    sets: BTreeMap<String, SetUsage>,
    sets_bytes: usize,
    /// The number of saves in progress: until they end, the disk may lack part of the profile.
    saves: usize,
}

impl RepositoryProfiles {
    /// Starts with what was saved before.
    pub fn new(store: Arc<dyn ProfileStore>, saved: HashMap<String, SavedProfile>) -> Self {
        let known = saved.into_iter().map(|(repository, saved)| (repository, Profile::restore(saved)));
        let known = Mutex::new(known.collect());
        Self(Arc::new(Inner { store, known, saving: AsyncMutex::new(()) }))
    }

    /// Closes the store; later updates are held in memory alone.
    pub fn close(&self) {
        self.0.store.close();
    }

    /// The datestamps of a repository.
    pub fn dates(&self, repository: &str) -> ProfileDates {
        self.known().get(repository).map(|known| known.dates.clone()).unwrap_or_default()
    }

    /// The datestamp that replaces earliestDatestamp, where that is too late. An Identify that was cached before
    /// contains another one.
    pub fn lowered_to(&self, repository: &str) -> Option<String> {
        self.known().get(repository)?.lowered.clone()
    }

    /// The setSpec of the source for a requested setSpec, where the two differ: an escaped setSpec is unescaped,
    /// unless the source has a set of exactly that name.
    pub fn source_set(&self, repository: &str, requested: &str) -> Option<String> {
        let unescaped = set_spec::unescape(requested)?;
        let known = self.known();
        let usage = known.get(repository).and_then(|known| known.sets.get(requested)).copied();
        (!usage.unwrap_or_default().legal).then_some(unescaped)
    }

    /// The setSpecs of a repository that name two sets each.
    pub fn collisions(&self, repository: &str) -> Vec<String> {
        let known = self.known();
        let sets = known.get(repository).into_iter().flat_map(|known| &known.sets);
        sets.filter(|(_, usage)| usage.is_collision()).map(|(name, _)| name.clone()).collect()
    }

    /// Adds the observations in one response. Returns the setSpecs that are now found to name two sets. Waits for
    /// the disk only if something is new.
    pub async fn update(&self, repository: &str, update: ProfileUpdate) -> Vec<String> {
        if self.take_without_save(repository, &update) {
            return Vec::new();
        }
        let (profiles, repository) = (self.clone(), repository.to_owned());
        // In a task of its own, which a cancelled request does not cancel. A task that panics has logged why.
        tokio::spawn(async move { profiles.save(&repository, &update).await }).await.unwrap_or_default()
    }

    /// Adds an update that need not be saved; returns whether it was one.
    fn take_without_save(&self, repository: &str, update: &ProfileUpdate) -> bool {
        let mut known = self.known();
        let profile = known.entry(repository.to_owned()).or_default();
        let is_saved = !profile.needs_save(update);
        if is_saved {
            profile.take_oldest(update);
        }
        is_saved
    }

    /// Whether the update contains something that must be on disk and may not be there.
    #[cfg(test)]
    fn needs_save(&self, repository: &str, update: &ProfileUpdate) -> bool {
        self.known().entry(repository.to_owned()).or_default().needs_save(update)
    }

    async fn save(&self, repository: &str, update: &ProfileUpdate) -> Vec<String> {
        let (collisions, changed) = {
            let mut known = self.known();
            let profile = known.entry(repository.to_owned()).or_default();
            let collisions = profile.take(update);
            profile.saves += 1;
            // A set that was known before may still be unsaved.
            let is_known = |name: &&String| profile.sets.contains_key(*name);
            (collisions, update.sets.keys().filter(is_known).collect::<Vec<_>>())
        };
        let saved = {
            let _turn = self.0.saving.lock().await;
            let profile = self.known().get(repository).map(|known| known.to_save(&changed));
            self.0.store.save(repository, profile.unwrap_or_default()).await
        };
        if let Some(profile) = self.known().get_mut(repository) {
            profile.saves -= 1;
        }
        if let Err(error @ (SaveError::Database(_) | SaveError::Stopped(_))) = saved {
            tracing::warn!(
                repo = repository,
                %error,
                "the profile of a repository is not saved; check space and rights of the data folder"
            );
        }
        collisions
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Profile>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Profile {
    fn restore(saved: SavedProfile) -> Self {
        let mut profile = Self { dates: saved.dates, ..Self::default() };
        // An Identify that was already lowered contains the oldest datestamp itself.
        profile.note_lowered(|seen, announced| seen <= announced || seen.starts_with(announced));
        for (name, usage) in saved.sets {
            if profile.has_room(&name) {
                profile.sets_bytes += name.len();
                profile.sets.insert(name, usage);
            }
        }
        profile
    }

    fn to_save(&self, changed: &[&String]) -> SavedProfile {
        let sets = changed.iter().map(|name| ((*name).clone(), self.usage(name)));
        SavedProfile { dates: self.dates.clone(), sets: sets.collect() }
    }

    /// Whether the update contains something that must be on disk and may not be there.
    fn needs_save(&self, update: &ProfileUpdate) -> bool {
        self.has_new_facts(update) || self.saves > 0 && *update != ProfileUpdate::default()
    }

    /// Whether the update contains something that must be saved. An old datestamp counts only if it shows that
    /// earliestDatestamp is wrong.
    fn has_new_facts(&self, update: &ProfileUpdate) -> bool {
        let ProfileDates { granularity, earliest, oldest_seen } = &update.dates;
        let announced = earliest.as_ref().or(self.dates.earliest.as_ref());
        let oldest = oldest_seen.as_ref().or(self.dates.oldest_seen.as_ref());
        let is_older = |seen: &String| self.dates.oldest_seen.as_ref().is_none_or(|known| seen < known);
        let contradicts = announced.is_some_and(|announced| oldest.is_some_and(|oldest| oldest < announced));
        granularity.is_some_and(|granularity| self.dates.granularity != Some(granularity))
            || earliest.is_some() && *earliest != self.dates.earliest
            || contradicts && oldest_seen.as_ref().is_some_and(is_older)
            || update
                .sets
                .iter()
                .any(|(name, usage)| self.has_room(name) && self.usage(name).and(*usage) != self.usage(name))
    }

    fn usage(&self, name: &str) -> SetUsage {
        self.sets.get(name).copied().unwrap_or_default()
    }

    fn has_room(&self, name: &str) -> bool {
        let fits = self.sets.len() < SETS_MAX && self.sets_bytes + name.len() <= SETS_BYTES_MAX;
        fits || self.sets.contains_key(name)
    }

    fn take_oldest(&mut self, update: &ProfileUpdate) {
        if let Some(seen) = &update.dates.oldest_seen
            && self.dates.oldest_seen.as_ref().is_none_or(|known| seen < known)
        {
            self.dates.oldest_seen = Some(seen.clone());
        }
        self.note_lowered(|seen, announced| seen < announced);
    }

    fn note_lowered(&mut self, is_lowered: impl FnOnce(&str, &str) -> bool) {
        let ProfileDates { earliest, oldest_seen, .. } = &self.dates;
        if let (Some(seen), Some(announced)) = (oldest_seen, earliest)
            && is_lowered(seen, announced)
        {
            self.lowered = Some(seen.clone());
        }
    }

    /// Adds an update. Returns the setSpecs that are now found to name two sets.
    fn take(&mut self, update: &ProfileUpdate) -> Vec<String> {
        self.take_oldest(update);
        self.dates.granularity = update.dates.granularity.or(self.dates.granularity);
        if update.dates.earliest.is_some() {
            self.dates.earliest.clone_from(&update.dates.earliest);
            self.note_lowered(|seen, announced| seen < announced);
        }
        let mut collisions = Vec::new();
        for (name, usage) in &update.sets {
            let before = self.usage(name);
            let after = before.and(*usage);
            if after == before || !self.has_room(name) {
                continue;
            }
            if self.sets.insert(name.clone(), after).is_none() {
                self.sets_bytes += name.len();
            }
            if after.is_collision() {
                collisions.push(name.clone());
            }
        }
        collisions
    }
}

#[cfg(test)]
mod tests;
