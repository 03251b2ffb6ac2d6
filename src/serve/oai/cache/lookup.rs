//! Finds the page that answers a request, or starts it.
//!
//! Identical concurrent requests share one page in flight. The first of them starts a session with the source, which
//! runs to the end of the page even if that request is cancelled, as long as others read the page or it is to be
//! cached.

use super::in_flight::{InFlightOptions, InFlightPage, Reader, Writer};
use super::rules::{self, CachePlan};
use super::storage::{CachedPage, GRACE_PERIOD, Joined, OnDisk, PageForm, PageStorage};
use crate::config::{self, Mapping};
use crate::serve::oai::response_head;
use crate::serve::telemetry::labels::CacheOutcome;
use bytes::Bytes;
use http::HeaderValue;
use oaimend_base::clock;
use oaimend_base::error::Error;
use oaimend_files::{PageKey, Pages, Size};
use oaimend_oai::{Argument, Request};
use oaimend_repository::{
    DetachedTask, Event, EventStream, Failure, Repository, RepositoryRequest, ResponseSummary,
};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The cache of one server. Clones share it.
///
/// The storage is never freed, because a task must not wait for its threads: each stopped server leaves a few empty
/// tables.
#[derive(Clone)]
pub(crate) struct Cache {
    storage: &'static PageStorage,
    config: Arc<config::Cache>,
    generations: Arc<Mutex<HashMap<String, Generation>>>,
}

/// A mapping, and the text that distinguishes its pages from those of its earlier versions.
struct Generation {
    mapping: Arc<Mapping>,
    text: Arc<str>,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The lookup of one request, and its result.
#[derive(Clone, Debug)]
pub(in crate::serve::oai) struct CacheLookup {
    cache: Cache,
    key: PageKey,
    plan: CachePlan,
    arrived: SystemTime,
    outcome: CacheOutcome,
    /// Whether a cached page was found that is too old.
    is_old_known: bool,
    /// Whether this request started a session with the source.
    has_started_session: bool,
    /// The `Proxy-Status` of the failure that an old page replaces.
    pub(in crate::serve::oai) replaced_failure: Option<HeaderValue>,
    /// The form in which a cached page is sent.
    pub(in crate::serve::oai) form: PageForm,
    /// The page in flight that it shares with an earlier request.
    pub(in crate::serve::oai) shared: Option<Arc<InFlightPage>>,
}

/// A request as the cache knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedRequest<'r> {
    pub(crate) mapping: &'r Arc<Mapping>,
    pub(crate) request: &'r Request,
    /// The URL of the repository for the client.
    pub(crate) base_url: &'r str,
    /// Distinguishes pages of the same request.
    pub(crate) variant: Option<&'r str>,
}

impl Cache {
    /// Opens the cache in the data folder; `None` if it is disabled.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub(crate) fn open(data: &Path, config: config::Cache) -> Result<Option<Self>, Error> {
        if !config.enabled {
            return Ok(None);
        }
        let pages = Pages::open(data, config.bytes_max)?;
        let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages)));
        Ok(Some(Self { storage, config: Arc::new(config), generations: Arc::default() }))
    }

    fn generation(&self, mapping: &Arc<Mapping>) -> Arc<str> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        match generations.get(mapping.id()) {
            Some(known) if Arc::ptr_eq(&known.mapping, mapping) => Arc::clone(&known.text),
            _ => {
                let text: Arc<str> = rules::generation(mapping).into();
                let generation = Generation { mapping: Arc::clone(mapping), text: Arc::clone(&text) };
                generations.insert(mapping.id().to_owned(), generation);
                text
            }
        }
    }

    fn key(&self, page: &CachedRequest<'_>) -> PageKey {
        let CachedRequest { mapping, request, base_url, variant } = *page;
        rules::key(mapping, &self.generation(mapping), base_url, request, variant)
    }

    /// The lookup for a request that arrived at this time.
    pub(in crate::serve::oai) fn lookup(&self, page: &CachedRequest<'_>, arrived: SystemTime) -> CacheLookup {
        if let Some(token) = page.request.argument(Argument::ResumptionToken) {
            self.storage.pages.note_followed(page.mapping.id(), token);
        }
        CacheLookup {
            cache: self.clone(),
            key: self.key(page),
            plan: CachePlan::of(page.request, page.mapping, &self.config),
            form: PageForm::PLAIN,
            arrived,
            outcome: CacheOutcome::Miss,
            is_old_known: false,
            has_started_session: false,
            replaced_failure: None,
            shared: None,
        }
    }

    /// The cached page that answers a request, of any age. `None` if it is longer than `bytes_max`. No request is sent
    /// to the source.
    pub(crate) async fn stored(&self, page: &CachedRequest<'_>, bytes_max: u64) -> Option<Vec<u8>> {
        let key = self.key(page);
        let mut page =
            self.storage.find_cached(&key, PageForm::PLAIN).await.filter(|page| page.bytes <= bytes_max)?;
        let mut body = Vec::new();
        while let Some(piece) = page.next().await.ok()? {
            body.extend_from_slice(&piece);
        }
        Some(body)
    }

    /// Builds the index of cached pages. Blocks on the disk.
    pub(crate) fn scan(&self) {
        self.storage.pages.scan();
    }

    /// Removes useless pages. Blocks on the disk.
    pub(crate) fn sweep(&self) {
        let now = clock::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.storage.pages.sweep(now.as_secs());
    }

    /// Removes the pages of removed repositories: of those that are not kept. Blocks on the disk.
    pub(crate) fn purge_others(&self, is_kept: impl Fn(&str) -> bool) {
        let pages = self.storage.purge_others(is_kept);
        if pages > 0 {
            tracing::info!(pages, "the cached pages of removed repositories are deleted");
        }
    }

    /// Saves the pages that are in memory alone, and stops storing and removing pages, because the process ends or another
    /// one gets the folder. Blocks on the disk.
    pub(crate) fn close(&self) {
        let lost = self.storage.pages.close(clock::secs(clock::now()));
        if lost > 0 {
            tracing::warn!(
                lost,
                "pages in memory cannot be saved; check space and rights of the data folder"
            );
        }
    }

    /// The size of the cache.
    pub(crate) fn size(&self) -> Size {
        self.storage.pages.size()
    }

    /// Removes the page that answers a request, under each base URL of the repository; without a request all pages of
    /// the repository. Returns how many. Blocks on the disk.
    pub(crate) fn purge(
        &self,
        mapping: &Arc<Mapping>,
        base_urls: &[String],
        request: Option<&Request>,
        variant: Option<&str>,
    ) -> u64 {
        let generation = self.generation(mapping);
        let keys = request.map(|request| {
            let key = |base_url: &String| rules::key(mapping, &generation, base_url, request, variant);
            let keys = base_urls.iter().map(key);
            keys.collect::<Vec<_>>()
        });
        self.storage.purge_pages(mapping.id(), keys.as_deref())
    }
}

