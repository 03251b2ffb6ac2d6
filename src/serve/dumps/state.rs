//! The dumps that are being written. All who want the same one wait for one task.

use super::refusal::Refusal;
use oaimend_dumps::{DumpError, DumpFolder};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Maximum number of dumps that are written at once.
const BUILDS_MAX: usize = 2;
/// Maximum number of listeners that follow the feed at once.
const LISTENERS_MAX: usize = 64;

/// The dumps of a server.
#[derive(Debug)]
pub(crate) struct DumpState {
    pub(super) folder: Arc<DumpFolder>,
    builds: Mutex<HashMap<String, Arc<Build>>>,
    /// The epoch of the store whose stale dumps were removed last; `None` since the start.
    pub(super) swept_epoch: Mutex<Option<u64>>,
    /// The places of listeners.
    pub(super) listeners: Arc<Semaphore>,
}

/// A dump that is being written.
#[derive(Debug)]
pub(super) struct Build {
    /// The number of records so far.
    pub(super) records: AtomicU64,
    /// The number of records that a crosswalk could not convert.
    pub(super) left_out: AtomicU64,
    /// How it ended; `None` before its end.
    ended: watch::Sender<Option<Result<(), DumpError>>>,
}

impl DumpState {
    /// The dumps of a data folder.
    pub(crate) fn new(data: &Path) -> Self {
        let listeners = Arc::new(Semaphore::new(LISTENERS_MAX));
        Self {
            folder: Arc::new(DumpFolder::new(data)),
            builds: Mutex::default(),
            swept_epoch: Mutex::default(),
            listeners,
        }
    }

    /// The dump with this key that is being written, after `start` has begun it if it is not.
    ///
    /// # Errors
    ///
    /// As many are written as may at once.
    pub(super) fn build(&self, key: &str, start: impl FnOnce(Arc<Build>)) -> Result<Arc<Build>, Refusal> {
        let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
        builds.retain(|_, build| build.ended.borrow().is_none());
        if let Some(build) = builds.get(key) {
            return Ok(Arc::clone(build));
        }
        if builds.len() >= BUILDS_MAX {
            return Err(Refusal::Busy("as many dumps are written as may be at once; send the request again"));
        }
        let build = Arc::new(Build {
            records: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            ended: watch::Sender::new(None),
        });
        builds.insert(key.to_owned(), Arc::clone(&build));
        start(Arc::clone(&build));
        Ok(build)
    }
}

impl Build {
    pub(super) fn end(&self, result: Result<(), DumpError>) {
        self.ended.send_replace(Some(result));
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// It failed, or has not ended within this time.
    pub(super) async fn wait(&self, time: Duration) -> Result<(), Refusal> {
        let mut ended = self.ended.subscribe();
        let waited = tokio::time::timeout(time, ended.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(result)) => match &*result {
                Some(Err(error)) => Err(error.clone().into()),
                Some(Ok(())) | None => Ok(()),
            },
            _ => Err(Refusal::Building(self.records.load(Ordering::Relaxed))),
        }
    }
}
