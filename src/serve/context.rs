//! The state that every request and every connection shares.

use crate::config::{self, Mapping, Repositories};
use crate::serve::background::harvests::state::MirrorState;
use crate::serve::background::notifications::state::NoticeState;
use crate::serve::clients::client_class::ClientClasses;
use crate::serve::clients::quotas::{Quotas, Uptime};
use crate::serve::net::handover::HandoverState;
use crate::serve::net::tls_listener::TlsListener;
use crate::serve::oai::cache::{Cache, PageVariant};
use crate::serve::oai::live_requests::LiveRequests;
use crate::serve::pages::record_cache::RecordCache;
use crate::serve::pages::rendering::RenderLimits;
use crate::serve::pages::state::GatewayState;
use crate::serve::telemetry::Telemetry;
use http::HeaderValue;
use oaimend_base::clock::Clock;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_oai::{Request, Verb};
use oaimend_store::Store;
use oaimend_upstream::{SourceClients, origin_of_request};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// The state of a server.
#[derive(Debug)]
pub(crate) struct ServerContext {
    /// The URL in `request` and `baseURL`, without a trailing slash.
    pub(crate) public_url: String,
    /// The address of the listener for harvesters.
    pub(crate) listens_on: std::net::SocketAddr,
    /// The listener with TLS.
    pub(crate) tls: Option<TlsListener>,
    /// Our name in `Via`; differs at each start.
    pub(crate) instance: String,
    /// Our hop in the `Via` field of responses.
    pub(crate) via: HeaderValue,
    pub(crate) repositories: Repositories,
    pub(crate) clients: SourceClients,
    pub(crate) limits: RwLock<Arc<RequestLimits>>,
    pub(crate) cache: Option<Cache>,
    pub(crate) store: Store,
    /// The views of mirrored repositories.
    pub(crate) mirror: MirrorState,
    pub(crate) telemetry: Telemetry,
    /// The configuration of the mirror. A request or harvest uses one version of it.
    pub(crate) mirror_policy: RwLock<Arc<MirrorPolicy>>,
    /// The notifications of operators.
    pub(crate) notices: NoticeState,
    /// The configuration of the gateway.
    pub(crate) gateway: RwLock<Arc<GatewayState>>,
    /// The limits of all renderings of pages.
    pub(crate) rendering: RenderLimits,
    /// The rendered pages of records.
    pub(crate) record_cache: RecordCache,
    /// The requests that are being answered.
    pub(crate) live_requests: Arc<LiveRequests>,
    /// The clock of sessions with sources.
    pub(crate) clock: Arc<dyn Clock>,
    /// Set when the process ends: requests in flight are answered, new ones are refused.
    pub(crate) draining: AtomicBool,
    /// Set when another process takes over.
    pub(crate) handover: watch::Sender<HandoverState>,
}

/// The limits of clients. A request or connection uses one version of them.
#[derive(Debug)]
pub(crate) struct RequestLimits {
    pub(crate) classes: Arc<ClientClasses>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) connections: config::Connections,
    /// The configuration of `classes` and `quotas`.
    pub(crate) clients: config::ClientPolicy,
}

impl RequestLimits {
    pub(crate) fn new(clients: config::ClientPolicy, connections: config::Connections) -> Self {
        let classes = Arc::new(ClientClasses::new(&clients));
        let quotas = Arc::new(Quotas::new(&clients, Uptime));
        Self { classes, quotas, connections, clients }
    }

    /// The limits with another configuration. Unchanged quotas keep their counters.
    pub(crate) fn changed(&self, clients: config::ClientPolicy, connections: config::Connections) -> Self {
        if clients != self.clients {
            return Self::new(clients, connections);
        }
        let (classes, quotas) = (Arc::clone(&self.classes), Arc::clone(&self.quotas));
        Self { classes, quotas, connections, clients }
    }
}

impl ServerContext {
    /// What distinguishes pages that answer the same request: the earliestDatestamp of an Identify response, where it
    /// differs from that of the source, and the origin of a token.
    pub(crate) fn page_variant(&self, mapping: &Mapping, request: &Request) -> PageVariant {
        if request.is_resumption() {
            return match origin_of_request(&self.store, mapping.id(), request) {
                Some(origin) => {
                    PageVariant::Shared(Some(format!("{:016x}", origin ^ self.store.ledger.epoch())))
                }
                None => PageVariant::Unshared,
            };
        }
        let is_identify = request.verb() == Verb::Identify;
        PageVariant::Shared(
            is_identify.then(|| self.store.profiles.lowered_to(&mapping.source.source_key())).flatten(),
        )
    }

    /// The current configuration of the mirror.
    pub(crate) fn mirror_policy(&self) -> Arc<MirrorPolicy> {
        Arc::clone(&self.mirror_policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The current configuration of the gateway.
    pub(crate) fn gateway(&self) -> Arc<GatewayState> {
        Arc::clone(&self.gateway.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the process stops, or another process takes over.
    pub(crate) fn is_ending(&self) -> bool {
        self.draining.load(Ordering::Relaxed) || *self.handover.subscribe().borrow() != HandoverState::Serving
    }

    /// The current limits.
    pub(crate) fn limits(&self) -> Arc<RequestLimits> {
        Arc::clone(&self.limits.read().unwrap_or_else(PoisonError::into_inner))
    }
}
