//! One request of a harvester, with everything that its session needs.

use crate::client::source_client::SourceClient;
use crate::http::hop_headers::HopHeaders;
use crate::settings::SourceMapping;
use oaimend_base::clock::Clock;
use oaimend_oai::{Request, RequestEcho};
use oaimend_store::Store;
use std::sync::Arc;

/// One request of a harvester.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// The repository.
    pub(crate) mapping: Arc<SourceMapping>,
    /// The request of the harvester.
    pub(crate) request: Request,
    /// The same request with the setSpecs of the source.
    pub(crate) source_request: Request,
    /// The `request` element of the response.
    pub(crate) echo: Arc<RequestEcho>,
    /// The headers for the source that depend on the harvester.
    pub(crate) headers: HopHeaders,
    /// The quarantine, the ledger and the other stores.
    pub(crate) store: Store,
    /// The client of the source.
    pub(crate) client: SourceClient,
    /// The clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Hold the page until it is whole, for a client that cannot detect an aborted transfer.
    pub(crate) in_one_piece: bool,
    /// Report each record and each quarantined item as an event.
    pub(crate) reports_records: bool,
}
