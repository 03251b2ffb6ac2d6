//! The mapping of one repository: the file `mappings/<repositoryid>.toml`, resolved.

use super::base_url::read_base_url;
use super::credentials::read_credentials;
use super::file::{Document, Located, Table};
use super::gateway::{RecordPages, read_records};
use super::headers::read_headers;
use super::limits::read_limits;
use super::mirror::{ServeFrom, read_mirror_settings, read_serve};
use super::politeness::read_politeness;
use super::proxy::read_proxy;
use super::quirks::read_quirks;
use super::reports::{ReportTo, read_report_to};
use super::static_file::read_static_file;
use super::{certificate_files, identify};
use blake2::{Blake2s256, Digest};
use oaimend_base::error::Fault;
use oaimend_base::suggestions::find_nearest;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_repair::catalog::CATALOG;
use oaimend_repair::{ProvenanceScope, RepairId};
use oaimend_upstream::settings::{BearerToken, Limits, OnUnrepairable, SourceMapping};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The mapping of a repository.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// The source, and how it is requested.
    pub source: Arc<SourceMapping>,
    /// Whether a stale first page of a list may be served when the source fails.
    pub stale_lists: bool,
    /// Who receives the weekly report; `None`: nobody.
    pub report_to: Option<ReportTo>,
    /// The part of the program that answers requests for this repository.
    pub serve: ServeFrom,
    /// How the repository is mirrored; `None` if it is not.
    pub mirror: Option<MirrorSettings>,
    /// What the URLs of its records show, if it is mirrored.
    pub records: RecordPages,
}

impl Mapping {
    /// A repository with only an id and a base URL; the error text names the expected value.
    pub fn new(id: &str, base_url: &str, limits: &Limits) -> Result<Self, String> {
        check_id(id)?;
        Ok(Self::of(SourceMapping::new(id, read_base_url(base_url)?, limits)))
    }

    /// A repository with this source, and the defaults for everything else.
    fn of(source: SourceMapping) -> Self {
        Self {
            source: Arc::new(source),
            stale_lists: false,
            report_to: None,
            serve: ServeFrom::default(),
            mirror: None,
            records: RecordPages::default(),
        }
    }

    /// The source, to change it.
    pub fn source_mut(&mut self) -> &mut SourceMapping {
        Arc::make_mut(&mut self.source)
    }

    /// The repository id: the name of the file, and the first path segment of our URLs.
    pub fn id(&self) -> &str {
        &self.source.id
    }

    /// Reads the mapping file of a repository.
    pub(super) fn read(id: &str, file: &Path, text: &str, limits: &Limits) -> Result<Self, Vec<Fault>> {
        let document = Document::new(file, text);
        let mut root = document.root();
        if let Err(text) = check_id(id) {
            document.report_fault(0..0, format!("the file name \"{id}\" {text}"));
        }
        let given_static_file = read_static_file(&mut root, file);
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
        let base_url = base_url.unwrap_or_else(placeholder_url);
        let mut source = SourceMapping::new(id, base_url, limits);
        source.static_file = static_file;
        read_source(&mut source, &mut root, file);
        let mut mapping = Self {
            stale_lists: root.read_bool("stale_lists").unwrap_or(false),
            report_to: root.read_parsed("report_to", read_report_to),
            serve: root.read_parsed("serve", read_serve).unwrap_or_default(),
            records: root.read_parsed("records", read_records).unwrap_or_default(),
            ..Self::of(source)
        };
        let settings = read_mirror_settings(root.take_table("mirror"));
        let is_mirrored = root.has_key("mirror") || mapping.serve != ServeFrom::Live;
        mapping.mirror = is_mirrored.then_some(settings);
        root.finish();
        let faults = document.into_faults();
        if faults.is_empty() { Ok(mapping) } else { Err(faults) }
    }

    /// A hash of the whole mapping in 16 hexadecimal digits; it changes with every change of the
    /// mapping.
    pub(crate) fn fingerprint(&self) -> String {
        hex::encode(&Blake2s256::digest(format!("{self:?}"))[..8])
    }
}

