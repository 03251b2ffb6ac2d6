//! What requests to federations learn of their members, for later requests of this process.

use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::Granularity;
use oaimend_store::ListedFormat;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long an Identify response and the formats of a member are fresh, in seconds. An older one is used if the member
/// fails.
pub(crate) const FRESH_SECS: i64 = 600;
/// How long a member that did not answer Identify is not queried again, in seconds.
const QUERIED_SECS: i64 = 60;
/// How long the place of a list that could not begin in time is known, in seconds.
const BEGUN_SECS: i64 = 600;
/// Maximum number of lists that could not begin in time.
const BEGUN_MAX: usize = 256;

/// What requests to federations learn of their members. All federations of a server share it.
#[derive(Debug, Default)]
pub struct FederationState {
    facts: Mutex<HashMap<String, (UnixSecs, MemberFacts)>>,
    formats: Mutex<HashMap<String, (UnixSecs, Vec<ListedFormat>)>>,
    /// When members were last queried for their facts.
    queried: Mutex<HashMap<String, UnixSecs>>,
    /// The lists that found no record in time, by their federations and requests: tokens for the members that follow.
    begun: Mutex<HashMap<String, (UnixSecs, String)>>,
    /// Held by the request that asks a member for its facts or formats, so that others wait for what it learns. One for
    /// each member: a slow member holds up only those who need it.
    refreshing: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The fields of an Identify response that a federation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberFacts {
    pub(crate) granularity: Granularity,
    /// `deletedRecord`.
    pub(crate) deleted_record: String,
    pub(crate) earliest_secs: Option<UnixSecs>,
    pub(crate) admin_emails: Vec<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value with its time, if it is fresh.
fn fresh<T: Clone>(known: Option<&(UnixSecs, T)>, now_secs: UnixSecs) -> Option<T> {
    let (at_secs, value) = known?;
    (now_secs.since(*at_secs) <= FRESH_SECS).then(|| value.clone())
}

impl FederationState {
    /// The facts of a member, however old.
    pub(crate) fn facts(&self, id: &str) -> Option<MemberFacts> {
        lock(&self.facts).get(id).map(|(_, facts)| facts.clone())
    }

    pub(crate) fn has_fresh_facts(&self, id: &str, now_secs: UnixSecs) -> bool {
        fresh(lock(&self.facts).get(id), now_secs).is_some()
    }

    pub(crate) fn note_facts(&self, id: &str, now_secs: UnixSecs, facts: MemberFacts) {
        lock(&self.facts).insert(id.to_owned(), (now_secs, facts));
    }

    /// Whether a member was queried for its facts so lately that it is not queried again.
    pub(crate) fn was_queried_lately(&self, id: &str, now_secs: UnixSecs) -> bool {
        lock(&self.queried).get(id).is_some_and(|at_secs| now_secs.since(*at_secs) <= QUERIED_SECS)
    }

    pub(crate) fn note_queried(&self, id: &str, now_secs: UnixSecs) {
        lock(&self.queried).insert(id.to_owned(), now_secs);
    }

    /// Waits until no other request asks this member for its facts or formats.
    pub(crate) async fn turn_at(&self, id: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = Arc::clone(lock(&self.refreshing).entry(id.to_owned()).or_default());
        turn.lock_owned().await
    }

    /// The formats of a member, however old.
    pub(crate) fn formats(&self, id: &str) -> Option<Vec<ListedFormat>> {
        lock(&self.formats).get(id).map(|(_, formats)| formats.clone())
    }

    pub(crate) fn has_fresh_formats(&self, id: &str, now_secs: UnixSecs) -> bool {
        fresh(lock(&self.formats).get(id), now_secs).is_some()
    }

    pub(crate) fn note_formats(&self, id: &str, now_secs: UnixSecs, formats: Vec<ListedFormat>) {
        lock(&self.formats).insert(id.to_owned(), (now_secs, formats));
    }

    /// Keeps the place of a list that found no record in time, for the same request.
    pub(crate) fn keep_begun(&self, request: String, now_secs: UnixSecs, token: String) {
        let mut begun = lock(&self.begun);
        begun.retain(|_, (at_secs, _)| now_secs.since(*at_secs) <= BEGUN_SECS);
        if begun.len() >= BEGUN_MAX {
            let oldest =
                begun.iter().min_by_key(|(_, (at_secs, _))| *at_secs).map(|(request, _)| request.clone());
            begun.remove(&oldest.unwrap_or_default());
        }
        begun.insert(request, (now_secs, token));
    }

    /// The place of such a list.
    pub(crate) fn begun(&self, request: &str, now_secs: UnixSecs) -> Option<String> {
        let begun = lock(&self.begun);
        let (at_secs, token) = begun.get(request)?;
        (now_secs.since(*at_secs) <= BEGUN_SECS).then(|| token.clone())
    }

    /// The next request for the list begins at its start.
    pub(crate) fn forget_begun(&self, request: &str) {
        lock(&self.begun).remove(request);
    }
}
