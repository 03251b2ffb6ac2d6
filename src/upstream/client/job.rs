//! One request of a harvester, with everything that its session needs.

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
    /// The request of the harvester.
    pub request: Request,
    /// The same request with the setSpecs of the source.
    pub asked: Request,
    /// The `request` element of the response.
    pub own: Arc<RequestEcho>,
    /// The `Via` header for the source.
    pub via: String,
    /// The quarantine, the ledger and the other stores.
    pub store: Store,
    /// The client of the source.
    pub client: SourceClient,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Hold the page until it is whole, for a client that cannot detect an aborted transfer.
    pub spool: bool,
}
