//! The headers that a request passes on to the source.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use oaimend_repository::HarvesterTraits;

/// The headers of one request that depend on the requester.
#[derive(Clone, Debug, Default)]
pub(crate) struct HopHeaders {
    /// The `Via` header.
    pub(crate) via: String,
    /// The properties of the harvester.
    pub(crate) harvester: HarvesterTraits,
}

impl HopHeaders {
    /// Adds them to the headers of a request. A value that no header can contain is left out.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        if let Ok(via) = HeaderValue::from_str(&self.via) {
            headers.insert(header::VIA, via);
        }
        let traits = self.harvester.to_header();
        if let Some(traits) = traits.and_then(|traits| HeaderValue::try_from(traits).ok()) {
            headers.insert(HeaderName::from_static(HarvesterTraits::HEADER), traits);
        }
    }
}
