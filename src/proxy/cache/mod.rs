//! The cache: one conversation for all who ask the same at the same time, and
//! pages that are kept.
//!
//! Sits between the phases of pingora (`super`) and the source. A page that is not kept is begun
//! by the request that asks for it first, and joined by the others. `rules` say what is kept for how
//! long, `fill` is the spool that everybody reads, `storage` holds the pages under way and finds
//! those on disk, which are [`Pages`](crate::store::Pages).
//!
//! Must stay true: requests that are alike and come together are one
//! conversation, also when it fails; a page that is kept is what the source
//! meant, with the `responseDate` of its fetch; nobody's slowness holds the
//! source but that of the last reader of a page longer than the spool.

mod fill;
mod rules;
mod storage;
#[cfg(test)]
mod tests;

pub(super) use fill::{Fill, Over, Reader};
pub(super) use storage::KeptPage;

use super::heads;
use crate::clock;
use crate::config::{self, Mapping};
use crate::error::Error;
use crate::oai::Request;
use crate::store::{PageKey, Pages, Size};
use crate::upstream::{Account, DetachedTask, Event, EventStream, Failure, Job, answer};
use fill::{Recipe, Writer};
use rules::Plan;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use storage::{Joined, LINGER, OnDisk, PageStorage};

/// The cache of one server. Cheap to clone; all clones are one.
///
/// The storage lives for ever, since its threads must not be waited for in a task: each server leaves a few
/// empty tables behind when it is gone.
#[derive(Clone)]
pub(super) struct Cache {
    storage: &'static PageStorage,
    config: Arc<config::Cache>,
    generations: Arc<Mutex<HashMap<String, Generation>>>,
}

/// A mapping, and what tells its pages from those of the one before.
struct Generation {
    mapping: Arc<Mapping>,
    text: Arc<str>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("config", &self.config).finish_non_exhaustive()
    }
}

/// What one request wants of the cache, and what it has got.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    cache: Cache,
    key: PageKey,
    plan: Plan,
    arrived: SystemTime,
    got: Got,
    /// A page was found that is too old.
    is_old_known: bool,
    /// The source was asked for this request.
    has_asked: bool,
    /// The page under way that it shares.
    pub(super) shared: Option<Arc<Fill>>,
}

/// How a request came to its answer: label of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// By a conversation of its own.
    Miss,
    /// By the conversation of another request.
    Collapsed,
    /// By a page that is kept.
    Hit,
    /// By an old page, since the source fails.
    Stale,
}

impl Got {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Miss => "miss",
            Self::Collapsed => "collapsed",
            Self::Hit => "hit",
            Self::Stale => "stale",
        }
    }
}

