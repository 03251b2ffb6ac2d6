//! What the requests, pages and harvests of repositories share.

use crate::config::{Federations, Mapping, Repositories, Views};
use crate::serve::background::harvests::state::MirrorState;
use crate::serve::deposit::DepositState;
use crate::serve::dumps::DumpState;
use crate::serve::oai::cache::{Cache, PageVariant};
use crate::serve::oai::federation_members::KnownMembers;
use crate::serve::resolver::{Broker, ResolverState};
use crate::serve::resourcesync::SyncIndexes;
use crate::serve::search::SearchService;
use crate::serve::source_lists::SourceLists;
use http::HeaderValue;
use oaimend_base::clock::Clock;
use oaimend_crosswalks::{ConvertedRecords, CrosswalkChoices, FormatsCache};
use oaimend_federation::FederationState;
use oaimend_oai::{Request, Verb};
use oaimend_store::Store;
use oaimend_upstream::{SourceClients, origin_of_request};
use oaimend_xslt::XsltWorker;
use std::sync::Arc;

/// The repositories that a server serves, what is stored of them, and the clients of their sources.
#[derive(Debug)]
pub(crate) struct ServedRepositories {
    /// The URL in `request` and `baseURL`, without a trailing slash.
    pub(crate) public_url: String,
    /// Our hop in the `Via` field of requests and responses.
    pub(crate) via: HeaderValue,
    pub(crate) repositories: Repositories,
    pub(crate) sources: SourceClients,
    pub(crate) store: Store,
    pub(crate) cache: Option<Cache>,
    pub(crate) mirror: MirrorState,
    /// The records of repositories that are not mirrored.
    pub(crate) source_lists: SourceLists,
    /// The views of chosen records.
    pub(crate) views: Views,
    /// The crosswalks of `/_all`, and of views that do not say otherwise.
    pub(crate) crosswalks: CrosswalkChoices,
    /// The process that runs the sheets of crosswalks.
    pub(crate) sheets: XsltWorker,
    /// The formats of sources, for crosswalks.
    pub(crate) known_formats: FormatsCache,
    /// The records that crosswalks have converted.
    pub(crate) converted: ConvertedRecords,
    /// The federations of chosen repositories.
    pub(crate) federations: Federations,
    /// What requests to federations learn of their members.
    pub(crate) federation_state: Arc<FederationState>,
    /// The members of the federations.
    pub(crate) federation_members: KnownMembers,
    /// The search, if it is turned on. Requests use [`ServedRepositories::search`].
    pub(crate) search_service: Option<Arc<SearchService>>,
    /// The identifiers of mirrored records.
    pub(crate) resolver: ResolverState,
    /// The writers of local repositories.
    pub(crate) deposit: DepositState,
    /// The dumps, and the listeners of the feed of changes.
    pub(crate) dumps: DumpState,
    /// The last indexes of ResourceSync lists.
    pub(crate) sync_indexes: SyncIndexes,
    /// The services that may have records.
    pub(crate) broker: Broker,
    /// The clock of sessions with sources.
    pub(crate) clock: Arc<dyn Clock>,
}

impl ServedRepositories {
    /// The mapping of a mirrored repository.
    pub(crate) fn mirrored(&self, id: &str) -> Option<Arc<Mapping>> {
        self.repositories.find(id).filter(|mapping| mapping.mirror.is_some())
    }

    /// The mapping of a mirrored repository that has a source.
    pub(crate) fn harvested(&self, id: &str) -> Option<Arc<Mapping>> {
        self.repositories.find(id).filter(|mapping| mapping.harvest().is_some())
    }

    /// Whether a repository is mirrored.
    pub(crate) fn has_mirrored(&self) -> bool {
        self.repositories.all().values().any(|mapping| mapping.mirror.is_some())
    }

    /// The search in the mirrored repositories; `None` if it is turned off, or no repository is mirrored.
    pub(crate) fn search(&self) -> Option<&Arc<SearchService>> {
        let search = self.search_service.as_ref()?;
        self.has_mirrored().then_some(search)
    }

    /// What distinguishes pages that answer the same request: the earliestDatestamp of an Identify response, where it
    /// differs from that of the source, and the origin of a token.
    pub(crate) async fn page_variant(&self, mapping: &Mapping, request: &Request) -> PageVariant {
        if request.is_resumption() {
            return match origin_of_request(&self.store, mapping.id(), request).await {
                Some(origin) => {
                    let epoch = self.store.ledger.epoch().await;
                    PageVariant::Shared(Some(format!("{:016x}", origin ^ epoch)))
                }
                None => PageVariant::Unshared,
            };
        }
        let is_identify = request.verb() == Verb::Identify;
        PageVariant::Shared(
            is_identify.then(|| self.store.profiles.lowered_to(&mapping.source.source_key())).flatten(),
        )
    }
}
