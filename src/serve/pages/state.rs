//! The configuration of the gateway, as requests use it.

use crate::config::GatewayPolicy;
use oaimend_html::{Site, fingerprint};

/// The configuration of the gateway. A request uses one version of it.
#[derive(Debug)]
pub(crate) struct GatewayState {
    pub(crate) policy: GatewayPolicy,
    pub(crate) site: Site,
    /// Changes with everything that all pages have in common.
    pub(crate) version: String,
}

impl GatewayState {
    /// The state of a server with this public URL, without a trailing slash.
    pub(crate) fn new(policy: GatewayPolicy, public_url: &str) -> Self {
        let site = Site::new(&policy.title, policy.contact.as_deref(), public_url);
        let site = match &policy.theme {
            Some(theme) => site.with_theme(&theme.css),
            None => site,
        };
        Self { version: version_of(&policy, &site), policy, site }
    }

    /// The same state of a server that searches its records.
    pub(crate) fn with_search(&self) -> Self {
        let site = self.site.clone().with_search();
        Self { version: version_of(&self.policy, &site), policy: self.policy.clone(), site }
    }
}

/// Changes with everything that all pages have in common.
fn version_of(policy: &GatewayPolicy, site: &Site) -> String {
    let facts = format!("{} {site:?} {:?}", env!("CARGO_PKG_VERSION"), policy.canonical);
    fingerprint([facts.as_bytes()])
}
