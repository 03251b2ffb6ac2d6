//! The mapping of one repository: the file `mappings/<repositoryid>.toml`, resolved.

use super::access::bearer_token::BearerToken;
use super::access::headers::SourceHeaders;
use super::access::proxy::{ProxySetting, read_proxy};
use super::certificate_files;
use super::credentials::Credentials;
use super::file::{Document, Located, Table, find_nearest};
use super::gateway::{RecordPages, read_records};
use super::mirror::{MirrorSettings, ServeFrom, read_serve};
use super::reports::{ReportTo, read_report_to};
use super::{Limits, Politeness, Quirks, StaticFile, identify};
use crate::certificate::CertificateFiles;
use crate::error::Fault;
use crate::repair::catalog::CATALOG;
use crate::repair::{IdentifyValues, ProvenanceScope, RepairConfig, RepairId, RepairSet};
use blake2::{Blake2s256, Digest};
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// A repository, and how its source is requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// The repository id: the name of the file, and the first path segment of our URLs.
    pub id: String,
    /// The source's base URL, http or https; for a static repository the URL of its file.
    pub base_url: Url,
    /// The static repository file that is used instead of a server.
    pub static_file: Option<StaticFile>,
    /// User and password for the source; sent only to the scheme, host and port of `base_url`.
    pub credentials: Option<Credentials>,
    /// A bearer token for the source, in a file; sent as the credentials are.
    pub bearer_token: Option<BearerToken>,
    /// Additional headers of requests; sent as the credentials are.
    pub headers: SourceHeaders,
    /// The HTTP proxy through which the source is requested.
    pub proxy: ProxySetting,
    /// A file of PEM certificates that may sign the source's certificate, in addition to the usual
    /// ones.
    pub ca_file: Option<PathBuf>,
    /// The certificate by which oaimend identifies itself; sent only to the scheme, host and port of `base_url`.
    pub client_certificate: Option<CertificateFiles>,
    /// Whether the source's certificate is verified.
    pub verify: bool,
    /// The connect timeout, TLS included.
    pub connect_timeout: Duration,
    /// The longest silence of the source, before its header and in its body.
    pub read_timeout: Duration,
    /// `User-Agent` of our requests.
    pub user_agent: String,
    /// `From` of our requests: the mail address of the person who harvests.
    pub from: Option<String>,
    /// Whether a public base URL may resolve or redirect to private addresses.
    pub allow_private: bool,
    /// The hosts, with or without a port, to which a private source may redirect beside its own one.
    pub redirect_hosts: Vec<String>,
    /// The treatment of records that cannot be repaired.
    pub on_unrepairable: OnUnrepairable,
    /// Whether a stale first page of a list may be served when the source fails.
    pub stale_lists: bool,
    /// Repairs that are turned off.
    pub off: RepairSet,
    /// Repairs that are turned on, of those that are off by default.
    pub enabled: RepairSet,
    /// Which records get an `about` element with their provenance.
    pub provenance: Option<ProvenanceScope>,
    /// Values for Identify, for fields that the source leaves out or that are illegal.
    pub identify: IdentifyValues,
    /// The particulars of this source.
    pub quirks: Quirks,
    /// The limits on our requests to the source.
    pub politeness: Politeness,
    /// Who receives the weekly report; `None`: nobody.
    pub report_to: Option<ReportTo>,
    /// The part of the program that answers requests for this repository.
    pub serve: ServeFrom,
    /// How the repository is mirrored; `None` if it is not.
    pub mirror: Option<MirrorSettings>,
    /// What the URLs of its records show, if it is mirrored.
    pub records: RecordPages,
    /// The limits on responses of the source.
    pub limits: Limits,
}

/// The treatment of records that cannot be repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnrepairable {
    /// The record is quarantined, and the page continues.
    #[default]
    Quarantine,
    /// The record is quarantined, and the page fails visibly.
    Fail,
}

impl Mapping {
    /// A repository with only an id and a base URL; the error text names the expected value.
    pub fn new(id: &str, base_url: &str, limits: &Limits) -> Result<Self, String> {
        check_id(id)?;
        Ok(Self {
            id: id.to_owned(),
            base_url: read_base_url(base_url)?,
            static_file: None,
            credentials: None,
            bearer_token: None,
            headers: SourceHeaders::default(),
            proxy: ProxySetting::default(),
            ca_file: None,
            client_certificate: None,
            verify: true,
            connect_timeout: CONNECT_TIMEOUT,
            read_timeout: READ_TIMEOUT,
            user_agent: default_user_agent(),
            from: None,
            allow_private: false,
            redirect_hosts: Vec::new(),
            on_unrepairable: OnUnrepairable::default(),
            stale_lists: false,
            off: RepairSet::EMPTY,
            enabled: RepairSet::EMPTY,
            provenance: None,
            identify: IdentifyValues::default(),
            quirks: Quirks::default(),
            politeness: Politeness::default(),
            report_to: None,
            serve: ServeFrom::default(),
            mirror: None,
            records: RecordPages::default(),
            limits: limits.clone(),
        })
    }

