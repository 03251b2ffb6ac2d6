//! The last indexes of parts, which need a read of the store for each part.

use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// Maximum number of bytes of all kept indexes. One of 50,000 parts has about 20 MiB.
const INDEXES_BYTES_MAX: usize = 32 << 20;

/// The indexes that were made last, by the tags of their versions.
#[derive(Debug, Default)]
pub(crate) struct SyncIndexes {
    kept: Mutex<VecDeque<(String, Bytes)>>,
    /// The versions whose index is being made.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl SyncIndexes {
    /// Waits until no other request makes the index of this version. The memory depends on the requests that wait.
    pub(super) async fn turn(&self, tag: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(tag.to_owned()).or_default())
        };
        turn.lock_owned().await
    }

    /// The index of a version; `None` if it is not kept.
    pub(super) fn find(&self, tag: &str) -> Option<Bytes> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(kept, _)| kept == tag).map(|(_, index)| index.clone())
    }

    /// Keeps an index. The oldest ones make room. One that is too long is not kept.
    pub(super) fn keep(&self, tag: &str, index: Bytes) {
        if index.len() > INDEXES_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(kept, _)| kept != tag);
        kept.push_back((tag.to_owned(), index));
        let mut bytes: usize = kept.iter().map(|(_, index)| index.len()).sum();
        while bytes > INDEXES_BYTES_MAX {
            bytes -= kept.pop_front().map_or(bytes, |(_, index)| index.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn the_last_indexes_are_kept_within_their_limit() {
        let indexes = SyncIndexes::default();
        let half = Bytes::from(vec![0; INDEXES_BYTES_MAX / 2]);
        indexes.keep("a", half.clone());
        indexes.keep("b", half.clone());
        indexes.keep("a", half.clone());
        assert!(indexes.find("a").is_some() && indexes.find("b").is_some());
        indexes.keep("c", half);
        assert!(indexes.find("b").is_none() && indexes.find("a").is_some() && indexes.find("c").is_some());
        indexes.keep("d", Bytes::from(vec![0; INDEXES_BYTES_MAX + 1]));
        assert!(indexes.find("d").is_none() && indexes.find("c").is_some());
    }

    #[tokio::test]
    async fn one_request_at_a_time_makes_the_index_of_a_version() {
        let indexes = SyncIndexes::default();
        let first = indexes.turn("a").await;
        let mut second = Box::pin(indexes.turn("a"));
        assert!((&mut second).now_or_never().is_none(), "it waits");
        drop(indexes.turn("b").await);
        assert_eq!(indexes.turns.lock().expect("no panic").len(), 2);
        drop(first);
        drop(second.await);
        drop(indexes.turn("c").await);
        assert_eq!(indexes.turns.lock().expect("no panic").len(), 1, "only those that are used stay");
    }
}