impl Cache {
    /// Opens the cache in the data folder; `None` when it is off.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub(super) fn open(data: &Path, config: config::Cache) -> Result<Option<Self>, Error> {
        if !config.enabled {
            return Ok(None);
        }
        let pages = Pages::open(data, config.bytes_max)?;
        let storage = PageStorage::new(pages)
            .map_err(|error| Error::reading(data, error, "allow the program more threads"))?;
        let storage: &'static PageStorage = Box::leak(Box::new(storage));
        Ok(Some(Self { storage, config: Arc::new(config), generations: Arc::default() }))
    }

    fn generation(&self, mapping: &Arc<Mapping>) -> Arc<str> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        match generations.get(&mapping.id) {
            Some(known) if Arc::ptr_eq(&known.mapping, mapping) => Arc::clone(&known.text),
            _ => {
                let text: Arc<str> = rules::generation(mapping).into();
                let generation = Generation { mapping: Arc::clone(mapping), text: Arc::clone(&text) };
                generations.insert(mapping.id.clone(), generation);
                text
            }
        }
    }

    /// What a request of a harvester wants of it. `lowered_to` is the earliestDatestamp that is known to
    /// be right, where its source's is not.
    pub(super) fn errand(
        &self,
        mapping: &Arc<Mapping>,
        request: &Request,
        base_url: &str,
        lowered_to: Option<&str>,
        arrived: SystemTime,
    ) -> Errand {
        Errand {
            cache: self.clone(),
            key: rules::key(mapping, &self.generation(mapping), base_url, request, lowered_to),
            plan: Plan::of(request, mapping, &self.config),
            arrived,
            got: Got::Miss,
            is_old_known: false,
            has_asked: false,
            shared: None,
        }
    }

    /// Reads what was kept before the start. Blocks on the disk.
    pub(super) fn scan(&self) {
        self.storage.pages.scan();
    }

    /// Removes what is of no use any more. Blocks on the disk.
    pub(super) fn sweep(&self) {
        let now = clock::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.storage.pages.sweep(now.as_secs());
    }

    /// Keeps nothing from now on, and removes nothing: the folder is another process's.
    pub(super) fn close(&self) {
        self.storage.pages.close();
    }

    /// How much is kept.
    pub(super) fn size(&self) -> Size {
        self.storage.pages.size()
    }

    /// Removes the page that answers a request under any of our names for the
    /// repository, or without a request all of its pages; says how many. Blocks
    /// on the disk.
    pub(super) fn purge(
        &self,
        mapping: &Arc<Mapping>,
        base_urls: &[String],
        request: Option<&Request>,
        lowered_to: Option<&str>,
    ) -> u64 {
        let generation = self.generation(mapping);
        let keys = request.map(|request| {
            let key = |base_url: &String| rules::key(mapping, &generation, base_url, request, lowered_to);
            let keys = base_urls.iter().map(key);
            keys.collect::<Vec<_>>()
        });
        self.storage.purge_pages(&mapping.id, keys.as_deref())
    }
}

/// The page that answers a request.
pub(super) enum Found {
    /// It is kept.
    Kept(KeptPage),
    /// It is under way, and filled by what comes with it. The old page stands in for it if the source fails.
    UnderWay(Reader, DetachedTask, Option<KeptPage>),
}

impl Errand {
    /// The page that answers the request: one that is kept or under way, or one that begins with this request.
    /// `ended` is told what became of the job, if that begins.
    pub(super) async fn find(
        &mut self,
        job: Job,
        ended: impl FnOnce(Account, Option<Failure>) + Send + 'static,
    ) -> Found {
        let storage = self.cache.storage;
        let mut looks = 0;
        loop {
            looks += 1;
            if let Some(reader) = storage.join_live(&self.key, self.arrived) {
                return self.collapsed(reader, None);
            }
            let old = match self.find_kept().await {
                Ok(page) => return Found::Kept(page),
                Err(old) => old,
            };
            // A page that ended between the two looks is found by another one.
            let found = match &old {
                _ if looks == LOOKS_MAX => OnDisk::Final,
                Some(_) => OnDisk::Old,
                None if self.is_old_known => OnDisk::Final,
                None => OnDisk::Nothing,
            };
            match storage.join(self.recipe(), self.arrived, found) {
                Joined::Other(reader) => return self.collapsed(reader, old),
                Joined::First(reader, writer) => {
                    self.has_asked = true;
                    let filling = DetachedTask::new(Box::pin(drain(storage, answer(job), writer, ended)));
                    return Found::UnderWay(reader, filling, old);
                }
                Joined::Again => {}
            }
        }
    }

    /// The kept page that answers the request; or one that is too old, and stands in if the source fails. It does
    /// so at once if the source has just failed, so that all who wait get it.
    async fn find_kept(&mut self) -> Result<KeptPage, Option<KeptPage>> {
        self.is_old_known = false;
        let page = match self.plan.is_kept {
            true => self.cache.storage.find_kept(&self.key).await,
            false => None,
        };
        let Some(page) = page else { return Err(None) };
        let now = clock::now();
        if page.meta.is_fresh(now) {
            self.got = Got::Hit;
            return Ok(page);
        }
        self.is_old_known = true;
        if !page.meta.stands_in(now) {
            return Err(None);
        }
        if self.cache.storage.has_failed(&self.key) {
            self.got = Got::Stale;
            return Ok(page);
        }
        Err(Some(page))
    }

    /// Another request has begun the page.
    fn collapsed(&mut self, reader: Reader, old: Option<KeptPage>) -> Found {
        let is_late = reader.fill.was_over(self.arrived);
        self.got = if is_late { Got::Hit } else { Got::Collapsed };
        self.shared = Some(Arc::clone(&reader.fill));
        Found::UnderWay(reader, DetachedTask::default(), old)
    }

