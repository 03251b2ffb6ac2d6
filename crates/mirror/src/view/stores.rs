//! The state that views share.

use super::aggregate_versions::AggregateVersions;
use super::origins::KnownOrigins;
use super::page_cache::PageCache;
use super::selection::QuerySets;
use crate::spans::SpanTable;
use crate::stamps::Stamps;
use oaimend_base::clock::Clock;
use oaimend_store::{MirrorStore, TokenKey};
use std::sync::Arc;

/// The state that all views share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ViewStores {
    /// The mirrored records.
    pub store: Arc<dyn MirrorStore>,
    /// The stamps of the same store. The harvester uses them too.
    pub stamps: Arc<Stamps>,
    /// The times that harvesters derived from lists.
    pub spans: SpanTable,
    pub(crate) pages: PageCache,
    pub(super) origins: KnownOrigins,
    /// The versions of the view of all repositories.
    pub(super) aggregate: AggregateVersions,
    /// The sets that requests choose; `None` if there are none.
    pub query_sets: Option<Arc<dyn QuerySets>>,
    pub(crate) token_key: TokenKey,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ViewStores {
    /// The state of the views over a store. `stamps` are those of the same store, `token_key` signs the
    /// resumptionTokens.
    pub fn new(
        store: Arc<dyn MirrorStore>,
        stamps: Arc<Stamps>,
        token_key: TokenKey,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let spans = SpanTable::new(Arc::clone(&store));
        let aggregate = AggregateVersions::new(Arc::clone(&store), Arc::clone(&stamps));
        Self {
            store,
            stamps,
            spans,
            pages: PageCache::default(),
            origins: KnownOrigins::default(),
            aggregate,
            query_sets: None,
            token_key,
            clock,
        }
    }
}
