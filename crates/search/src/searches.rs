//! Searches in the index: on threads for work that blocks, a few at once, and of each client only some of them.

use crate::index::{IndexError, SearchIndex};
use oaimend_base::clock;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of searches that run at once. Each takes a processor.
const RUNNING_MAX: usize = 2;
/// Maximum number of searches that run or wait. Others are refused at once.
const ADMITTED_MAX: usize = 64;
/// Maximum number of searches of one client that run or wait. The others find places beside it.
const CLIENT_ADMITTED_MAX: usize = 8;
/// Longest wait of a search for its turn. It is refused then.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Learns how each search ended: its failure, and how long it ran.
type Observer = Box<dyn Fn(Option<&IndexError>, Duration) + Send + Sync>;

tokio::task_local! {
    /// The client whose request the task answers.
    static CLIENT: SearchClient;
}

/// A client that searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SearchClient {
    /// Its class.
    pub class: usize,
    /// The address of its network.
    pub network: IpAddr,
}

impl SearchClient {
    /// Answers a request of a client. The searches of all its requests share the places of one client. `None`: only the
    /// places of all clients together limit them.
    pub async fn request<T>(client: Option<Self>, answer: impl Future<Output = T>) -> T {
        match client {
            Some(client) => CLIENT.scope(client, answer).await,
            None => answer.await,
        }
    }
}

/// The searches of a program, in its current index. Clones share them.
#[derive(Clone)]
pub struct Searches(Arc<Shared>);

