//! The requests that are being answered, for operators.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The requests to repositories that are being answered. Their number is limited by that of connections.
#[derive(Debug, Default)]
pub(crate) struct LiveRequests(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    next: u64,
    /// In the order of their begin.
    live: BTreeMap<u64, LiveRequest>,
}

/// A request that is being answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveRequest {
    /// The name of the repository.
    pub(crate) repository: String,
    /// The arguments, at most [`QUERY_BYTES_MAX`] bytes of them.
    pub(crate) query: String,
    /// The class of the client; `None` for a client without a quota.
    pub(crate) class: Option<String>,
    /// When it arrived.
    pub(crate) began: SystemTime,
}

/// Longest query that is kept, in bytes.
const QUERY_BYTES_MAX: usize = 500;

/// The mark of a request. Dropping it ends the request.
#[derive(Debug)]
pub(crate) struct LiveRequestMark {
    requests: Arc<LiveRequests>,
    number: u64,
}

impl LiveRequests {
    /// Adds a request.
    pub(crate) fn begin(self: &Arc<Self>, mut request: LiveRequest) -> LiveRequestMark {
        request.query.truncate(request.query.floor_char_boundary(QUERY_BYTES_MAX));
        let mut requests = self.lock();
        let number = requests.next;
        requests.next += 1;
        requests.live.insert(number, request);
        LiveRequestMark { requests: Arc::clone(self), number }
    }

    /// The requests, the oldest first.
    pub(crate) fn all(&self) -> Vec<LiveRequest> {
        self.lock().live.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveRequestMark {
    fn drop(&mut self) {
        self.requests.lock().live.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_listed_until_their_mark_is_dropped() {
        let requests = Arc::new(LiveRequests::default());
        let request = |query: &str| LiveRequest {
            repository: "x".to_owned(),
            query: query.to_owned(),
            class: None,
            began: SystemTime::UNIX_EPOCH,
        };
        let first = requests.begin(request("a"));
        let second = requests.begin(request(&"é".repeat(QUERY_BYTES_MAX)));
        let lengths: Vec<usize> = requests.all().iter().map(|request| request.query.len()).collect();
        assert_eq!(lengths, [1, QUERY_BYTES_MAX]);
        drop(first);
        assert_eq!(requests.all().len(), 1);
        drop(second);
        assert_eq!(requests.all(), []);
    }
}
