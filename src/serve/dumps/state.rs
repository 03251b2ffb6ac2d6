//! The dumps that are being written. All who want the same one wait for one task.

use super::listeners::Listeners;
use super::refusal::Refusal;
use super::store_watch::StoreWatch;
use crate::serve::clients::client_class::ClientNetwork;
use oaimend_dumps::{DumpError, DumpFolder};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of dumps that are written at once.
const BUILDS_MAX: usize = 2;
/// Maximum number of dumps that are written at once for one client, so that none holds all places.
const CLIENT_BUILDS_MAX: usize = 1;

/// The dumps of a server.
#[derive(Debug)]
pub(crate) struct DumpState {
    pub(super) folder: Arc<DumpFolder>,
    builds: Mutex<HashMap<String, Arc<Build>>>,
    /// The epoch of the store whose stale dumps were removed last; `None` since the start.
    pub(super) swept_epoch: Mutex<Option<u64>>,
    pub(super) listeners: Arc<Listeners>,
    /// What wakes them.
    pub(super) watch: Arc<StoreWatch>,
}

/// A dump that is being written.
#[derive(Debug)]
pub(super) struct Build {
    /// The number of records so far.
    pub(super) records: AtomicU64,
    /// The number of records that a crosswalk could not convert.
    pub(super) left_out: AtomicU64,
    /// The client whose request began it; `None` for an operator and for this machine, which have no share.
    client: Option<ClientNetwork>,
    /// How it ended; `None` before its end.
    ended: watch::Sender<Option<Result<(), DumpError>>>,
}

impl DumpState {
    /// The dumps of a data folder.
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            folder: Arc::new(DumpFolder::new(data)),
            builds: Mutex::default(),
            swept_epoch: Mutex::default(),
            listeners: Arc::default(),
            watch: Arc::default(),
        }
    }

    /// The dump with this key that is being written, after `start` has begun it if it is not.
    ///
    /// # Errors
    ///
    /// As many are written as may at once, for all clients or for this one.
    pub(super) fn build(
        &self,
        key: &str,
        client: Option<ClientNetwork>,
        start: impl FnOnce(Arc<Build>),
    ) -> Result<Arc<Build>, Refusal> {
        let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
        builds.retain(|_, build| build.ended.borrow().is_none());
        if let Some(build) = builds.get(key) {
            return Ok(Arc::clone(build));
        }
        let builds_of_client = builds.values().filter(|build| client.is_some() && build.client == client);
        if builds_of_client.count() >= CLIENT_BUILDS_MAX {
            return Err(Refusal::Busy(
                "another dump is being written for your address; request this one when that one is complete",
            ));
        }
        if builds.len() >= BUILDS_MAX {
            return Err(Refusal::Busy("as many dumps are written as may be at once; send the request again"));
        }
        let build = Arc::new(Build {
            records: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            client,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn one_client_does_not_hold_the_places_of_all_dumps() {
        let folder = tempfile::tempdir().expect("a folder");
        let dumps = DumpState::new(folder.path());
        let client = |number: u8| Some(ClientNetwork::of(IpAddr::from([192, 0, 2, number])));
        let build = |key: &str, client| dumps.build(key, client, |_| {});
        let refused = |key: &str, client| match build(key, client) {
            Err(refusal) => refusal.parts().1,
            Ok(_) => panic!("{key} is written"),
        };
        let first = build("a", client(1)).expect("a place");
        assert!(refused("b", client(1)).contains("your address"));
        // Requests for the same dump share it.
        build("a", client(1)).expect("the same dump");
        let second = build("b", client(2)).expect("a place");
        build("b", client(1)).expect("the same dump");
        assert!(refused("c", client(3)).starts_with("as many dumps"));
        assert!(refused("c", None).starts_with("as many dumps"));
        first.end(Ok(()));
        build("c", client(1)).expect("the first one has ended");
        second.end(Ok(()));
        // This machine has no share of its own.
        let local = build("d", None).expect("a place");
        local.end(Ok(()));
        build("e", None).expect("a place");
    }
}