    /// The configuration of the engine by this mapping, without facts of one response.
    pub fn repair_config(&self) -> RepairConfig {
        RepairConfig {
            limits: self.limits.repair.clone(),
            off: self.off,
            enabled: self.enabled,
            text_charset: self.quirks.charset.map(str::to_owned),
            identify: self.identify.clone(),
            ..RepairConfig::default()
        }
    }

    /// Reads the mapping file of a repository.
    pub(super) fn read(id: &str, file: &Path, text: &str, limits: &Limits) -> Result<Self, Vec<Fault>> {
        let document = Document::new(file, text);
        let mut root = document.root();
        if let Err(text) = check_id(id) {
            document.report_fault(0..0, format!("the file name \"{id}\" {text}"));
        }
        let given_static_file = StaticFile::read(&mut root, file);
        let is_static = root.has_key("static_file");
        let base_url = root.read_parsed("base_url", read_base_url);
        if !is_static && base_url.is_none() && !root.has_key("base_url") {
            root.report_missing(
                "base_url is missing; expected base_url = \"https://source.example/oai\", or static_file"
                    .into(),
            );
        }
        let (base_url, static_file) = match given_static_file {
            Some((url, static_file)) => (Some(url), Some(static_file)),
            None => (base_url, None),
        };
        let mut mapping = Self {
            id: id.to_owned(),
            base_url: base_url.unwrap_or_else(placeholder_url),
            static_file,
            credentials: Credentials::read(&mut root, file.parent().unwrap_or(Path::new(""))),
            bearer_token: BearerToken::read(&mut root, file),
            headers: SourceHeaders::default(),
            proxy: root.read_parsed("proxy", read_proxy).unwrap_or_default(),
            ca_file: None,
            client_certificate: None,
            verify: true,
            connect_timeout: read_seconds(&mut root, "connect_timeout_secs").unwrap_or(CONNECT_TIMEOUT),
            read_timeout: read_seconds(&mut root, "read_timeout_secs").unwrap_or(READ_TIMEOUT),
            user_agent: root.read_parsed("user_agent", read_header_text).unwrap_or_else(default_user_agent),
            from: root.read_parsed("from", read_header_text),
            allow_private: root.read_bool("allow_private").unwrap_or(false),
            redirect_hosts: read_redirect_hosts(&mut root),
            on_unrepairable: root.read_parsed("on_unrepairable", read_on_unrepairable).unwrap_or_default(),
            stale_lists: root.read_bool("stale_lists").unwrap_or(false),
            off: RepairSet::EMPTY,
            enabled: RepairSet::EMPTY,
            provenance: root.read_parsed("provenance", read_provenance).unwrap_or_default(),
            identify: identify::read(root.take_table("identify")),
            quirks: Quirks::read(&mut root),
            politeness: Politeness::default(),
            report_to: root.read_parsed("report_to", read_report_to),
            serve: root.read_parsed("serve", read_serve).unwrap_or_default(),
            mirror: None,
            records: root.read_parsed("records", read_records).unwrap_or_default(),
            limits: limits.clone(),
        };
        let settings = MirrorSettings::read(root.take_table("mirror"));
        let is_mirrored = root.has_key("mirror") || mapping.serve != ServeFrom::Live;
        mapping.mirror = is_mirrored.then_some(settings);
        mapping.read_headers(&mut root);
        mapping.read_tls(root.take_table("tls"), file);
        mapping.read_repairs(root.take_table("repairs"));
        mapping.politeness.read(root.take_table("politeness"));
        mapping.limits.read(root.take_table("limits"));
        if let Some(granularity) = mapping.quirks.granularity {
            // The granularity of the mapping also applies where Identify gives none.
            mapping.identify.granularity = Some(granularity.name().to_owned());
        }
        if mapping.static_file.is_some() {
            // A second read of the same file returns the same record, and reading costs no server
            // anything.
            mapping.quirks.refetch_broken_records = false;
            mapping.politeness.list_requests_max = STATIC_LIST_REQUESTS_MAX;
        }
        root.finish();
        let faults = document.into_faults();
        if faults.is_empty() { Ok(mapping) } else { Err(faults) }
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

    fn read_headers(&mut self, root: &mut Table<'_, '_>) {
        let sets_authorization = ["user", "bearer_token_file"].map(|key| root.has_key(key).then_some(key));
        if let [Some(user), Some(token)] = sets_authorization {
            root.report_missing(format!(
                "{user} and {token} are both set; expected one of them, because both set Authorization"
            ));
        }
        let [user, token] = sets_authorization;
        self.headers = SourceHeaders::read(root.take_table("headers"), user.or(token));
    }

    fn read_tls(&mut self, mut table: Table<'_, '_>, file: &Path) {
        let folder = file.parent().unwrap_or(Path::new(""));
        self.ca_file = table.read_parsed("ca_file", |text| {
            let path = folder.join(text);
            match std::fs::read(&path) {
                Ok(pem) if pem.windows(PEM_START.len()).any(|window| window == PEM_START) => Ok(path),
                Ok(_) => Err("contains no certificate; expected a file with PEM certificates".to_owned()),
                Err(error) => Err(format!("cannot be read: {error}; expected a file with PEM certificates")),
            }
        });
        self.client_certificate =
            certificate_files::read(&mut table, folder, "client_certificate", "client_key");
        self.verify = table.read_bool("verify").unwrap_or(true);
        table.finish();
    }

    fn read_repairs(&mut self, mut table: Table<'_, '_>) {
        for name in table.read_strings("off") {
            if let Some(id) = find_repair(&table, &name, "repairs.off", |_| true) {
                self.off.insert(id);
            }
        }
        for name in table.read_strings("enable") {
            if let Some(id) = find_repair(&table, &name, "repairs.enable", RepairId::is_optional) {
                self.enabled.insert(id);
            }
        }
        table.finish();
    }
}

/// Checks whether a text can be a repository id.
///
/// # Errors
///
/// It cannot. The text, after the id, names the expected value.
pub fn check_id(id: &str) -> Result<(), String> {
    let legal = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    if RESERVED.contains(&id) {
        return Err("is reserved; expected any other name".to_owned());
    }
    if id.starts_with(|character: char| character.is_ascii_alphanumeric()) && id.chars().all(legal) {
        return Ok(());
    }
    Err("is not a repository id; expected letters, digits, '.', '_' and '-', the first a letter or digit"
        .to_owned())
}

/// Reads the URL of a source; the error text names the expected value.
pub(super) fn read_base_url(text: &str) -> Result<Url, String> {
    let problem = "is not a base URL; expected one such as \"https://source.example/oai\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{problem} (http or https, with a host)"));
    }
    if url.fragment().is_some() {
        return Err(format!("{problem} (without #)"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{problem} (without user and password: use the keys user and password_file)"));
    }
    if url.query_pairs().any(|(name, _)| name == "verb") {
        return Err(format!("{problem} (without verb=, which each request sets)"));
    }
    Ok(url)
}

fn read_redirect_hosts(root: &mut Table<'_, '_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for host in root.read_strings("redirect_hosts") {
        let value = host.value.to_ascii_lowercase();
        let url = Url::parse(&format!("http://{value}/"));
        match url.ok().filter(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty()) {
            Some(_) if !value.contains(['/', '@']) => hosts.push(value),
            _ => root.report_fault(
                host.span,
                format!(
                    "redirect_hosts: \"{}\" is not a host; expected one such as \"files.internal\" or \"10.0.0.2:8080\"",
                    value.escape_debug()
                ),
            ),
        }
    }
    hosts
}

fn read_on_unrepairable(text: &str) -> Result<OnUnrepairable, String> {
    match text {
        "quarantine" => Ok(OnUnrepairable::Quarantine),
        "fail" => Ok(OnUnrepairable::Fail),
        _ => Err("is not known; expected \"quarantine\" or \"fail\"".to_owned()),
    }
}

fn read_provenance(text: &str) -> Result<Option<ProvenanceScope>, String> {
    match text {
        "off" => Ok(None),
        "altered" => Ok(Some(ProvenanceScope::Altered)),
        "all" => Ok(Some(ProvenanceScope::All)),
        _ => Err("is not known; expected \"off\", \"altered\" or \"all\"".to_owned()),
    }
}

fn read_header_text(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(text.to_owned());
    }
    Err("is not allowed in an HTTP header; expected printable ASCII".to_owned())
}

