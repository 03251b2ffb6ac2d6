//! The limits of clients and connections, which change with the configuration.

use super::client_class::ClientClasses;
use super::quotas::{Permit, Quotas, RequestKind, Uptime};
use crate::config;
use crate::serve::response::Response;
use crate::serve::telemetry::Telemetry;
use http::HeaderMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

/// The current limits.
#[derive(Debug)]
pub(crate) struct ClientLimits(RwLock<Arc<RequestLimits>>);

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
    fn new(clients: config::ClientPolicy, connections: config::Connections) -> Self {
        let classes = Arc::new(ClientClasses::new(&clients));
        let quotas = Arc::new(Quotas::new(&clients, Uptime));
        Self { classes, quotas, connections, clients }
    }

    /// The limits with another configuration. Unchanged quotas keep their counters.
    fn changed(&self, clients: config::ClientPolicy, connections: config::Connections) -> Self {
        if clients != self.clients {
            return Self::new(clients, connections);
        }
        let (classes, quotas) = (Arc::clone(&self.classes), Arc::clone(&self.quotas));
        Self { classes, quotas, connections, clients }
    }
}

impl ClientLimits {
    pub(crate) fn new(clients: config::ClientPolicy, connections: config::Connections) -> Self {
        Self(RwLock::new(Arc::new(RequestLimits::new(clients, connections))))
    }

    /// The limits at this time.
    pub(crate) fn current(&self) -> Arc<RequestLimits> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration. Unchanged quotas keep their counters.
    pub(crate) fn change(&self, clients: config::ClientPolicy, connections: config::Connections) {
        let mut limits = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *limits = Arc::new(limits.changed(clients, connections));
    }

    /// Admits a request, or returns the refusal. `None`: its client has no quota.
    pub(crate) async fn admit(
        &self,
        kind: RequestKind,
        peer: Option<SocketAddr>,
        headers: &HeaderMap,
        telemetry: &Telemetry,
    ) -> Result<Option<Permit>, Response> {
        let limits = self.current();
        let Some(client) = limits.classes.client(peer, headers) else {
            if limits.classes.should_warn_of_untrusted_proxy(headers) {
                tracing::warn!(
                    "X-Forwarded-For from loopback is not trusted, so requests through a local proxy have no quota; \
                     set clients.trusted_proxies"
                );
            }
            return Ok(None);
        };
        limits.quotas.admit(client, kind).await.map(Some).map_err(|refused| {
            let class = &limits.classes.names()[client.class];
            telemetry.refused(Some(class), refused.reason());
            tracing::debug!(class, client = %client.origin, reason = refused.reason().name(), "refused");
            Response::refused(refused.retry_after_secs, &refused.text(class))
        })
    }
}
