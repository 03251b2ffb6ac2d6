//! Fetches the full texts of all repositories whose mappings want it.

use super::fetcher::Fetcher;
use super::follower::{Follower, Step};
use super::hosts::Hosts;
use crate::config::{FullTextChoices, Mapping, RecordPages};
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use oaimend_base::clock;
use oaimend_full_text::{PDFTOTEXT, TextExtractor, find_program};
use oaimend_repository::Failure;
use oaimend_upstream::Downloader;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Interval between two looks for full texts that are due.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a program that does not run is not tried again.
const TRY_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of full texts that are fetched at a time, each with its file in memory.
const FILES_MAX: usize = 4;

/// Fetches full texts until the server stops.
pub(crate) struct FullTextService {
    served: Arc<ServedRepositories>,
    telemetry: Arc<Telemetry>,
    hosts: Hosts,
    files: Semaphore,
    /// The number of records that wait, by repository.
    waiting: Mutex<BTreeMap<String, u64>>,
    /// The clients, by repository, with the mappings that they are for.
    downloaders: Mutex<BTreeMap<String, (Arc<Mapping>, Downloader)>>,
    /// The program that was tried last, and when it is tried again if it does not run, by [`clock::uptime`].
    tried: Mutex<Option<(PathBuf, Option<Duration>)>>,
    /// The last line of the log, by repository or for all of them, so that each is logged once.
    reported: Mutex<BTreeMap<String, String>>,
}

#[async_trait]
impl BackgroundService for FullTextService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        // The repositories do not wait for each other.
        let (mut steps, mut running) = (FuturesUnordered::new(), BTreeSet::new());
        loop {
            let begun = tokio::select! {
                begun = self.begin() => begun,
                _ = shutdown.changed() => return,
            };
            for (mapping, extractor) in begun {
                if running.insert(mapping.id().to_owned()) {
                    steps.push(self.run(mapping, extractor));
                }
            }
            let interval = tokio::time::sleep(INTERVAL);
            tokio::pin!(interval);
            loop {
                tokio::select! {
                    Some(id) = steps.next() => drop(running.remove(&id)),
                    () = &mut interval => break,
                    _ = shutdown.changed() => return,
                }
            }
        }
    }
}

impl FullTextService {
    /// The service of a server.
    pub(crate) fn new(served: Arc<ServedRepositories>, telemetry: Arc<Telemetry>) -> Self {
        let (downloaders, tried, reported) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (hosts, files, waiting) = (Hosts::default(), Semaphore::new(FILES_MAX), Mutex::default());
        Self { served, telemetry, hosts, files, waiting, downloaders, tried, reported }
    }

