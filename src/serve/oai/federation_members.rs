//! The members of federations, which change with the configuration alone.

use crate::config::FederationFile;
use oaimend_federation::Member;
use oaimend_oai::UnixSecs;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The members of each federation, by its path.
#[derive(Debug, Default)]
pub(crate) struct KnownMembers(Mutex<HashMap<String, MembersAt>>);

/// Members, and what they were made of.
#[derive(Debug)]
struct MembersAt {
    file: Option<Arc<FederationFile>>,
    created: Arc<CreationTimes>,
    members: Arc<[Member]>,
}

/// The creationTime of each repository, by its baseURL.
pub(super) type CreationTimes = BTreeMap<String, UnixSecs>;

impl MembersAt {
    fn is_of(&self, file: Option<&Arc<FederationFile>>, created: &Arc<CreationTimes>) -> bool {
        let is_same_file = self.file.as_ref().map(Arc::as_ptr) == file.map(Arc::as_ptr);
        is_same_file && Arc::ptr_eq(&self.created, created)
    }
}

impl KnownMembers {
    /// The members of a federation with this file, at this state of the index. They are made at its first request.
    pub(super) fn of(
        &self,
        path: &str,
        (file, created): (Option<&Arc<FederationFile>>, &Arc<CreationTimes>),
        make: impl FnOnce() -> Vec<Member>,
    ) -> Arc<[Member]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(path).filter(|known| known.is_of(file, created)) {
            return Arc::clone(&known.members);
        }
        // Federations that are gone leave with the state of the index that contained them.
        known.retain(|_, other| Arc::ptr_eq(&other.created, created));
        let members = Member::in_index_order(make());
        let (file, created) = (file.cloned(), Arc::clone(created));
        known.insert(path.to_owned(), MembersAt { file, created, members: Arc::clone(&members) });
        members
    }
}
