//! The spool: an answer on its way, written once at the speed of its source,
//! read by any number of harvesters at theirs.
//!
//! Sits between the conversation with a source and all who wait for its page.
//! The first MiB is held in memory, what is more lies in a file, and a page
//! that is worth it becomes an entry of [`Pages`] when it is whole.
//!
//! Must stay true: a reader gets all bytes in order and then the end or an
//! error, never an end that was none; what is held is bounded by
//! `entry_bytes_max`. A page longer than that is not kept: from there on the
//! spool is a ring, which nobody joins any more and in which the source waits
//! for the slowest of its readers. So is, in memory, the rest of a page for which
//! the disk has no room.

mod writer;

pub(super) use writer::Writer;

use super::rules::Plan;
use crate::clock;
use crate::store::{PageKey, Pages, Part};
use crate::upstream::ByteRope;
use bytes::Bytes;
use pingora_http::ResponseHeader;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// One answer on its way.
#[derive(Debug)]
pub(in crate::proxy) struct Fill {
    /// Tells it from others for the same page.
    pub(super) id: u64,
    pub(super) key: PageKey,
    pub(super) plan: Plan,
    begun: OnceLock<Begun>,
    state: Mutex<State>,
    /// Nobody joins it any more. Changed only with the storage's table locked.
    pub(super) is_retired: AtomicBool,
    /// Told when there is more to read, or the end.
    progress: Notify,
    /// Told when a reader has made room, or is gone.
    room: Notify,
}

/// How an answer begins.
#[derive(Debug)]
pub(in crate::proxy) struct Begun {
    pub(in crate::proxy) head: ResponseHeader,
    /// When the head was there.
    pub(super) at: SystemTime,
}

#[derive(Debug)]
struct State {
    held: Held,
    /// Most bytes that are held.
    capacity: u64,
    /// Bytes that came so far.
    written: u64,
    /// How far each reader is.
    readers: BTreeMap<u64, u64>,
    next_reader: u64,
    /// Must not be kept: it was purged while it was under way, or it is too long.
    is_passing: bool,
    /// Longer than what is held: it wraps around.
    is_ring: bool,
    /// All of it came. It ends when it is kept, or found not to be worth that.
    is_written: bool,
    end: End,
}

/// Where the bytes are.
#[derive(Debug)]
enum Held {
    /// As they came.
    TagCache(ByteRope),
    /// A ring in memory: byte `n` of the page is at `n % capacity`.
    Ring(Vec<u8>),
    /// In a file, where they may wrap around like that too.
    File(Arc<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It goes on.
    Open,
    /// It was whole at that time. Who asked before may share it, and until
    /// `answers_until` everybody.
    Whole { at: SystemTime, answers_until: Option<SystemTime> },
    /// There will be no more of it.
    Broken,
}

/// Reads a fill from its start.
#[derive(Debug)]
pub(in crate::proxy) struct Reader {
    pub(in crate::proxy) fill: Arc<Fill>,
    id: u64,
    at: u64,
}

/// Why a page is over before its end.
#[derive(Debug, thiserror::Error)]
pub(in crate::proxy) enum Over {
    #[error("nobody reads the page any more, and it would not be kept")]
    Unwanted,
    #[error("the page broke off")]
    Broken,
    #[error("the spool of the page cannot be used: {0}; check space and rights of the data folder")]
    Disk(#[from] std::io::Error),
    #[error("a page in the cache is damaged: {0}")]
    Damaged(std::io::Error),
}

/// What a fill is made of.
pub(super) struct Recipe {
    pub(super) id: u64,
    pub(super) key: PageKey,
    pub(super) plan: Plan,
    /// Most bytes that are held.
    pub(super) capacity: u64,
}

impl Fill {
    /// A page that is asked for.
    pub(super) fn begin(recipe: Recipe, pages: Arc<Pages>) -> Writer {
        let Recipe { id, key, plan, capacity } = recipe;
        let state = State {
            held: Held::TagCache(ByteRope::default()),
            capacity: capacity.max(PIECE_BYTES as u64),
            written: 0,
            readers: BTreeMap::new(),
            next_reader: 0,
            is_passing: !plan.is_kept,
            is_ring: false,
            is_written: false,
            end: End::Open,
        };
        let fill = Self {
            id,
            key,
            plan,
            begun: OnceLock::new(),
            state: Mutex::new(state),
            is_retired: AtomicBool::new(false),
            progress: Notify::new(),
            room: Notify::new(),
        };
        Writer::new(Arc::new(fill), pages)
    }

    /// Whether it has begun, nobody reads it and it would not be kept. Until it begins somebody wants it: a
    /// harvester that gave up waiting asks again.
    pub(super) fn is_unwanted(&self) -> bool {
        let state = self.state();
        self.begun().is_some() && state.is_passing && state.readers.is_empty()
    }

