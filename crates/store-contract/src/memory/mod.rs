//! All stores in memory: simple, slow for many rows, and with the policy that every store shares.

mod full_texts;
mod identifiers;
mod ledger;
mod mirror;
mod quarantine;
mod saved;
mod views;

use crate::{Backend, Stores};
use full_texts::FullTextRows;
use identifiers::IdentifierRows;
use ledger::LedgerRows;
use mirror::MirrorRows;
use oaimend_store::{ActivityLog, DetectedCapabilities, RepositoryProfiles};
use quarantine::Entries;
use saved::Saved;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use views::ViewRows;

/// Stores in memory, which keep what they contain while this exists.
#[derive(Debug, Default)]
pub struct Memory(Arc<Mutex<Shared>>);

/// What the stores contain.
#[derive(Debug, Default)]
struct Shared {
    ledger: LedgerRows,
    mirror: MirrorRows,
    entries: Entries,
    saved: Saved,
    views: ViewRows,
    identifiers: IdentifierRows,
    full_texts: FullTextRows,
}

/// One store, until it is closed.
#[derive(Debug)]
struct Handle {
    shared: Arc<Mutex<Shared>>,
    is_closed: AtomicBool,
}

impl Handle {
    /// The result of `task`; `None` if the store is closed.
    fn with<T>(&self, task: impl FnOnce(&mut Shared) -> T) -> Option<T> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed.load(Ordering::Relaxed) { None } else { Some(task(&mut shared)) }
    }

    fn end(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Memory {
    fn handle(&self) -> Arc<Handle> {
        Arc::new(Handle { shared: Arc::clone(&self.0), is_closed: AtomicBool::new(false) })
    }
}

impl Backend for Memory {
    fn open(&self) -> Stores {
        let saved = self.0.lock().unwrap_or_else(PoisonError::into_inner).saved.clone();
        Stores {
            ledger: self.handle(),
            quarantine: self.handle(),
            profiles: RepositoryProfiles::new(self.handle(), saved.profiles),
            capabilities: DetectedCapabilities::new(self.handle(), saved.capabilities),
            activity: ActivityLog::new(self.handle(), saved.activity),
            notices: self.handle(),
            views: self.handle(),
            identifiers: self.handle(),
            full_texts: self.handle(),
        }
    }
}
