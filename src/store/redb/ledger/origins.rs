//! The origins of the tokens that were looked up last, in memory: a request for a cached page reads no rows.
//!
//! Invariant: an origin that was read before a token was recorded is not returned after that.

use crate::store::ledger::TokenOrigin;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most origins in memory, about 40 bytes each. When there are more, all are read again.
const ORIGINS_MAX: usize = 1 << 16;

/// A repository, a verb and a token.
pub(super) type TokenName<'a> = (&'a str, &'a str, &'a str);

/// The origins in memory, by the hashes of their tokens.
#[derive(Debug, Default)]
pub(super) struct Origins {
    hasher: RandomState,
    known: Mutex<HashMap<u64, TokenOrigin>>,
}

impl Origins {
    /// The origin of a token; `read` returns that in the rows.
    pub(super) fn find(&self, token: TokenName<'_>, read: impl FnOnce() -> TokenOrigin) -> TokenOrigin {
        let hash = self.hasher.hash_one(token);
        // Locked until the row is read, so that no record comes in between.
        let mut known = self.known();
        if let Some(origin) = known.get(&hash) {
            return *origin;
        }
        if known.len() >= ORIGINS_MAX {
            known.clear();
        }
        let origin = read();
        known.insert(hash, origin);
        origin
    }

    /// Forgets the origin of a token that was recorded.
    pub(super) fn forget(&self, token: TokenName<'_>) {
        let hash = self.hasher.hash_one(token);
        self.known().remove(&hash);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, TokenOrigin>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
