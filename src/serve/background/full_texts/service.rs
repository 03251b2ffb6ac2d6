//! Fetches the full texts of all repositories whose mappings want it.

use super::fetcher::Fetcher;
use super::follower::{Follower, Step};
use super::hosts::Hosts;
use crate::config::{FullTextChoices, Mapping, RecordPages};
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use oaimend_base::clock;
use oaimend_full_text::{PDFTOTEXT, TextExtractor, find_program};
use oaimend_repository::Failure;
use oaimend_upstream::Downloader;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval between two looks for full texts that are due.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a program that does not run is not tried again.
const TRY_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of repositories whose full texts are fetched at a time. Each has one PDF in memory.
const REPOSITORIES_MAX: usize = 4;

/// Fetches full texts until the server stops.
pub(crate) struct FullTextService {
    served: Arc<ServedRepositories>,
    telemetry: Arc<Telemetry>,
    hosts: Hosts,
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
        loop {
            tokio::select! {
                () = self.round() => {}
                _ = shutdown.changed() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}

impl FullTextService {
    /// The service of a server.
    pub(crate) fn new(served: Arc<ServedRepositories>, telemetry: Arc<Telemetry>) -> Self {
        let (downloaders, tried, reported) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { served, telemetry, hosts: Hosts::default(), downloaders, tried, reported }
    }

    /// Fetches what is due now.
    async fn round(&self) {
        let mappings = self.served.repositories.all();
        let chosen: Vec<(&Arc<Mapping>, &FullTextChoices)> =
            mappings.values().filter_map(|mapping| Some((mapping, choices(mapping)?))).collect();
        let is_chosen = |id: &String| chosen.iter().any(|(mapping, _)| mapping.id() == id);
        self.downloaders.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| is_chosen(id));
        if chosen.is_empty() {
            return self.telemetry.set_full_texts_waiting(&[]);
        }
        let Some(program) = find_program(PDFTOTEXT) else {
            let remedy = "install poppler-utils, or remove the tables full_texts";
            return self.report(
                "",
                &format!("full texts are not fetched: the program {PDFTOTEXT} is missing; {remedy}"),
            );
        };
        let extractor = TextExtractor::of_this_program(program.clone());
        // Nothing is fetched that cannot be read.
        if !self.is_available(program, &extractor).await {
            return self.report(
                "",
                "full texts are not fetched: pdftotext cannot run without rights, because the kernel has no Landlock or the \
                 service may not use it; allow it, or remove the tables full_texts",
            );
        }
        self.forget_report("");
        let waiting = Mutex::new(Vec::new());
        let fetch = async |(mapping, choices): (&Arc<Mapping>, &FullTextChoices)| {
            let id = mapping.id();
            match self.step(mapping, choices, &extractor).await {
                Ok((step, count)) => {
                    self.forget_report(id);
                    if step == Step::Unavailable {
                        *self.tried.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    }
                    waiting.lock().unwrap_or_else(PoisonError::into_inner).push((id.to_owned(), count));
                }
                Err(failure) => self.report(id, &format!("full texts are not fetched: {}", failure.details)),
            }
        };
        stream::iter(chosen).for_each_concurrent(REPOSITORIES_MAX, fetch).await;
        self.telemetry.set_full_texts_waiting(&waiting.into_inner().unwrap_or_else(PoisonError::into_inner));
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
        let fetcher = Fetcher {
            hosts: &self.hosts,
            downloader: &downloader,
            extractor,
            allowed: &allowed,
            gap: choices.gap(),
            bytes_max: choices.bytes_max,
        };
        let (served, telemetry) = (&*self.served, &*self.telemetry);
        let (repository, fetched) = (mapping.id(), AtomicUsize::new(0));
        let follower = Follower { served, telemetry, sources: &sources, repository, fetcher, fetched };
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