/// The page that answers a request.
pub(in crate::serve::oai) enum FoundPage {
    /// A cached page.
    Cached(CachedPage),
    /// A page in flight with the task that receives it. The old page replaces it if the source fails.
    InFlight(Reader, DetachedTask, Option<CachedPage>),
}

impl CacheLookup {
    /// Holds the compressed form of a found page in memory.
    pub(in crate::serve::oai) fn keep_compressed(&self, page: &CachedPage, body: Bytes) {
        self.cache.storage.keep_compressed(&self.key, page, body);
    }

    /// The page that answers the request: cached, in flight, or started by this request. `ended` receives the result
    /// of the session that the request starts.
    pub(in crate::serve::oai) async fn find(
        &mut self,
        repository: &dyn Repository,
        request: RepositoryRequest,
        ended: impl FnOnce(ResponseSummary, Option<Failure>) + Send + 'static,
    ) -> FoundPage {
        let storage = self.cache.storage;
        let mut lookups = 0;
        loop {
            lookups += 1;
            if let Some(reader) = storage.join_in_flight(&self.key, self.arrived) {
                return self.collapsed(reader, None);
            }
            let old = match self.find_cached().await {
                Ok(page) => return FoundPage::Cached(page),
                Err(old) => old,
            };
            // Between the two lookups another page may have ended.
            let found = match &old {
                _ if lookups == LOOKUPS_MAX => OnDisk::Final,
                Some(_) => OnDisk::Old,
                None if self.is_old_known => OnDisk::Final,
                None => OnDisk::Nothing,
            };
            match storage.join(self.options(), self.arrived, found) {
                Joined::Other(reader) => return self.collapsed(reader, old),
                Joined::First(reader, writer) => {
                    self.has_started_session = true;
                    let events = repository.answer(request);
                    let fetching = DetachedTask::new(Box::pin(drain(storage, events, writer, ended)));
                    return FoundPage::InFlight(reader, fetching, old);
                }
                Joined::Again => {}
            }
        }
    }

    /// The cached page that answers the request, or an old page that may replace a failure. The old page answers at
    /// once if the source has just failed, so that all waiting requests receive it.
    async fn find_cached(&mut self) -> Result<CachedPage, Option<CachedPage>> {
        self.is_old_known = false;
        let page =
            if self.plan.is_kept { self.cache.storage.find_cached(&self.key, self.form).await } else { None };
        let Some(page) = page else { return Err(None) };
        let now = clock::now();
        if page.meta.is_fresh(now) {
            self.outcome = CacheOutcome::Hit;
            return Ok(page);
        }
        self.is_old_known = true;
        if !page.meta.is_usable_if_error(now) {
            return Err(None);
        }
        if let Some(proxy_status) = self.cache.storage.last_failure(&self.key) {
            self.outcome = CacheOutcome::Stale;
            self.replaced_failure = Some(proxy_status);
            return Ok(page);
        }
        Err(Some(page))
    }

