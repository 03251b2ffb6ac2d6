//! Fetches the full texts of all repositories whose mappings want it.

use super::fetcher::Fetcher;
use super::follower::{Follower, Step};
use super::hosts::Hosts;
use crate::config::{FullTextChoices, Mapping, RecordPages};
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use oaimend_full_text::{PDFTOTEXT, TextExtractor, find_program};
use oaimend_repository::Failure;
use oaimend_upstream::Downloader;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Interval between two looks for full texts that are due.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of repositories whose full texts are fetched at a time. Each has one PDF in memory.
const REPOSITORIES_MAX: usize = 4;

/// Fetches full texts until the server stops.
pub(crate) struct FullTextService {
    served: Arc<ServedRepositories>,
    telemetry: Arc<Telemetry>,
    hosts: Hosts,
    /// The clients, by repository, with the mappings that they are for.
    downloaders: Mutex<BTreeMap<String, (Arc<Mapping>, Downloader)>>,
    /// What was logged last, by repository or for all of them, so that it is logged once.
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
        let (downloaders, reported) = (Mutex::default(), Mutex::default());
        Self { served, telemetry, hosts: Hosts::default(), downloaders, reported }
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
        self.forget_report("");
        let extractor = TextExtractor::of_this_program(program);
        let waiting = Mutex::new(Vec::new());
        let fetch = async |(mapping, choices): (&Arc<Mapping>, &FullTextChoices)| {
            let id = mapping.id();
            match self.step(mapping, choices, &extractor).await {
                Ok((step, count)) => {
                    match step {
                        Step::Done => self.forget_report(id),
                        Step::Unavailable => self.report(
                            id,
                            "full texts are not read: the kernel has no Landlock, or the service may not use it or run \
                             pdftotext; allow it, or remove the table full_texts",
                        ),
                    }
                    waiting.lock().unwrap_or_else(PoisonError::into_inner).push((id.to_owned(), count));
                }
                Err(failure) => self.report(id, &format!("full texts are not fetched: {}", failure.details)),
            }
        };
        stream::iter(chosen).for_each_concurrent(REPOSITORIES_MAX, fetch).await;
        self.telemetry.set_full_texts_waiting(&waiting.into_inner().unwrap_or_else(PoisonError::into_inner));
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
        let follower = Follower { served, telemetry, sources: &sources, repository: mapping.id(), fetcher };
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
