//! The state of a server.

use crate::config::Config;
use crate::serve::background::harvests::state::MirrorState;
use crate::serve::background::notifications::state::NoticeState;
use crate::serve::clients::limits::ClientLimits;
use crate::serve::deposit::DepositState;
use crate::serve::dumps::DumpState;
use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::net::tls_listener::TlsListener;
use crate::serve::oai::cache::Cache;
use crate::serve::oai::federation_members::KnownMembers;
use crate::serve::oai::live_requests::LiveRequests;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::state::GatewayState;
use crate::serve::resolver::{Broker, ResolverState};
use crate::serve::resourcesync::SyncIndexes;
use crate::serve::search::SearchService;
use crate::serve::served::ServedRepositories;
use crate::serve::source_lists::SourceLists;
use crate::serve::telemetry::Telemetry;
use http::HeaderValue;
use oaimend_base::clock::Clock;
use oaimend_crosswalks::{ConvertedRecords, FormatsCache};
use oaimend_search::Searches;
use oaimend_store::Store;
use oaimend_upstream::SourceClients;
use oaimend_xslt::{COMMAND, WorkerProgram, XsltLimits, XsltWorker};
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

/// What a server opens before it starts.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) cache: Option<Cache>,
    pub(crate) tls: Option<TlsListener>,
    /// See [`ServerContext::listens_on`].
    pub(crate) listens_on: SocketAddr,
    /// The clock of sessions with sources.
    pub(crate) clock: Arc<dyn Clock>,
    /// See [`ServerContext::instance`].
    pub(crate) instance: String,
}

impl ServerContext {
    /// The state of a server that starts.
    pub(crate) fn new(config: Config, opened: Opened) -> Self {
        let Opened { store, cache, tls, listens_on, clock, instance } = opened;
        let public_url = config.public_url.unwrap_or_else(|| match &tls {
            Some(tls) => format!("https://{}", tls.address()),
            None => format!("http://{listens_on}"),
        });
        let via = HeaderValue::try_from(format!("1.1 {instance}")).expect("letters, digits and a hyphen");
        let gateway = GatewayState::new(config.gateway, &public_url);
        let telemetry = Arc::new(Telemetry::new());
        let search_service = config.search.enabled.then(|| {
            let searches = Searches::new({
                let telemetry = Arc::clone(&telemetry);
                move |error, ran| telemetry.searched(error, ran)
            });
            Arc::new(SearchService::new(config.search, &config.data, searches))
        });
        let served = ServedRepositories {
            public_url,
            via,
            repositories: config.repositories,
            sources: SourceClients::new(store.static_files.clone()),
            resolver: ResolverState::new(&store),
            broker: Broker::new(config.services),
            deposit: DepositState::new(&config.data),
            dumps: DumpState::new(&config.data),
            sync_indexes: SyncIndexes::default(),
            store,
            cache,
            mirror: MirrorState::new(config.mirror),
            source_lists: SourceLists::default(),
            views: config.views,
            crosswalks: config.crosswalks,
            sheets: XsltWorker::new(WorkerProgram::this_program(COMMAND), XsltLimits::default()),
            known_formats: FormatsCache::default(),
            converted: ConvertedRecords::default(),
            federations: config.federations,
            federation_state: Arc::default(),
            federation_members: KnownMembers::default(),
            search_service,
            clock,
        };
        Self {
            served: Arc::new(served),
            gateway: Arc::new(Gateway::new(gateway)),
            clients: ClientLimits::new(config.clients, config.connections),
            telemetry,
            notices: NoticeState::new(config.notifications, config.reports),
            live_requests: Arc::default(),
            lifecycle: Lifecycle::default(),
            listens_on,
            tls,
            instance,
        }
    }
}