    /// Another request has started the page.
    fn collapsed(&mut self, reader: Reader, old: Option<CachedPage>) -> FoundPage {
        let is_late = reader.page.was_over(self.arrived);
        self.outcome = if is_late { CacheOutcome::Hit } else { CacheOutcome::Collapsed };
        self.shared = Some(Arc::clone(&reader.page));
        FoundPage::InFlight(reader, DetachedTask::default(), old)
    }

    /// Answers with an old page, because the source has failed. `proxy_status` describes the failure.
    pub(in crate::serve::oai) fn use_stale(&mut self, proxy_status: HeaderValue) {
        // Long enough for the waiting requests.
        let until = clock::now() + self.plan.failures.max(GRACE_PERIOD);
        self.cache.storage.note_failure(&self.key, until, proxy_status.clone());
        self.replaced_failure = Some(proxy_status);
        self.outcome = CacheOutcome::Stale;
    }

    /// How the request was answered.
    pub(in crate::serve::oai) fn outcome(&self) -> CacheOutcome {
        self.outcome
    }

    /// The `Cache-Status` field (RFC 9211).
    pub(in crate::serve::oai) fn cache_status(&self, forwarded_as: &str) -> String {
        let forwarded = if forwarded_as.is_empty() { "oaimend; fwd=miss" } else { forwarded_as };
        match self.outcome {
            CacheOutcome::Hit => "oaimend; hit".to_owned(),
            CacheOutcome::Collapsed if forwarded.contains("fwd=") => format!("{forwarded}; collapsed"),
            CacheOutcome::Stale if self.has_started_session => {
                "oaimend; fwd=stale; detail=stale-if-error".to_owned()
            }
            CacheOutcome::Stale => "oaimend; hit; detail=stale-if-error".to_owned(),
            CacheOutcome::Miss if self.is_old_known => forwarded.replace("fwd=miss", "fwd=stale"),
            CacheOutcome::Miss | CacheOutcome::Collapsed | CacheOutcome::Bypass => forwarded.to_owned(),
        }
    }

    fn options(&self) -> InFlightOptions {
        let (storage, config) = (self.cache.storage, &self.cache.config);
        let (key, plan) = (self.key.clone(), self.plan);
        InFlightOptions { id: storage.next_id(), key, plan, capacity: config.entry_bytes_max }
    }
}

/// Receives a page from the source into memory or a file, independently of its readers.
async fn drain(
    storage: &'static PageStorage,
    mut events: EventStream,
    mut writer: Writer,
    ended: impl FnOnce(ResponseSummary, Option<Failure>),
) {
    let in_flight = Arc::clone(&writer.page);
    let end = loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = writer.unwanted() => {
                if storage.retire_unwanted(&in_flight) {
                    break DrainEnd::Broken;
                }
                continue;
            }
        };
        match event {
            Some(Event::Head(answer)) => match response_head::whole(&answer, "miss") {
                Ok(head) => writer.begin_with(head),
                Err(_) => break DrainEnd::Broken,
            },
            Some(Event::Body(bytes)) => match events.beside(writer.append(bytes)).await {
                Ok(()) => {}
                // No reader is left, and the page is not to be cached.
                Err(_) => break DrainEnd::Broken,
            },
            Some(Event::End(summary)) => {
                // Record the result before readers see the end, because they log it.
                ended(ResponseSummary::clone(&summary), None);
                break if writer.finish(&summary).await { DrainEnd::Retention } else { DrainEnd::Passed };
            }
            Some(Event::Failed(failure, summary)) => {
                // An earlier retry would receive the same failure.
                let failure = failure.retried_after(in_flight.plan.failures);
                let has_begun = in_flight.begun().is_some();
                let answer = if has_begun { None } else { response_head::failed(&failure).ok() };
                ended(*summary, Some(failure));
                let Some((head, text)) = answer else {
                    writer.fail();
                    break DrainEnd::Broken;
                };
                writer.answer_failure(head, text);
                break DrainEnd::Refused;
            }
            Some(Event::Records(_) | Event::Quarantined(_)) => {}
            None => break DrainEnd::Broken,
        }
    };
    // Dropping the stream ends the session.
    drop(events);
    match end {
        DrainEnd::Retention | DrainEnd::Broken => {}
        DrainEnd::Passed => return storage.hold_for_grace_period(in_flight),
        DrainEnd::Refused => tokio::time::sleep(in_flight.plan.failures.max(GRACE_PERIOD)).await,
    }
    storage.retire(&in_flight);
}

/// How a page in flight ended.
enum DrainEnd {
    /// Complete, and on disk.
    Retention,
    /// Complete, and kept for the grace period.
    Passed,
    /// The response is a failure.
    Refused,
    /// Truncated, or without readers.
    Broken,
}

/// Maximum number of lookups of a request before it starts a page.
const LOOKUPS_MAX: usize = 8;
