//! The interface of a repository, and a request to it.

use crate::event_stream::EventStream;
use crate::harvester_traits::HarvesterTraits;
use oaimend_oai::{Request, RequestEcho};
use std::sync::Arc;

/// A repository that answers requests of harvesters.
pub trait Repository: Send + Sync {
    /// Answers a request with a stream of events. Nothing happens before the first event is awaited.
    fn answer(&self, request: RepositoryRequest) -> EventStream;
}

/// One request to a repository.
#[derive(Clone, Debug)]
pub struct RepositoryRequest {
    /// The request of the harvester.
    pub request: Request,
    /// The `request` element of the response.
    pub echo: Arc<RequestEcho>,
    /// The `Via` header for a source.
    pub via: String,
    /// The properties of the harvester.
    pub harvester: HarvesterTraits,
    /// Hold the page until it is whole, for a client that cannot detect an aborted transfer.
    pub in_one_piece: bool,
    /// Report each record and each quarantined item as an event, before the bytes that contain it.
    pub reports_records: bool,
}
