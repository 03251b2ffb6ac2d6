//! Reads the lists of the records of repositories that are not mirrored, where their mapping wants it.
//!
//! One list of `ListIdentifiers` is read, page by page, through the same repairs and retries as a harvest. Requests of
//! harvesters go first. No request of a client starts it, so a crawler of these lists costs a source nothing.

use super::harvests::harvester::background_source;
use crate::config::Mapping;
use crate::serve::served::ServedRepositories;
use crate::serve::source_lists::{ReceivedRecords, SourceList};
use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use oaimend_mirror::harvest::RepeatedPages;
use oaimend_oai::{ErrorCode, Request, UnixSecs};
use oaimend_repository::{Event, Failure, HarvesterTraits, Repository, RepositoryRequest, ResponseSummary};
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

/// Interval between checks of what is due.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of lists that are read at a time.
const WALKS_MAX: usize = 4;
/// Maximum number of requests for one list.
const PAGES_MAX: u64 = 1_000;
/// After this time no further page of a list is requested, in seconds.
const WALK_SECS_MAX: i64 = 3_600;
/// The format of the list: that of the pages of records.
const FORMAT: &str = "oai_dc";

/// Reads the lists that are due.
pub(crate) struct SourceWalks(pub(crate) Arc<ServedRepositories>);

#[async_trait]
impl BackgroundService for SourceWalks {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            tokio::select! {
                () = self.read_due() => {}
                _ = shutdown.changed() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}

impl SourceWalks {
    async fn read_due(&self) {
        let served = &*self.0;
        let mappings = served.repositories.all();
        let is_wanted = |mapping: &&Arc<Mapping>| mapping.has_source_list();
        served.source_lists.retain(|id| mappings.get(id).filter(is_wanted).is_some());
        let now_secs = served.clock.now_secs();
        let due = mappings.values().filter(is_wanted);
        let due = due.filter(|mapping| served.source_lists.is_due(mapping, now_secs));
        // A round can take hours, so a later list may have another mapping by then.
        let read = async |due: &Arc<Mapping>| {
            let mappings = served.repositories.all();
            if let Some(mapping) = mappings.get(due.id()).filter(is_wanted) {
                let now_secs = served.clock.now_secs();
                served.source_lists.put(mapping, read_list(served, mapping, now_secs).await);
            }
        };
        stream::iter(due).for_each_concurrent(WALKS_MAX, read).await;
    }
}

/// Reads the list of a source, as far as it comes.
async fn read_list(served: &ServedRepositories, mapping: &Arc<Mapping>, now_secs: UnixSecs) -> SourceList {
    let mut walk = Walk { served, mapping, records: ReceivedRecords::default(), is_whole: true };
    let ended = walk.read().await;
    let is_complete = ended.is_ok() && walk.is_whole;
    let list = walk.records.into_list(now_secs, is_complete);
    tracing::info!(
        repo = mapping.id(),
        records = list.records.len(),
        is_complete,
        why = ended.err(),
        "the list of the records of a source was read"
    );
    list
}

/// The reading of one list.
struct Walk<'a> {
    served: &'a ServedRepositories,
    mapping: &'a Arc<Mapping>,
    records: ReceivedRecords,
    /// Whether no item of the list was left out.
    is_whole: bool,
}

impl Walk<'_> {
    /// Reads the list to its end. An error says why it ended before.
    async fn read(&mut self) -> Result<(), String> {
        let source = background_source(self.served, self.mapping)
            .map_err(|failure| failure.details_for_operators())?;
        let until = self.served.clock.now_secs().plus(WALK_SECS_MAX);
        let mut repeated = RepeatedPages::default();
        let mut request = Request::list_records(FORMAT, None, None, None).to_list_identifiers();
        for _ in 0..PAGES_MAX {
            if self.served.clock.now_secs() >= until {
                return Err(format!("no further page is requested after {WALK_SECS_MAX} seconds"));
            }
            let (page, identifiers) = self.receive(&source, &request).await?;
            if identifiers.is_some_and(|identifiers| repeated.note(identifiers)) {
                return Err("the list goes in circles".to_owned());
            }
            self.is_whole &= !page.end.has_concluded_end;
            let next = match (page.page.error, page.page.token) {
                (None | Some(ErrorCode::NoRecordsMatch), None) => return Ok(()),
                (None, Some(token)) => request.with_token(token),
                (error, _) => {
                    return Err(format!(
                        "the source ended it with {}",
                        error.map_or("a token", ErrorCode::name)
                    ));
                }
            };
            if next == request {
                return Err("the list goes in circles".to_owned());
            }
            request = next;
        }
        Err(format!("it has more than {PAGES_MAX} pages"))
    }

    /// Receives one page: its summary, and the hash of its identifiers if there are any.
    async fn receive(
        &mut self,
        source: &dyn Repository,
        request: &Request,
    ) -> Result<(ResponseSummary, Option<u64>), String> {
        let base_url = format!("{}/{}", self.served.public_url, self.mapping.id());
        let mut events = source.answer(RepositoryRequest {
            request: request.clone(),
            echo: Arc::new(request.to_echo(&base_url)),
            via: self.served.via.to_str().unwrap_or_default().to_owned(),
            harvester: HarvesterTraits::default(),
            in_one_piece: false,
            reports_records: true,
        });
        let (mut identifiers, mut is_empty) = (DefaultHasher::new(), true);
        while let Some(event) = events.next().await {
            let summary = match event {
                Event::Records(records) => {
                    for record in records {
                        is_empty = false;
                        record.identifier.hash(&mut identifiers);
                        if !self.records.add(record) {
                            return Err("it has more records than can be kept".to_owned());
                        }
                    }
                    continue;
                }
                Event::Quarantined(_) => {
                    self.is_whole = false;
                    continue;
                }
                Event::Head(_) | Event::Body(_) => continue,
                Event::End(summary) => summary,
                Event::Failed(_, summary) if summary.end.has_only_quarantined => summary,
                Event::Failed(failure, _) => return Err(Failure::details_for_operators(&failure)),
            };
            let identifiers = if is_empty { None } else { Some(identifiers.finish()) };
            return Ok((*summary, identifiers));
        }
        Err("the server is stopping".to_owned())
    }
}
