//! One request of a harvester, and everything that answering it needs.

use crate::clock::Clock;
use crate::config::Mapping;
use crate::oai::Request;
use crate::repair::RequestEcho;
use crate::store::Store;
use crate::upstream::client::source_client::SourceClient;
use std::sync::Arc;

/// One request of a harvester.
#[derive(Debug)]
pub struct Job {
    /// The repository.
    pub mapping: Arc<Mapping>,
    /// What is asked.
    pub request: Request,
    /// The same as the source is asked: with its own names of sets.
    pub asked: Request,
    /// The request as the answer is to say it.
    pub own: Arc<RequestEcho>,
    /// The `Via` header for the source.
    pub via: String,
    /// Where records go that cannot be mended, and what lists have delivered.
    pub store: Store,
    /// Connections to the source.
    pub client: SourceClient,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Hold the whole page back until it is whole, for a client that cannot
    /// see a page that breaks off.
    pub spool: bool,
}
