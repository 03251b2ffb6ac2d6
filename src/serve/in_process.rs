//! The admin API without a server: for a command on a data folder that no server uses.

use crate::config::{Config, Repositories};
use crate::serve::admin;
use crate::serve::background::harvests::schedule::HarvestSchedule;
use crate::serve::context::{Opened, ServerContext};
use crate::serve::response::Body;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use oaimend_base::clock::SystemClock;
use oaimend_store::{MirrorError, Store};
use pingora_core::services::background::BackgroundService as _;
use std::sync::Arc;
use tokio::sync::watch;

/// The admin API on a data folder that no server uses. Harvests run only when they are requested.
pub struct InProcess {
    context: ServerContext,
    /// Ends the schedule of the harvests when it is dropped.
    _is_ending: watch::Sender<bool>,
}

/// A response of the admin API: its status, and the pieces of its body.
pub type ApiResponse = (u16, BoxStream<'static, Result<Bytes, MirrorError>>);

impl InProcess {
    /// Starts the API. It works while the runtime in which this is called runs.
    pub fn start(config: Config, store: Store) -> Self {
        let (listens_on, instance) = (config.listen, "oaimend".to_owned());
        let opened =
            Opened { store, cache: None, tls: None, listens_on, clock: Arc::new(SystemClock), instance };
        let context = ServerContext::new(config, opened);
        let (served, telemetry) = (Arc::clone(&context.served), Arc::clone(&context.telemetry));
        let (is_ending, shutdown) = watch::channel(false);
        let schedule = HarvestSchedule { served, telemetry, only_requested: true };
        tokio::spawn(async move { schedule.start(shutdown).await });
        Self { context, _is_ending: is_ending }
    }

    /// The repositories of the configuration.
    pub fn repositories(&self) -> &Repositories {
        &self.context.served.repositories
    }

    /// The response to a request, such as `GET /-/mirror`.
    pub async fn respond(&self, method: &str, target: &str) -> ApiResponse {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let response = admin::respond(&self.context, method, path, query).await;
        let body = match response.body {
            Body::Bytes(bytes) => stream::iter([Ok(bytes)]).boxed(),
            Body::Stream(pieces) => pieces,
        };
        (response.status, body)
    }

    /// Saves what was learned of the sources, and closes the search index and the store.
    pub fn close(&self) {
        if let Some(search) = &self.context.served.search_service {
            search.close();
        }
        if let Some(cache) = &self.context.served.cache {
            cache.close();
        }
        let store = &self.context.served.store;
        store.activity.save_changed();
        store.close();
    }
}
