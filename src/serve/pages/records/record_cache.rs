//! Rendered record pages in memory, for crawlers and people that open the same records.
//!
//! Invariant: a kept page is the response until a collection of its repository, its mapping or the configuration of the
//! gateway changes, and for [`KEPT_MAX`] at most. What a page shows of the repository itself, such as its name, may be
//! that old.

use crate::config::Mapping;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::{Body, Response};
use crate::serve::validators::Validators;
use bytes::Bytes;
use http::HeaderMap;
use oaimend_base::clock;
use oaimend_pages::RecordForm;
use oaimend_pages::route::RecordTarget;
use oaimend_store::{CollectionVersion, MirrorStore, Prefix, RepositoryId};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of bytes of all pages.
const PAGES_BYTES_MAX: u64 = 32 << 20;
/// A guess of the bytes of a page, for the size of the table.
const PAGE_BYTES: u64 = 16 << 10;
/// The bytes of the headers and the key of a page.
const ENTRY_BYTES: u64 = 2 << 10;
/// How long a page is kept. Clients may reuse it for the same time.
const KEPT_MAX: Duration = Duration::from_secs(300);

/// The rendered pages of records.
#[derive(Debug)]
pub(crate) struct RecordCache(Cache<PageName, Arc<KeptPage>, ByBytes>);

/// The name of a page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageName {
    pub(crate) target: RecordTarget,
    pub(crate) form: RecordForm,
}

/// The versions of the collections of a repository, by format.
pub(crate) type Versions = Vec<(String, Option<CollectionVersion>)>;

/// Everything on which a rendered page depends.
#[derive(Debug)]
pub(crate) struct PageBasis {
    pub(crate) gateway: Arc<GatewayState>,
    pub(crate) mapping: Arc<Mapping>,
    /// They were read before the record.
    pub(crate) versions: Versions,
}

/// A rendered page.
#[derive(Debug)]
pub(crate) struct KeptPage {
    basis: PageBasis,
    /// By [`clock::uptime`].
    kept_at: Duration,
    validators: Validators,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<PageName, Arc<KeptPage>> for ByBytes {
    fn weight(&self, _name: &PageName, page: &Arc<KeptPage>) -> u64 {
        page.body.len() as u64 + ENTRY_BYTES
    }
}

impl Default for RecordCache {
    fn default() -> Self {
        let pages = usize::try_from(PAGES_BYTES_MAX / PAGE_BYTES).unwrap_or_default();
        Self(Cache::with_weighter(pages, PAGES_BYTES_MAX, ByBytes))
    }
}

impl RecordCache {
    /// A kept page that is still the response.
    pub(crate) async fn find(
        &self,
        store: &dyn MirrorStore,
        gateway: &Arc<GatewayState>,
        mapping: &Arc<Mapping>,
        name: &PageName,
    ) -> Option<Arc<KeptPage>> {
        let page = self.0.get(name)?;
        let is_configured_so =
            Arc::ptr_eq(&page.basis.gateway, gateway) && Arc::ptr_eq(&page.basis.mapping, mapping);
        if !is_configured_so || clock::uptime().saturating_sub(page.kept_at) > KEPT_MAX {
            return None;
        }
        for (prefix, version) in &page.basis.versions {
            if store.version(RepositoryId(mapping.id()), Prefix(prefix)).await.ok()? != *version {
                return None;
            }
        }
        Some(page)
    }

    /// Keeps a page.
    pub(crate) fn keep(&self, name: PageName, basis: PageBasis, page: &Response, validators: Validators) {
        let Body::Bytes(body) = &page.body else { return };
        let kept = KeptPage {
            basis,
            kept_at: clock::uptime(),
            validators,
            headers: page.headers.clone(),
            body: body.clone(),
        };
        self.0.insert(name, Arc::new(kept));
    }
}

impl KeptPage {
    /// The response to a request with these headers.
    pub(crate) fn respond(&self, headers: &HeaderMap) -> Response {
        let (status, body) =
            if self.validators.are_known(headers) { (304, Bytes::new()) } else { (200, self.body.clone()) };
        let headers = self.headers.clone();
        let body = Body::Bytes(body);
        Response { status, headers, body, may_compress: true }
    }
}
