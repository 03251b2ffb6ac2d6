//! What operators must know of folders.

use crate::notify::FolderStatus;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The folders of all repositories, by their ids.
#[derive(Debug, Default)]
pub(crate) struct FolderStatuses(Mutex<BTreeMap<String, FolderStatus>>);

impl FolderStatuses {
    /// The status of the folder of a repository; `None` if it has none, or was not looked at yet.
    pub(crate) fn of(&self, id: &str) -> Option<FolderStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(super) fn set(&self, id: &str, status: FolderStatus) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), status);
    }

    /// Forgets those of other repositories.
    pub(super) fn retain(&self, has_folder: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| has_folder(id));
    }
}
