//! The state of a server.

use crate::serve::background::notifications::state::NoticeState;
use crate::serve::clients::limits::ClientLimits;
use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::net::tls_listener::TlsListener;
use crate::serve::oai::live_requests::LiveRequests;
use crate::serve::pages::gateway::Gateway;
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use std::net::SocketAddr;
use std::sync::Arc;

/// The state of a server. The listeners and the services in the background have all of it, and give each handler the
/// groups that it needs.
#[derive(Debug)]
pub(crate) struct ServerContext {
    pub(crate) served: Arc<ServedRepositories>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) clients: ClientLimits,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) notices: NoticeState,
    /// The requests that are being answered.
    pub(crate) live_requests: Arc<LiveRequests>,
    pub(crate) lifecycle: Lifecycle,
    /// The address of the listener for harvesters.
    pub(crate) listens_on: SocketAddr,
    /// The listener with TLS.
    pub(crate) tls: Option<TlsListener>,
    /// Our name in `Via`; differs at each start.
    pub(crate) instance: String,
}