struct Shared {
    index: RwLock<IndexState>,
    admitted: Arc<Semaphore>,
    /// The number of admitted searches of each client that has some.
    clients: Mutex<HashMap<SearchClient, usize>>,
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
            clients: Mutex::default(),
            running: Arc::new(Semaphore::new(RUNNING_MAX)),
            observe: Box::new(observe),
        }))
    }

    /// Runs a search. If the caller does not wait for its end, it ends nevertheless and keeps its turn meanwhile.
    ///
    /// # Errors
    ///
    /// Those of the search. [`IndexError::Building`] if there is no index yet, [`IndexError::Busy`] if too many searches
    /// wait, of all clients or of this one, [`IndexError::Closed`] after [`Searches::close`], and [`IndexError::Unreadable`] if the search panics.
    pub async fn run<T: Send + 'static>(
        &self,
        search: impl FnOnce(&SearchIndex) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, IndexError> {
        let began = clock::uptime();
        let (result, ran) = match self.turn().await {
            Ok(turn) => {
                let began = clock::uptime();
                let work = tokio::task::spawn_blocking(move || {
                    let Turn { index, _permits, _place } = turn;
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

    /// Uses this index from now on; `None`: there is none for now. After [`Searches::close`] it is closed instead.
    pub fn set_index(&self, index: Option<SearchIndex>) {
        let refused = {
            let mut state = self.0.index.write().unwrap_or_else(PoisonError::into_inner);
            match (&*state, index) {
                (IndexState::Closed, index) => index,
                (_, index) => {
                    *state = index.map_or(IndexState::Absent, IndexState::Open);
                    None
                }
            }
        };
        if let Some(index) = refused {
            index.close();
        }
    }

    /// Closes the index, and refuses all later searches. Blocks on the disk.
    pub fn close(&self) {
        let before = {
            let mut state = self.0.index.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, IndexState::Closed)
        };
        if let IndexState::Open(index) = before {
            index.close();
        }
    }

    /// Waits for the turn of a search.
    async fn turn(&self) -> Result<Turn, IndexError> {
        let place = match CLIENT.try_with(|client| *client) {
            Ok(client) => Some(self.client_place(client)?),
            Err(_) => None,
        };
        let admitted = Arc::clone(&self.0.admitted).try_acquire_owned().map_err(|_| IndexError::Busy)?;
        let running = timeout(WAIT_MAX, Arc::clone(&self.0.running).acquire_owned()).await;
        let running = running.map_err(|_| IndexError::Busy)?.map_err(|_| IndexError::Closed)?;
        Ok(Turn { index: self.index()?, _permits: [admitted, running], _place: place })
    }

    /// A place of this client.
    fn client_place(&self, client: SearchClient) -> Result<ClientPlace, IndexError> {
        let mut clients = self.0.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = clients.entry(client).or_default();
        if *admitted >= CLIENT_ADMITTED_MAX {
            return Err(IndexError::Busy);
        }
        *admitted += 1;
        Ok(ClientPlace { shared: Arc::clone(&self.0), client })
    }
}

/// The turn of a search.
struct Turn {
    index: SearchIndex,
    _permits: [tokio::sync::OwnedSemaphorePermit; 2],
    _place: Option<ClientPlace>,
}

/// The place of a search among those of its client.
struct ClientPlace {
    shared: Arc<Shared>,
    client: SearchClient,
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut clients = self.shared.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(admitted) = clients.get_mut(&self.client) {
            *admitted -= 1;
            if *admitted == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

impl fmt::Debug for Searches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Searches").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IndexSettings;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    /// Searches in an empty index, and the number of searches that failed.
    fn searches(folder: &tempfile::TempDir) -> (Searches, Arc<AtomicUsize>) {
        let failed = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&failed);
        let searches = Searches::new(move |error, _| {
            counted.fetch_add(usize::from(error.is_some()), Ordering::Relaxed);
        });
        let settings = IndexSettings { memory_max_bytes: 16 << 20 };
        searches.set_index(Some(SearchIndex::open(folder.path(), settings).expect("a writable folder")));
        (searches, failed)
    }

    #[tokio::test]
    async fn searches_wait_for_their_turn_and_too_many_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (searches, failed) = searches(&folder);
        let (release, held) = channel::<()>();
        let (held, running): (_, Arc<AtomicUsize>) = (Arc::new(Mutex::new(held)), Arc::default());
        let peak = Arc::default();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..ADMITTED_MAX {
            let (searches, held) = (searches.clone(), Arc::clone(&held));
            let (running, peak): (Arc<AtomicUsize>, Arc<AtomicUsize>) =
                (Arc::clone(&running), Arc::clone(&peak));
            tasks.spawn(async move {
                let search = move |_: &SearchIndex| {
                    peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    // It ends when the sender is dropped.
                    let _ = held.lock().expect("no test panics while it holds this").recv();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                };
                searches.run(search).await
            });
        }
        while searches.0.admitted.available_permits() > 0 || running.load(Ordering::SeqCst) < RUNNING_MAX {
            tokio::task::yield_now().await;
        }
        assert!(matches!(searches.run(|_| Ok(())).await, Err(IndexError::Busy)));
        assert_eq!(failed.load(Ordering::Relaxed), 1);
        drop(release);
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no panic").expect("its turn came");
        }
        assert_eq!(peak.load(Ordering::SeqCst), RUNNING_MAX);
        searches.run(|_| Ok(())).await.expect("all turns are over");
    }

    #[tokio::test]
    async fn a_client_leaves_places_to_others() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (searches, failed) = searches(&folder);
        let client = |number: u8| Some(SearchClient { class: 0, network: IpAddr::from([192, 0, 2, number]) });
        let (release, held) = channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..ADMITTED_MAX {
            let (searches, held) = (searches.clone(), Arc::clone(&held));
            let search = move |_: &SearchIndex| {
                // It ends when the sender is dropped.
                let _ = held.lock().expect("no test panics while it holds this").recv();
                Ok(())
            };
            tasks.spawn(SearchClient::request(client(1), async move { searches.run(search).await }));
        }
        for _ in CLIENT_ADMITTED_MAX..ADMITTED_MAX {
            let refused = tasks.join_next().await.expect("the others wait").expect("no panic");
            assert!(matches!(refused, Err(IndexError::Busy)), "{refused:?}");
        }
        assert_eq!(failed.load(Ordering::Relaxed), ADMITTED_MAX - CLIENT_ADMITTED_MAX);
        let other = searches.clone();
        tasks.spawn(SearchClient::request(client(2), async move { other.run(|_| Ok(())).await }));
        let local = searches.clone();
        tasks.spawn(async move { local.run(|_| Ok(())).await });
        drop(release);
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no panic").expect("its turn came");
        }
        assert!(searches.0.clients.lock().expect("no panic").is_empty());
    }

    #[tokio::test]
    async fn a_search_that_panics_fails_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (searches, failed) = searches(&folder);
        for _ in 0..3 {
            let panicked = searches.run(|_| -> Result<(), _> { panic!("a damaged file") }).await;
            assert!(matches!(panicked, Err(IndexError::Unreadable(_))));
        }
        searches.run(|_| Ok(())).await.expect("the others run");
        assert_eq!(failed.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_closed_index_is_not_opened_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (searches, _) = searches(&folder);
        searches.set_index(None);
        assert!(matches!(searches.run(|_| Ok(())).await, Err(IndexError::Building)));
        searches.close();
        let settings = IndexSettings { memory_max_bytes: 16 << 20 };
        searches.set_index(Some(SearchIndex::open(folder.path(), settings).expect("it is closed")));
        assert!(matches!(searches.run(|_| Ok(())).await, Err(IndexError::Closed)));
        SearchIndex::open(folder.path(), settings).expect("its writer has ended");
    }
}
