//! Caches the responses of a source to probes, so that the probes are not repeated.

use oaimend_repository::IdentifyFields;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex as AsyncMutex;

/// The recent responses of a source to probes.
#[derive(Debug, Default)]
pub(crate) struct ProbeCache {
    probes: Mutex<Probes>,
    /// Held during a probe of Identify: concurrent requests share its response.
    pub(crate) identify_turn: AsyncMutex<()>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Probes {
    /// When the source last accepted seconds in a probe.
    pub(crate) took_seconds: Option<SystemTime>,
    /// When the source last answered Identify in a probe.
    pub(crate) identified_at: Option<SystemTime>,
    pub(crate) formats: Option<(SystemTime, Option<Vec<String>>)>,
    pub(crate) has_no_sets: Option<(SystemTime, bool)>,
    /// The last response to Identify; its fields are empty if it was an error.
    pub(crate) identify: Option<(SystemTime, IdentifyFields)>,
    /// When there was no response to Identify, and how often.
    pub(crate) identify_failed: Option<(SystemTime, u64)>,
}

/// How long a probe of a source is not repeated.
const KEPT: Duration = Duration::from_secs(600);

impl ProbeCache {
    pub(crate) fn read(&self) -> Probes {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note(&self, note: impl FnOnce(&mut Probes)) {
        note(&mut self.probes.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether the source has recently accepted seconds.
    pub(crate) fn takes_seconds(&self, now: SystemTime) -> bool {
        fresh(self.read().took_seconds.map(|at| (at, ())), now).is_some()
    }

    pub(crate) fn note_seconds(&self, now: SystemTime) {
        self.note(|probes| probes.took_seconds = Some(now));
    }
}

/// A probe that is not too old.
pub(crate) fn fresh<T>(probe: Option<(SystemTime, T)>, now: SystemTime) -> Option<T> {
    let (at, value) = probe?;
    now.duration_since(at).is_ok_and(|age| age < KEPT).then_some(value)
}