    /// The source has failed, and there is an old page.
    pub(super) fn stands_in(&mut self) {
        // Long enough for those who wait.
        let until = clock::now() + self.plan.failures.max(LINGER);
        self.cache.storage.note_failure(&self.key, until);
        self.got = Got::Stale;
    }

    /// How the request came to its answer.
    pub(super) fn got(&self) -> Got {
        self.got
    }

    /// Says in a header how the request came to its answer (RFC 9211).
    pub(super) fn cache_status(&self, said: &str) -> String {
        let forwarded = if said.is_empty() { "oaimend; fwd=miss" } else { said };
        match self.got {
            Got::Hit => "oaimend; hit".to_owned(),
            Got::Collapsed => format!("{forwarded}; collapsed"),
            Got::Stale if self.has_asked => "oaimend; fwd=stale; detail=stale-if-error".to_owned(),
            Got::Stale => "oaimend; hit; detail=stale-if-error".to_owned(),
            Got::Miss if self.is_old_known => forwarded.replace("fwd=miss", "fwd=stale"),
            Got::Miss => forwarded.to_owned(),
        }
    }

    fn recipe(&self) -> Recipe {
        let (storage, config) = (self.cache.storage, &self.cache.config);
        let (key, plan) = (self.key.clone(), self.plan);
        Recipe { id: storage.next_id(), key, plan, capacity: config.entry_bytes_max }
    }
}

/// Takes what the source sends into the spool, whoever reads it.
async fn drain(
    storage: &'static PageStorage,
    mut conversing: EventStream,
    mut writer: Writer,
    ended: impl FnOnce(Account, Option<Failure>),
) {
    let fill = Arc::clone(&writer.fill);
    let end = loop {
        let event = tokio::select! {
            event = conversing.next() => event,
            () = writer.unwanted() => match storage.retire_unwanted(&fill) {
                true => break DrainEnd::Broken,
                false => continue,
            },
        };
        match event {
            Some(Event::Head(answer)) => match heads::whole(answer, "miss") {
                Ok(head) => writer.begin_with(head),
                Err(_) => break DrainEnd::Broken,
            },
            Some(Event::Body(bytes)) => match conversing.beside(writer.append(bytes)).await {
                Ok(()) => {}
                // Nobody wants it any more.
                Err(_) => break DrainEnd::Broken,
            },
            Some(Event::End(account)) => {
                // Readers see the end after this, and the log after them.
                ended(Account::clone(&account), None);
                if let Some(query) = &account.leads_back_to {
                    // Before a harvester sees the end of this page, and asks for the earlier one again.
                    storage.drop_page(rules::key_of_query(&fill.key, query)).await;
                }
                break match writer.finish(&account).await {
                    true => DrainEnd::Kept,
                    false => DrainEnd::Passed,
                };
            }
            Some(Event::Failed(failure, account)) => {
                let answer = heads::failed(&failure).ok().filter(|_| fill.begun().is_none());
                ended(*account, Some(failure));
                let Some((head, text)) = answer else {
                    writer.fail();
                    break DrainEnd::Broken;
                };
                writer.answer_failure(head, text);
                break DrainEnd::Refused;
            }
            None => break DrainEnd::Broken,
        }
    };
    // The conversation ends with the last who listens to it.
    drop(conversing);
    match end {
        DrainEnd::Kept | DrainEnd::Broken => {}
        DrainEnd::Passed => return storage.linger(fill),
        DrainEnd::Refused => tokio::time::sleep(fill.plan.failures.max(LINGER)).await,
    }
    storage.retire(&fill);
}

/// What became of a page in the spool.
enum DrainEnd {
    /// It was whole, and lies on the disk.
    Kept,
    /// It was whole, and answers those who came while it was under way.
    Passed,
    /// A failure is the answer.
    Refused,
    /// It broke off, or nobody wanted it.
    Broken,
}

/// How often a request looks for its page before it begins one.
const LOOKS_MAX: usize = 8;