    /// How it begins, once its head is there.
    pub(in crate::proxy) fn begun(&self) -> Option<&Begun> {
        self.begun.get()
    }

    /// How long ago it began, in seconds.
    pub(in crate::proxy) fn age_secs(&self) -> u64 {
        let age = self.begun().and_then(|begun| clock::now().duration_since(begun.at).ok());
        age.unwrap_or_default().as_secs()
    }

    /// Waits until its head is there.
    ///
    /// # Errors
    ///
    /// There is none: the conversation with the source is over.
    pub(in crate::proxy) async fn head(&self) -> Result<&ResponseHeader, Over> {
        let known = || match (self.begun(), self.ended()) {
            (Some(begun), _) => Some(Ok(&begun.head)),
            (None, Some(_)) => Some(Err(Over::Broken)),
            (None, None) => None,
        };
        until(&self.progress, known).await
    }

    /// Whether a request that came at `arrived` may be answered with it.
    pub(super) fn is_for(&self, arrived: SystemTime, now: SystemTime) -> bool {
        let state = self.state();
        let is_near =
            self.plan.is_shared || self.begun().is_none_or(|begun| arrived <= begun.at + JOIN_WINDOW);
        match state.end {
            _ if state.is_ring => false,
            End::Open => is_near,
            End::Whole { at, answers_until } => {
                (is_near && arrived <= at) || answers_until.is_some_and(|until| now < until)
            }
            End::Broken => false,
        }
    }

    /// Its length, once it is over, and whole.
    pub(in crate::proxy) fn whole_bytes(&self) -> Option<u64> {
        let state = self.state();
        matches!(state.end, End::Whole { .. }).then_some(state.written)
    }

    /// Whether it was over at a time.
    pub(super) fn was_over(&self, at: SystemTime) -> bool {
        matches!(self.state().end, End::Whole { at: ended, .. } if ended < at)
    }

    /// Whether all of it is there, though it may be on its way to the disk yet.
    pub(in crate::proxy) fn is_written(&self) -> bool {
        self.state().is_written
    }

    /// What it takes in memory, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        match &self.state().held {
            Held::TagCache(memory) => memory.len() as u64,
            Held::Ring(ring) => ring.len() as u64,
            Held::File(_) => 0,
        }
    }

    /// Whether it was whole, once it is over.
    pub(in crate::proxy) fn ended(&self) -> Option<bool> {
        match self.state().end {
            End::Open => None,
            End::Whole { .. } => Some(true),
            End::Broken => Some(false),
        }
    }

    /// A reader from the start. Nobody gets one who comes to a ring, whose beginning may be written over at
    /// this moment.
    pub(super) fn reader(self: &Arc<Self>) -> Option<Reader> {
        let mut state = self.state();
        (!state.is_ring).then(|| self.admit(&mut state))
    }

    fn admit(self: &Arc<Self>, state: &mut State) -> Reader {
        let id = state.next_reader;
        state.next_reader += 1;
        state.readers.insert(id, 0);
        Reader { fill: Arc::clone(self), id, at: 0 }
    }

    /// It must not be kept.
    pub(super) fn purge(&self) {
        self.state().is_passing = true;
        self.room.notify_waiters();
    }

    fn leave(&self, reader: u64) {
        self.state().readers.remove(&reader);
        self.room.notify_waiters();
    }

