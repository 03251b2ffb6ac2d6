//! Searches in the index: on threads for work that blocks, a few at once.

use crate::index::{IndexError, SearchIndex};
use oaimend_base::clock;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of searches that run at once. Each takes a processor.
const RUNNING_MAX: usize = 2;
/// Maximum number of searches that run or wait. Others are refused at once.
const ADMITTED_MAX: usize = 64;
/// Longest wait of a search for its turn. It is refused then.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Learns how each search ended: its failure, and how long it ran.
type Observer = Box<dyn Fn(Option<&IndexError>, Duration) + Send + Sync>;

/// The searches of a program, in its current index. Clones share them.
#[derive(Clone)]
pub struct Searches(Arc<Shared>);

struct Shared {
    index: RwLock<IndexState>,
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
    observe: Observer,
}

/// Whether there is an index.
#[derive(Clone)]
enum IndexState {
    /// Not yet, or it is being replaced.
    Absent,
    Open(SearchIndex),
    /// Never again: another process has the data folder.
    Closed,
}

impl Searches {
    /// No index yet. `observe` learns how each search ended, and how long it ran without its wait.
    pub fn new(observe: impl Fn(Option<&IndexError>, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            index: RwLock::new(IndexState::Absent),
            admitted: Arc::new(Semaphore::new(ADMITTED_MAX)),
            running: Arc::new(Semaphore::new(RUNNING_MAX)),
            observe: Box::new(observe),
        }))
    }

    /// Runs a search. If the caller does not wait for its end, it ends nevertheless and keeps its turn meanwhile.
    ///
    /// # Errors
    ///
    /// Those of the search. [`IndexError::Building`] if there is no index yet, [`IndexError::Busy`] if too many searches
    /// wait, [`IndexError::Closed`] after [`Searches::close`], and [`IndexError::Unreadable`] if the search panics.
    pub async fn run<T: Send + 'static>(
        &self,
        search: impl FnOnce(&SearchIndex) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, IndexError> {
        let began = clock::uptime();
        let (result, ran) = match self.turn().await {
            Ok(turn) => {
                let began = clock::uptime();
                let work = tokio::task::spawn_blocking(move || {
                    let Turn { index, _permits } = turn;
                    search(&index)
                });
                let result =
                    work.await.unwrap_or_else(|error| Err(IndexError::Unreadable(error.to_string())));
                (result, clock::uptime().saturating_sub(began))
            }
            Err(error) => (Err(error), clock::uptime().saturating_sub(began)),
        };
        (self.0.observe)(result.as_ref().err(), ran);
        result
    }

    /// The index, if there is one.
    ///
    /// # Errors
    ///
    /// [`IndexError::Building`] or [`IndexError::Closed`].
    pub fn index(&self) -> Result<SearchIndex, IndexError> {
        match &*self.0.index.read().unwrap_or_else(PoisonError::into_inner) {
            IndexState::Open(index) => Ok(index.clone()),
            IndexState::Absent => Err(IndexError::Building),
            IndexState::Closed => Err(IndexError::Closed),
        }
    }

    /// Uses this index from now on; `None`: there is none for now. Has no effect after [`Searches::close`].
    pub fn set_index(&self, index: Option<SearchIndex>) {
        let mut state = self.0.index.write().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, IndexState::Closed) {
            *state = index.map_or(IndexState::Absent, IndexState::Open);
        }
    }

    /// Refuses all later searches.
    pub fn close(&self) {
        *self.0.index.write().unwrap_or_else(PoisonError::into_inner) = IndexState::Closed;
    }

    /// Waits for the turn of a search.
    async fn turn(&self) -> Result<Turn, IndexError> {
        let admitted = Arc::clone(&self.0.admitted).try_acquire_owned().map_err(|_| IndexError::Busy)?;
        let running = timeout(WAIT_MAX, Arc::clone(&self.0.running).acquire_owned()).await;
        let running = running.map_err(|_| IndexError::Busy)?.map_err(|_| IndexError::Closed)?;
        Ok(Turn { index: self.index()?, _permits: [admitted, running] })
    }
}

/// The turn of a search.
struct Turn {
    index: SearchIndex,
    _permits: [tokio::sync::OwnedSemaphorePermit; 2],
}

impl fmt::Debug for Searches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searches").finish_non_exhaustive()
    }
}