    /// The repositories whose full texts are fetched now.
    async fn begin(&self) -> Vec<(Arc<Mapping>, TextExtractor)> {
        let mappings = self.served.repositories.all();
        let chosen: Vec<Arc<Mapping>> =
            mappings.values().filter(|mapping| choices(mapping).is_some()).cloned().collect();
        let is_chosen = |id: &String| chosen.iter().any(|mapping| mapping.id() == id);
        self.downloaders.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| is_chosen(id));
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.retain(|id, _| is_chosen(id));
            let waiting: Vec<_> = waiting.iter().map(|(id, count)| (id.clone(), *count)).collect();
            self.telemetry.set_full_texts_waiting(&waiting);
        }
        if chosen.is_empty() {
            return Vec::new();
        }
        let Some(program) = find_program(PDFTOTEXT) else {
            let remedy = "install poppler-utils, or remove the tables full_texts";
            self.report(
                "",
                &format!("full texts are not fetched: the program {PDFTOTEXT} is missing; {remedy}"),
            );
            return Vec::new();
        };
        let extractor = TextExtractor::of_this_program(program.clone());
        // Nothing is fetched that cannot be read.
        if !self.is_available(program, &extractor).await {
            self.report(
                "",
                "full texts are not fetched: pdftotext cannot read a PDF without rights, because the kernel has no Landlock, the \
                 service may not use it, or a library of pdftotext is not in a folder of the system; mend it, or remove the \
                 tables full_texts",
            );
            return Vec::new();
        }
        self.forget_report("");
        chosen.into_iter().map(|mapping| (mapping, extractor.clone())).collect()
    }

    /// Fetches what is due in a repository, and returns its ID.
    async fn run(&self, mapping: Arc<Mapping>, extractor: TextExtractor) -> String {
        let id = mapping.id();
        let Some(choices) = choices(&mapping) else { return id.to_owned() };
        match self.step(&mapping, choices, &extractor).await {
            Ok((step, count)) => {
                self.forget_report(id);
                if step == Step::Unavailable {
                    *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = None;
                }
                self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), count);
            }
            Err(failure) => self.report(id, &format!("full texts are not fetched: {}", failure.details)),
        }
        id.to_owned()
    }

    /// Whether the program runs. One that does not is tried again after a minute.
    async fn is_available(&self, program: PathBuf, extractor: &TextExtractor) -> bool {
        let tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match tried {
            Some((known, None)) if known == program => return true,
            Some((known, Some(until))) if known == program && clock::uptime() < until => return false,
            _ => {}
        }
        let is_available = extractor.is_available().await;
        let again = if is_available { None } else { Some(clock::uptime() + TRY_INTERVAL) };
        *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = Some((program, again));
        is_available
    }

    /// Fetches what is due in a repository. Returns how many records wait after that.
    async fn step(
        &self,
        mapping: &Arc<Mapping>,
        choices: &FullTextChoices,
        extractor: &TextExtractor,
    ) -> Result<(Step, u64), Failure> {
        let base_url = if mapping.local.is_some() { None } else { Some(&mapping.source.base_url) };
        let (allowed, downloader) = (choices.allowed_hosts(base_url), self.downloader(mapping)?);
        let sources = self.served.resolver.sources(&self.served.repositories);
        let is_current = || {
            let mappings = self.served.repositories.all();
            mappings.values().any(|known| Arc::ptr_eq(known, mapping))
        };
        let allows_private = mapping.source.access.allow_private;
        let definition = format!("{} {} {allows_private}", allowed.text(), choices.bytes_max);
        let prefixes = mapping.mirror.as_ref().map(|mirror| mirror.prefixes.as_slice()).unwrap_or_default();
        let fetcher = Fetcher {
            hosts: &self.hosts,
            downloader: &downloader,
            extractor,
            allowed: &allowed,
            gap: choices.gap(),
            bytes_max: choices.bytes_max,
            files: &self.files,
            is_current: &is_current,
        };
        let (served, telemetry) = (&*self.served, &*self.telemetry);
        let (sources, repository) = (&sources, mapping.id());
        let follower = Follower { served, telemetry, sources, repository, fetcher, prefixes, definition };
        Ok((follower.step().await?, follower.waiting().await?))
    }

    /// The client of a mapping, which keeps its connections.
    fn downloader(&self, mapping: &Arc<Mapping>) -> Result<Downloader, Failure> {
        let mut downloaders = self.downloaders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, downloader)) = downloaders.get(mapping.id())
            && Arc::ptr_eq(of, mapping)
        {
            return Ok(downloader.clone());
        }
        let downloader = Downloader::new(&mapping.source, Arc::clone(&self.served.clock))?;
        downloaders.insert(mapping.id().to_owned(), (Arc::clone(mapping), downloader.clone()));
        Ok(downloader)
    }

    /// Logs what an operator must do, once.
    fn report(&self, repository: &str, text: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.get(repository).is_none_or(|known| known != text) {
            tracing::warn!(repo = repository, "{text}");
            reported.insert(repository.to_owned(), text.to_owned());
        }
    }

    fn forget_report(&self, repository: &str) {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).remove(repository);
    }
}

/// How the full texts of a repository are fetched. Those of a repository without pages of records are not.
fn choices(mapping: &Mapping) -> Option<&FullTextChoices> {
    if mapping.records == RecordPages::Off || mapping.mirror.is_none() {
        return None;
    }
    mapping.full_texts.as_ref()
}
