//! The origins of the tokens that were recorded or looked up last, in memory: a request for a cached page reads no rows.
//!
//! Invariant: the origin in memory is that in the rows, because both change under the lock of the rows.

use oaimend_oai::Verb;
use oaimend_store::RepositoryId;
use oaimend_store::ledger::TokenOrigin;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of origins in memory, about 40 bytes each. When it is reached, all are forgotten and read again.
const ORIGINS_MAX: usize = 1 << 16;

/// A repository, a verb and a token.
pub(super) type TokenName<'a> = (RepositoryId<'a>, Verb, &'a str);

/// The origins in memory, by the hashes of their tokens.
#[derive(Debug, Default)]
pub(super) struct Origins {
    hasher: RandomState,
    known: Mutex<HashMap<u64, TokenOrigin>>,
}

impl Origins {
    /// The origin of a token, if it is in memory.
    pub(super) fn find(&self, token: TokenName<'_>) -> Option<TokenOrigin> {
        self.known().get(&self.hasher.hash_one(token)).copied()
    }

    /// Notes the origin of a token that is read or recorded. To be called while the rows are locked.
    pub(super) fn note(&self, token: TokenName<'_>, origin: TokenOrigin) {
        let mut known = self.known();
        if known.len() >= ORIGINS_MAX {
            known.clear();
        }
        known.insert(self.hasher.hash_one(token), origin);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, TokenOrigin>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
