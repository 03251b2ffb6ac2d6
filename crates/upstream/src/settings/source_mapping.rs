//! What the mapping of a repository says about its source.

use super::bearer_token::BearerToken;
use super::headers::SourceHeaders;
use super::limits::Limits;
use super::politeness::Politeness;
use super::proxy::ProxySetting;
use super::quirks::Quirks;
use super::static_file::StaticFile;
use blake2::{Blake2s256, Digest};
use oaimend_base::certificate::CertificateFiles;
use oaimend_base::credentials::Credentials;
use oaimend_oai::named_enum;
use oaimend_repair::{IdentifyValues, ProvenanceScope, RepairConfig, RepairSet};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// A source, and how it is requested: the part of a mapping that concerns the source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceMapping {
    /// The repository id: the name of the file, and the first path segment of our URLs.
    pub id: String,
    /// The source's base URL, http or https; for a static repository or a tape the URL of its file.
    pub base_url: Url,
    /// The static repository file that is used instead of a server.
    pub static_file: Option<StaticFile>,
    /// The tape that is used instead of a server.
    pub tape_file: Option<PathBuf>,
    /// How the source is reached, and the secrets for it.
    pub access: Access,
    /// How long oaimend waits for the source.
    pub timeouts: Timeouts,
    /// The repairs that are turned on or off, and how repairs are reported.
    pub repairs: RepairChoices,
    /// Values for Identify, for fields that the source leaves out or that are illegal.
    pub identify: IdentifyValues,
    /// The particulars of this source.
    pub quirks: Quirks,
    /// The limits on our requests to the source.
    pub politeness: Politeness,
    /// The limits on responses of the source.
    pub limits: Limits,
}

/// How a source is reached, and the secrets for it. The secrets are sent only to the scheme, host and port of its base URL.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// User and password for the source.
    pub credentials: Option<Credentials>,
    /// A bearer token for the source, in a file.
    pub bearer_token: Option<BearerToken>,
    /// Additional headers of requests.
    pub headers: SourceHeaders,
    /// `User-Agent` of our requests.
    pub user_agent: String,
    /// `From` of our requests: the mail address of the person who harvests.
    pub from: Option<String>,
    /// The HTTP proxy through which the source is requested.
    pub proxy: ProxySetting,
    /// TLS with the source.
    pub tls: SourceTls,
    /// Whether a public base URL may resolve or redirect to private addresses.
    pub allow_private: bool,
    /// The hosts, with or without a port, to which a private source may redirect beside its own one.
    pub redirect_hosts: Vec<String>,
}

/// TLS with a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTls {
    /// A file of PEM certificates that may sign the source's certificate, in addition to the usual
    /// ones.
    pub ca_file: Option<PathBuf>,
    /// The certificate by which oaimend identifies itself.
    pub client_certificate: Option<CertificateFiles>,
    /// Whether the source's certificate is verified.
    pub verify: bool,
}

/// How long oaimend waits for a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The connect timeout, TLS included.
    pub connect: Duration,
    /// The longest silence of the source, before its header and in its body.
    pub read: Duration,
}

/// The repairs that are turned on or off, and how repairs are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairChoices {
    /// The treatment of records that cannot be repaired.
    pub on_unrepairable: OnUnrepairable,
    /// Repairs that are turned off.
    pub off: RepairSet,
    /// Repairs that are turned on, of those that are off by default.
    pub enabled: RepairSet,
    /// Which records get an `about` element with their provenance.
    pub provenance: Option<ProvenanceScope>,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            credentials: None,
            bearer_token: None,
            headers: SourceHeaders::default(),
            user_agent: concat!("oaimend/", env!("CARGO_PKG_VERSION")).to_owned(),
            from: None,
            proxy: ProxySetting::default(),
            tls: SourceTls { ca_file: None, client_certificate: None, verify: true },
            allow_private: false,
            redirect_hosts: Vec::new(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), read: Duration::from_secs(30) }
    }
}

named_enum! {
    /// The treatment of records that cannot be repaired.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OnUnrepairable {
        /// The record is quarantined, and the page continues.
        #[default]
        Quarantine = "quarantine",
        /// The record is quarantined, and the page fails visibly.
        Fail = "fail",
    }
}

impl SourceMapping {
    /// A source with the defaults for everything but its limits.
    pub fn new(id: &str, base_url: Url, limits: &Limits) -> Self {
        Self {
            id: id.to_owned(),
            base_url,
            static_file: None,
            tape_file: None,
            access: Access::default(),
            timeouts: Timeouts::default(),
            repairs: RepairChoices::default(),
            identify: IdentifyValues::default(),
            quirks: Quirks::default(),
            politeness: Politeness::default(),
            limits: limits.clone(),
        }
    }

    /// Whether a file is used instead of a server.
    pub fn is_file(&self) -> bool {
        self.static_file.is_some() || self.tape_file.is_some()
    }

    /// The configuration of the engine by this mapping, without facts of one response.
    pub fn repair_config(&self) -> RepairConfig {
        let mut config = RepairConfig::default();
        config.limits = self.limits.repair.clone();
        config.off = self.repairs.off;
        config.enabled = self.repairs.enabled;
        config.text_charset = self.quirks.charset.map(str::to_owned);
        config.identify = self.identify.clone();
        config
    }

    /// The key of everything learned about this source; another base URL is another source.
    pub fn source_key(&self) -> String {
        format!("{} {}", self.id, self.base_url)
    }

    /// A hash of the whole mapping in 16 hexadecimal digits; it changes with every change of the
    /// mapping.
    pub fn fingerprint(&self) -> String {
        hex::encode(&Blake2s256::digest(format!("{self:?}"))[..8])
    }
}