    fn finish(&self, end: End) {
        let mut state = self.state();
        if state.end == End::Open {
            state.end = end;
        }
        drop(state);
        self.progress.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether `count` more bytes can be held; makes a ring of what gets too long.
    fn has_room(&mut self, count: u64) -> Result<bool, Over> {
        if self.written + count <= self.capacity {
            return Ok(true);
        }
        self.is_ring = true;
        self.is_passing = true;
        let slowest = self.readers.values().copied().min().ok_or(Over::Unwanted)?;
        Ok(self.written + count - slowest <= self.capacity)
    }

    /// Makes a ring in memory of what is held, if no reader needs the file any more.
    fn forget_file(&mut self) -> Result<bool, Over> {
        self.is_ring = true;
        self.is_passing = true;
        let slowest = self.readers.values().copied().min().ok_or(Over::Unwanted)?;
        if matches!(self.held, Held::File(_)) {
            if slowest < self.written {
                return Ok(false);
            }
            self.held = Held::Ring(vec![0; usize::try_from(MEMORY_BYTES).unwrap_or_default()]);
        }
        self.capacity = MEMORY_BYTES;
        Ok(true)
    }

    /// The file that holds the bytes, or what is to be written to it first.
    fn part(&self) -> Result<Arc<Part>, ByteRope> {
        match &self.held {
            Held::File(part) => Ok(Arc::clone(part)),
            Held::TagCache(memory) => Err(memory.clone()),
            // What wraps around in memory goes to no file any more.
            Held::Ring(_) => Err(ByteRope::default()),
        }
    }

    /// Takes bytes into memory, if they are to be there.
    fn remember(&mut self, bytes: &Bytes) -> bool {
        let (written, capacity) = (self.written, self.capacity);
        if let Held::TagCache(memory) = &mut self.held {
            if written + bytes.len() as u64 <= MEMORY_BYTES.min(capacity) {
                memory.push(bytes.clone());
                return true;
            }
            if capacity > MEMORY_BYTES {
                return false;
            }
            self.held = Held::Ring(memory.to_vec());
        }
        let Held::Ring(memory) = &mut self.held else { return false };
        for (at, run) in runs(written, bytes, capacity) {
            let at = index(at);
            let known = run.len().min(memory.len().saturating_sub(at));
            let (over, behind) = run.split_at(known);
            if let Some(place) = memory.get_mut(at..at + known) {
                place.copy_from_slice(over);
            }
            memory.extend_from_slice(behind);
        }
        true
    }
}

/// A place in memory; none is as large as what stands for one that cannot be.
fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// The one or two runs of bytes in a ring, each with its place.
fn runs(written: u64, bytes: &[u8], capacity: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let at = written % capacity;
    let fits = usize::try_from(capacity - at).unwrap_or(usize::MAX).min(bytes.len());
    let (first, second) = bytes.split_at(fits);
    [(at, first), (0, second)].into_iter().filter(|(_, run)| !run.is_empty())
}

/// Waits until there is an answer; each time that it is told it looks again.
async fn until<T>(told: &Notify, mut answer: impl FnMut() -> Option<T>) -> T {
    loop {
        // Made before the look, so that what is told behind it is heard.
        let again = told.notified();
        if let Some(answer) = answer() {
            return answer;
        }
        again.await;
    }
}

fn once_true(is_so: Result<bool, Over>) -> Option<Result<(), Over>> {
    is_so.map(|is_so| is_so.then_some(())).transpose()
}

impl Reader {
    /// Whether there is something to read, or an end.
    pub(in crate::proxy) fn has_more(&self) -> bool {
        let state = self.fill.state();
        state.written > self.at || state.end != End::Open
    }

    /// The next bytes; `None` is the end of a whole page.
    ///
    /// Nothing is lost when this is dropped before it is done.
    ///
    /// # Errors
    ///
    /// The page broke off, or the disk fails.
    pub(in crate::proxy) async fn next(&mut self) -> Result<Option<Bytes>, Over> {
        loop {
            let fill = Arc::clone(&self.fill);
            // Made before the look, so that what is told behind it is heard.
            let more = fill.progress.notified();
            let part = {
                let state = self.fill.state();
                let there = state.written - self.at;
                if there == 0 {
                    match state.end {
                        End::Open => None,
                        End::Whole { .. } => return Ok(None),
                        End::Broken => return Err(Over::Broken),
                    }
                } else {
                    let at = self.at % state.capacity;
                    let count = there.min(PIECE_BYTES as u64).min(state.capacity - at);
                    match &state.held {
                        Held::TagCache(memory) => {
                            let bytes = memory.read(index(at), index(count));
                            drop(state);
                            if bytes.is_empty() {
                                return Err(Over::Broken);
                            }
                            self.advance(bytes.len() as u64);
                            return Ok(Some(bytes));
                        }
                        Held::Ring(ring) => {
                            let bytes = ring.get(index(at)..index(at + count)).ok_or(Over::Broken)?;
                            let bytes = Bytes::copy_from_slice(bytes);
                            drop(state);
                            self.advance(count);
                            return Ok(Some(bytes));
                        }
                        Held::File(part) => Some((Arc::clone(part), at, count)),
                    }
                }
            };
            let Some((part, at, count)) = part else {
                more.await;
                continue;
            };
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; usize::try_from(count).unwrap_or_default()];
                part.read(at, &mut bytes).map(|()| bytes)
            });
            let bytes = read.await.map_err(std::io::Error::other).flatten()?;
            self.advance(count);
            return Ok(Some(bytes.into()));
        }
    }

    fn advance(&mut self, count: u64) {
        self.at += count;
        let mut state = self.fill.state();
        if let Some(at) = state.readers.get_mut(&self.id) {
            *at = self.at;
        }
        // Before it is a ring nobody waits for room.
        if state.is_ring {
            self.fill.room.notify_waiters();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.fill.leave(self.id);
    }
}

/// What is read and written at once, in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// Longest page that is held in memory, in bytes; longer ones lie in a file.
const MEMORY_BYTES: u64 = 1 << 20;
/// How long after its first record the first page of a list may still be shared.
const JOIN_WINDOW: Duration = Duration::from_secs(5);