/// Reads the keys about the source.
fn read_source(source: &mut SourceMapping, root: &mut Table<'_, '_>, file: &Path) {
    source.credentials = read_credentials(root, file.parent().unwrap_or(Path::new("")));
    source.bearer_token = read_bearer_token(root, file);
    source.proxy = root.read_parsed("proxy", read_proxy).unwrap_or_default();
    if let Some(timeout) = read_seconds(root, "connect_timeout_secs") {
        source.connect_timeout = timeout;
    }
    if let Some(timeout) = read_seconds(root, "read_timeout_secs") {
        source.read_timeout = timeout;
    }
    if let Some(user_agent) = root.read_parsed("user_agent", read_header_text) {
        source.user_agent = user_agent;
    }
    source.from = root.read_parsed("from", read_header_text);
    source.allow_private = root.read_bool("allow_private").unwrap_or(false);
    source.redirect_hosts = read_redirect_hosts(root);
    source.on_unrepairable = root.read_parsed("on_unrepairable", read_on_unrepairable).unwrap_or_default();
    source.provenance = root.read_parsed("provenance", read_provenance).unwrap_or_default();
    source.identify = identify::read(root.take_table("identify"));
    source.quirks = read_quirks(root);
    read_source_headers(source, root);
    read_tls(source, root.take_table("tls"), file);
    read_repairs(source, root.take_table("repairs"));
    read_politeness(&mut source.politeness, root.take_table("politeness"));
    read_limits(&mut source.limits, root.take_table("limits"));
    if let Some(granularity) = source.quirks.granularity {
        // The granularity of the mapping also applies where Identify gives none.
        source.identify.granularity = Some(granularity.name().to_owned());
    }
    if source.static_file.is_some() {
        // A second read of the same file returns the same record, and reading costs no server
        // anything.
        source.quirks.refetch_broken_records = false;
        source.politeness.list_requests_max = STATIC_LIST_REQUESTS_MAX;
    }
}

fn read_source_headers(source: &mut SourceMapping, root: &mut Table<'_, '_>) {
    let sets_authorization = ["user", "bearer_token_file"].map(|key| root.has_key(key).then_some(key));
    if let [Some(user), Some(token)] = sets_authorization {
        root.report_missing(format!(
            "{user} and {token} are both set; expected one of them, because both set Authorization"
        ));
    }
    let [user, token] = sets_authorization;
    source.headers = read_headers(root.take_table("headers"), user.or(token));
}

fn read_tls(source: &mut SourceMapping, mut table: Table<'_, '_>, file: &Path) {
    let folder = file.parent().unwrap_or(Path::new(""));
    source.ca_file = table.read_parsed("ca_file", |text| {
        let path = folder.join(text);
        match std::fs::read(&path) {
            Ok(pem) if pem.windows(PEM_START.len()).any(|window| window == PEM_START) => Ok(path),
            Ok(_) => Err("contains no certificate; expected a file with PEM certificates".to_owned()),
            Err(error) => Err(format!("cannot be read: {error}; expected a file with PEM certificates")),
        }
    });
    source.client_certificate =
        certificate_files::read(&mut table, folder, "client_certificate", "client_key");
    source.verify = table.read_bool("verify").unwrap_or(true);
    table.finish();
}

fn read_repairs(source: &mut SourceMapping, mut table: Table<'_, '_>) {
    for name in table.read_strings("off") {
        if let Some(id) = find_repair(&table, &name, "repairs.off", |_| true) {
            source.off.insert(id);
        }
    }
    for name in table.read_strings("enable") {
        if let Some(id) = find_repair(&table, &name, "repairs.enable", RepairId::is_optional) {
            source.enabled.insert(id);
        }
    }
    table.finish();
}

/// Reads `bearer_token_file`, and the token in it.
fn read_bearer_token(root: &mut Table<'_, '_>, file: &Path) -> Option<BearerToken> {
    let folder = file.parent().unwrap_or(Path::new(""));
    root.read_parsed("bearer_token_file", |text| BearerToken::open(folder.join(text)))
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

/// Replaces a base URL whose fault is already reported; it is never requested.
fn placeholder_url() -> Url {
    Url::parse("http://invalid/").expect("a literal URL")
}

/// Reserved paths, in addition to those that begin with `_` or `-`, which no id can.
const RESERVED: &[&str] = &["friends.xml", "robots.txt", "favicon.ico"];
/// The number of pages that are read from one static repository file at a time.
const STATIC_LIST_REQUESTS_MAX: usize = 64;
const PEM_START: &[u8] = b"-----BEGIN CERTIFICATE-----";
