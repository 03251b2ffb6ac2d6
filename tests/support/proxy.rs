//! The proxy on loopback, in front of sources of a test.
#![allow(dead_code, reason = "each test binary uses its part")]

use oaimend::config::{Config, Limits, Mapping};
use oaimend::proxy::Running;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::source::{Got, Source, fetch};
use super::time::Skipping;

/// A proxy with one repository, `x`, unless the test configures others.
pub(crate) struct Proxy {
    pub(crate) running: Running,
    pub(crate) clock: Arc<Skipping>,
    data: tempfile::TempDir,
}

impl Proxy {
    pub(crate) fn of(source: &Source) -> Self {
        Self::tuned(source, |_| {})
    }

    /// With the mapping of `x` changed.
    pub(crate) fn tuned(source: &Source, tune: impl FnOnce(&mut Mapping)) -> Self {
        let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
        tune(&mut mapping);
        Self::with(|config| config.repositories.fix(mapping))
    }

    pub(crate) fn with(configure: impl FnOnce(&mut Config)) -> Self {
        let data = tempfile::tempdir().expect("a temporary folder");
        Self::start(data, Skipping::new(), configure)
    }

    /// With a time and a data folder of the test's own.
    pub(crate) fn start(
        data: tempfile::TempDir,
        clock: Arc<Skipping>,
        configure: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config::on_loopback(data.path());
        configure(&mut config);
        let time = Arc::clone(&clock) as Arc<dyn oaimend::clock::Clock>;
        Self { running: Running::start_with(config, time).expect("loopback has free ports"), clock, data }
    }

    /// Ends it, and starts another one on what it has left behind.
    pub(crate) fn restarted(self, configure: impl FnOnce(&mut Config)) -> Self {
        let Self { running, clock, data } = self;
        running.stop();
        Self::start(data, clock, configure)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.public_addr
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.running.admin_addr.expect("it is on")
    }

    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn get(&self, path: &str) -> Got {
        fetch(self.address(), path)
    }

    /// What the admin listener says, as JSON.
    pub(crate) fn told(&self, path: &str) -> serde_json::Value {
        let got = fetch(self.admin(), path);
        serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{error}: {}", got.text()))
    }
}

/// The repository `x`, whose source takes as many requests at a time as come.
pub(crate) fn at_once(source: &Source) -> Mapping {
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.politeness.list_requests_max = 1000;
    mapping
}

/// A list request for the repository `x`.
pub(crate) const LIST: &str = "/x?verb=ListRecords&metadataPrefix=oai_dc";

/// The records of a page, as they stand in it.
pub(crate) fn records(page: &str) -> &str {
    let start = page.find("<ListRecords>").unwrap_or(page.len());
    let end = page.find("</ListRecords>").unwrap_or(page.len());
    &page[start..end]
}