fn read_seconds(table: &mut Table<'_, '_>, key: &'static str) -> Option<Duration> {
    table.read_integer(key, 1..=3600).map(Duration::from_secs)
}

/// Maximum number of names that a message about a wrong name lists.
const NAMES_LISTED_MAX: usize = 4;

fn find_repair(
    table: &Table<'_, '_>,
    name: &Located<String>,
    key: &str,
    fits: impl Fn(RepairId) -> bool,
) -> Option<RepairId> {
    match RepairId::from_name(&name.value) {
        Some(id) if fits(id) && !id.is_rewrite() => return Some(id),
        _ => {}
    }
    let names: Vec<&str> =
        CATALOG.iter().filter(|e| fits(e.id) && !e.id.is_rewrite()).map(|e| e.name).collect();
    let hint = match find_nearest(&name.value, &names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if names.len() <= NAMES_LISTED_MAX => format!("expected one of {}", names.join(", ")),
        None => "docs/reference/repairs.md lists the names".to_owned(),
    };
    let value = name.value.escape_debug();
    table.report_fault(name.span.clone(), format!("{key}: \"{value}\" is not a repair for this key; {hint}"));
    None
}

fn default_user_agent() -> String {
    concat!("oaimend/", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Replaces a base URL whose fault is already reported; it is never requested.
fn placeholder_url() -> Url {
    Url::parse("http://invalid/").expect("a literal URL")
}

/// Reserved paths, in addition to those that begin with `_` or `-`, which no id can.
const RESERVED: &[&str] = &["friends.xml", "robots.txt", "favicon.ico"];
/// The number of pages that are read from one static repository file at a time.
const STATIC_LIST_REQUESTS_MAX: usize = 64;
const PEM_START: &[u8] = b"-----BEGIN CERTIFICATE-----";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
