//! The repository that asks the source for each response.

use crate::client::request_context::RequestContext;
use crate::client::source_client::SourceClient;
use crate::http::hop_headers::HopHeaders;
use crate::session::list_session::start_session;
use crate::settings::SourceMapping;
use oaimend_base::clock::Clock;
use oaimend_oai::Argument;
use oaimend_repository::{EventStream, Repository, RepositoryRequest};
use oaimend_store::Store;
use std::sync::Arc;

/// A repository that asks the source for each response.
#[derive(Clone, Debug)]
pub struct LiveRepository {
    /// The configuration of the repository.
    pub mapping: Arc<SourceMapping>,
    /// The client of the source.
    pub client: SourceClient,
    /// The quarantine, the ledger and the other stores.
    pub store: Store,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Repository for LiveRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let Self { mapping, client, store, clock } = self.clone();
        let set = request.request.argument(Argument::Set);
        let source_set = set.and_then(|set| store.profiles.source_set(&mapping.source_key(), set));
        let source_request =
            source_set.map_or_else(|| request.request.clone(), |set| request.request.with_set(&set));
        let RepositoryRequest { request, echo, via, harvester, in_one_piece, reports_records } = request;
        start_session(RequestContext {
            mapping,
            request,
            source_request,
            echo,
            headers: HopHeaders { via, harvester },
            store,
            client,
            clock,
            in_one_piece,
            reports_records,
        })
    }
}
