//! The mapping of one repository: the file `mappings/<repositoryid>.toml`, resolved.

use super::base_url::read_base_url;
use super::crosswalks::Crosswalks;
use super::full_texts::FullTextChoices;
use super::gateway::{LivePages, RecordPages};
use super::headers::Headers;
use super::keys::{
    self, Description, Flag, Keys, Table, Text, choice, declare, list, named, seconds, string, text,
};
use super::local::{LocalChoices, OF_LOCAL, is_of_source};
use super::mirror::{self, ServeFrom};
use super::proxy::read_proxy;
use super::reports::{ReportTo, report_to};
use super::static_file::{LOCAL_CHECK, NOT_REQUESTED, declare_address, resolve_local_file};
use super::{certificate_files, credentials, identify, limits, politeness, quirks};
use blake2::{Blake2s256, Digest};
use oaimend_base::error::Fault;
use oaimend_base::suggestions::find_nearest;
use oaimend_crosswalks::CrosswalkChoices;
use oaimend_mirror::repository_index::RepositoryKind;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_repair::catalog::CATALOG;
use oaimend_repair::{ProvenanceScope, RepairId, RepairSet};
use oaimend_upstream::settings::{
    Access, BearerToken, Limits, RepairChoices, SourceMapping, SourceTls, StaticFile,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    /// How a local repository is written; `None` if the repository has a source.
    pub local: Option<LocalChoices>,
    /// How the repository is mirrored; `None` if it is not. A local one is a mirror without a source.
    pub mirror: Option<MirrorSettings>,
    /// The formats that are made of its formats, with the defaults.
    pub crosswalks: CrosswalkChoices,
    /// How full texts of its records are fetched; `None`: they are not. Only a mirrored or local repository has them.
    pub full_texts: Option<FullTextChoices>,
    /// What the URLs of its records show.
    pub records: RecordPages,
    /// Who receives the pages of its records, if it is not mirrored.
    pub live_pages: LivePages,
}

impl Mapping {
    /// A repository with only an id and a base URL; the error text names the expected value.
    pub fn new(id: &str, base_url: &str, limits: &Limits) -> Result<Self, String> {
        check_id(id)?;
        Ok(Self::of(SourceMapping::new(id, read_base_url(base_url)?, limits)))
    }

    /// The repository in a static repository file on this machine.
    ///
    /// # Errors
    ///
    /// The id is not legal, or the file cannot be read.
    pub fn of_static_file(id: &str, path: &Path, limits: &Limits) -> Result<Self, String> {
        check_id(id)?;
        let (url, path) = resolve_local_file(path, "the path of a static repository file")?;
        let static_file = Some(StaticFile { path: Some(path), check: LOCAL_CHECK });
        Ok(Self::of(SourceMapping { static_file, ..SourceMapping::new(id, url, limits) }))
    }

    /// A repository with this source, and the defaults for everything else.
    fn of(source: SourceMapping) -> Self {
        Self {
            source: Arc::new(source),
            stale_lists: false,
            report_to: None,
            serve: ServeFrom::default(),
            local: None,
            mirror: None,
            crosswalks: CrosswalkChoices::default(),
            full_texts: None,
            records: RecordPages::default(),
            live_pages: LivePages::default(),
        }
    }

    /// Where its records are.
    pub fn kind(&self) -> RepositoryKind {
        if self.local.is_some() {
            return RepositoryKind::Local;
        }
        match (&self.mirror, &self.source.tape_file) {
            // The mirror serves it with its own datestamps.
            (Some(_), _) => RepositoryKind::Mirrored,
            (None, Some(_)) => RepositoryKind::Tape,
            (None, None) => RepositoryKind::Live,
        }
    }

    /// How its source is harvested; `None` for a repository without a mirror or without a source.
    pub fn harvest(&self) -> Option<&MirrorSettings> {
        if self.local.is_some() { None } else { self.mirror.as_ref() }
    }

    /// The base URL of its source, without secrets; `None` for a local repository.
    pub fn shown_source(&self) -> Option<String> {
        if self.local.is_some() { None } else { Some(self.source.shown_base_url()) }
    }

    /// Whether records have pages: from the mirror, or from the responses of the source.
    pub fn has_record_pages(&self) -> bool {
        self.records != RecordPages::Off && (self.mirror.is_some() || self.has_live_pages())
    }

    /// Whether the pages of records are made from the responses of the source.
    pub fn has_live_pages(&self) -> bool {
        let is_off = self.records == RecordPages::Off || self.live_pages == LivePages::Off;
        self.mirror.is_none() && !is_off
    }

    /// Whether its records are listed although it is not mirrored.
    pub fn has_source_list(&self) -> bool {
        self.has_live_pages() && self.live_pages == LivePages::Listed
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
        let name_fault = |problem| {
            let text = format!("the file name \"{id}\" {problem}");
            Fault { file: file.to_owned(), line: 1, text }
        };
        let mut faults: Vec<Fault> = check_id(id).err().map(name_fault).into_iter().collect();
        let mut mapping = Self::of(SourceMapping::new(id, placeholder_url(), limits));
        let folder = file.parent().unwrap_or(Path::new(""));
        faults.extend(keys::read(file, text, |keys| mapping.declare(keys, folder)));
        mapping.apply_particulars();
        if faults.is_empty() { Ok(mapping) } else { Err(faults) }
    }

    /// The keys of a mapping file with the default values.
    pub(super) fn describe_defaults() -> Description {
        let mut mapping = Self::of(SourceMapping::new("", placeholder_url(), &Limits::default()));
        keys::describe(|keys| mapping.declare(keys, Path::new("")))
    }

    /// The mapping with all its values, as the content of its file. Keys without a value are left out.
    ///
    /// `base_url` is written in place of the own one, so that the caller can leave secrets out. Passwords, tokens and the
    /// values of headers are never written.
    pub fn to_toml(&self, base_url: &str) -> String {
        let mut mapping = self.clone();
        let mut values = keys::describe(|keys| mapping.declare(keys, Path::new(""))).values();
        match &self.source.static_file {
            Some(file) => {
                let path = file.path.as_ref().map(|path| path.display().to_string());
                values.insert("static_file".to_owned(), path.unwrap_or_else(|| base_url.to_owned()).into());
                values.retain(|key, _| !NOT_REQUESTED.contains(&key));
            }
            None if self.source.tape_file.is_some() => {
                let path = self.source.tape_file.as_ref().map(|path| path.display().to_string());
                values.insert("tape_file".to_owned(), path.unwrap_or_default().into());
                values.retain(|key, _| !NOT_REQUESTED.contains(&key));
            }
            None if self.local.is_some() => values.retain(|key, _| !is_of_source(key)),
            None => drop(values.insert("base_url".to_owned(), base_url.into())),
        }
        if self.local.is_none() {
            values.retain(|key, _| !OF_LOCAL.contains(&key));
        }
        if self.mirror.is_none() {
            values.remove("mirror");
        }
        if self.full_texts.is_none() {
            values.remove("full_texts");
        }
        values.to_string()
    }

    /// The keys of the file. Relative paths start at its folder.
    fn declare(&mut self, keys: &mut Keys<'_, '_>, folder: &Path) {
        self.local = LocalChoices::declare(self.local.take(), keys, folder);
        let source = Arc::make_mut(&mut self.source);
        declare_address(source, keys, folder, self.local.is_some());
        declare_access(&mut source.access, keys, folder);
        declare_requests(source, keys);
        declare_repairs(&mut source.repairs, keys);
        declare! { keys:
            /// Whether a stale first page of a list is served when the source fails. A harvester that uses its own
            /// clock instead of `responseDate` then misses changes.
            stale_lists: Flag => self.stale_lists,
        }
        keys.table("identify", "Values for fields that Identify of the source lacks.", |keys| {
            identify::declare(&mut source.identify, keys);
        });
        quirks::declare(&mut source.quirks, keys);
        keys.table("politeness", "Limits on requests to the source.", |keys| {
            politeness::declare(&mut source.politeness, keys);
        });
        keys.table("limits", "Limits for this repository.", |keys| {
            limits::declare(&mut source.limits, keys);
        });
        declare! { keys:
            /// Who receives a weekly report about the defects of the source: the first `adminEmail` of the source
            /// that is one mail address, or this address.
            report_to: report_to() => self.report_to,
        }
        self.declare_mirror(keys);
    }

    fn declare_mirror(&mut self, keys: &mut Keys<'_, '_>) {
        declare! { keys:
            /// What answers the requests for this repository: the source; the source and, if it fails, the mirror;
            /// or the mirror.
            serve: named() => self.serve,
        }
        let was_mirrored = self.mirror.is_some();
        let mut settings = self.mirror.take().unwrap_or_default();
        keys.table("mirror", "How the repository is mirrored.", |keys| {
            mirror::declare_settings(&mut settings, keys);
        });
        if self.local.is_some() {
            self.serve = ServeFrom::Mirror;
        }
        let is_mirrored = keys.reading().map_or(was_mirrored, |table| table.has_key("mirror"));
        self.mirror = (is_mirrored || self.serve != ServeFrom::Live).then_some(settings);
        declare! { keys:
            /// The formats that are made of the formats of the repository if it lacks them. `"off"` turns one off that
            /// `oaimend.toml` turns on.
            crosswalks: Crosswalks => self.crosswalks,
            /// What the URL of a record of this repository shows: a page of oaimend, the page at the source, or
            /// nothing.
            records: named() => self.records,
            /// Who receives the pages of records if the repository is not mirrored, so that the source is asked for
            /// each of them: all clients but crawlers (`[clients.crawlers]`), all clients, all clients with a list of the
            /// records for crawlers, or nobody.
            live_pages: named() => self.live_pages,
        }
        let (before, is_local) = (self.full_texts.take(), self.local.is_some());
        self.full_texts = FullTextChoices::declare(before, keys, (self.mirror.is_some(), is_local));
    }

    /// Adjusts values that others imply.
    fn apply_particulars(&mut self) {
        let source = Arc::make_mut(&mut self.source);
        if let Some(granularity) = source.quirks.granularity {
            // The granularity of the mapping also applies where Identify gives none.
            source.identify.granularity = Some(granularity.name().to_owned());
        }
        if source.is_file() {
            // A second read of the same file returns the same record, and reading costs no server
            // anything.
            source.quirks.refetch_broken_records = false;
            source.politeness.list_requests_max = STATIC_LIST_REQUESTS_MAX;
        }
    }

    /// A hash of the whole mapping in 16 hexadecimal digits; it changes with every change of the
    /// mapping.
    pub(crate) fn fingerprint(&self) -> String {
        hex::encode(&Blake2s256::digest(format!("{self:?}"))[..8])
    }
}

/// The keys about access to the source.
fn declare_access(access: &mut Access, keys: &mut Keys<'_, '_>, folder: &Path) {
    let meaning = "User name for the source, sent as `Authorization: Basic`. Requires `password_file`.";
    credentials::declare(&mut access.credentials, keys, folder, meaning);
    let token = text(
        "file",
        |text| BearerToken::open(folder.join(text)),
        |token| Some(token.path().display().to_string()),
    );
    let proxy = text("`\"off\"`, `\"environment\"` or URL", read_proxy, |proxy| Some(proxy.shown()));
    declare! { keys:
        /// File with a token in its only line, sent as `Authorization: Bearer`. Not together with `user`.
        bearer_token_file: token => access.bearer_token,
        /// The HTTP proxy through which the source is requested, such as `"http://proxy.example:3128"`.
        proxy: proxy => access.proxy,
    }
    let mut headers = Headers { credentials: None };
    if let Some(table) = keys.reading() {
        headers.credentials = find_authorization(table);
    }
    declare! { keys:
        /// Additional headers of each request to the source.
        headers: headers => access.headers,
    }
    keys.table("tls", "TLS with the source.", |keys| declare_tls(&mut access.tls, keys, folder));
}

/// The key that sets `Authorization`; two of them are a fault.
fn find_authorization(table: &Table<'_, '_>) -> Option<&'static str> {
    let [user, token] = ["user", "bearer_token_file"].map(|key| table.has_key(key).then_some(key));
    if let (Some(user), Some(token)) = (user, token) {
        table.report_missing(format!(
            "{user} and {token} are both set; expected one of them, because both set Authorization"
        ));
    }
    user.or(token)
}

fn declare_requests(source: &mut SourceMapping, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// How long oaimend waits for a connection, including TLS and the proxy.
        connect_timeout_secs: seconds(1..=3600) => source.timeouts.connect,
        /// How long oaimend waits for the next bytes of the source.
        read_timeout_secs: seconds(1..=3600) => source.timeouts.read,
        /// The `User-Agent` header of requests to the source.
        user_agent: string("string", read_header_text) => source.access.user_agent,
        /// The `From` header of requests to the source: a mail address, as the OAI guidelines ask of harvesters.
        from: string("string", read_header_text) => source.access.from,
        /// Whether a public `base_url` may lead to private addresses.
        allow_private: Flag => source.access.allow_private,
        /// The hosts to which a private `base_url` may redirect, such as `"files.internal"` or `"10.0.0.2:8080"`;
        /// `"*"` for all.
        redirect_hosts: list("hosts", string("host", read_redirect_host)) => source.access.redirect_hosts,
    }
}

fn declare_tls(tls: &mut SourceTls, keys: &mut Keys<'_, '_>, folder: &Path) {
    let certificates = text(
        "file",
        |text| read_certificates(folder.join(text)),
        |path: &PathBuf| Some(path.display().to_string()),
    );
    declare! { keys:
        /// PEM file with certificates that may sign the certificate of the source, in addition to the usual ones.
        ca_file: certificates => tls.ca_file,
    }
    let names = ["client_certificate", "client_key"];
    certificate_files::declare(&mut tls.client_certificate, keys, folder, names);
    declare! { keys:
        /// Whether the certificate of the source is verified. If not, anyone on the network path can change the
        /// records.
        verify: Flag => tls.verify,
    }
}

fn read_certificates(path: PathBuf) -> Result<PathBuf, String> {
    match std::fs::read(&path) {
        Ok(pem) if pem.windows(PEM_START.len()).any(|window| window == PEM_START) => Ok(path),
        Ok(_) => Err("contains no certificate; expected a file with PEM certificates".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}; expected a file with PEM certificates")),
    }
}

/// The keys about records and their repairs.
fn declare_repairs(repairs: &mut RepairChoices, keys: &mut Keys<'_, '_>) {
    let scopes = [ProvenanceScope::Altered, ProvenanceScope::All].map(|scope| (scope.name(), Some(scope)));
    declare! { keys:
        /// What happens to a page with a record that cannot be repaired: it is served without the record, or it
        /// fails. The record is quarantined in both cases.
        on_unrepairable: named() => repairs.on_unrepairable,
        /// Which records get a description of their provenance.
        provenance: choice([("off", None)].into_iter().chain(scopes).collect()) => repairs.provenance,
    }
    keys.table("repairs", "Repairs that are turned off and on.", |keys| {
        let (mut off, mut enabled) = (repairs_in(repairs.off), repairs_in(repairs.enabled));
        declare! { keys:
            /// Repairs that are not made. Records that need them are quarantined.
            off: list("repairs", repair(|_| true)) => off,
            /// Repairs that are off by default and are made.
            enable: list("repairs", repair(RepairId::is_optional)) => enabled,
        }
        (repairs.off, repairs.enabled) = (off.into_iter().collect(), enabled.into_iter().collect());
    });
}

/// The repairs of a set, in the order of the catalog.
fn repairs_in(set: RepairSet) -> Vec<RepairId> {
    CATALOG.iter().map(|entry| entry.id).filter(|id| set.contains(*id)).collect()
}

/// The name of a repair that fits and is not a rewrite.
fn repair(fits: fn(RepairId) -> bool) -> Text<'static, RepairId> {
    let known = CATALOG.iter().filter(|entry| fits(entry.id) && !entry.id.is_rewrite());
    let names: Vec<&str> = known.map(|entry| entry.name).collect();
    let choices = names.clone();
    let read = move |name: &str| {
        let id = if names.contains(&name) { RepairId::from_name(name) } else { None };
        id.ok_or_else(|| unknown_repair(name, &names))
    };
    text("repair", read, |id| Some(id.name().to_owned())).among(choices)
}

fn unknown_repair(name: &str, names: &[&str]) -> String {
    let hint = match find_nearest(name, names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if names.len() <= NAMES_LISTED_MAX => format!("expected one of {}", names.join(", ")),
        None => "docs/reference/repairs.md lists the names".to_owned(),
    };
    format!("is not a repair for this key; {hint}")
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

fn read_redirect_host(text: &str) -> Result<String, String> {
    let host = text.to_ascii_lowercase();
    let is_whole = |url: &Url| url.path() == "/" && url.query().is_none() && url.username().is_empty();
    match Url::parse(&format!("http://{host}/")) {
        Ok(url) if is_whole(&url) && !host.contains(['/', '@']) => Ok(host),
        _ => Err("is not a host; expected one such as \"files.internal\" or \"10.0.0.2:8080\"".to_owned()),
    }
}

fn read_header_text(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(text.to_owned());
    }
    Err("is not allowed in an HTTP header; expected printable ASCII".to_owned())
}

/// Maximum number of names that a message about a wrong name lists.
const NAMES_LISTED_MAX: usize = 4;

/// Replaces a base URL whose fault is already reported; it is never requested.
fn placeholder_url() -> Url {
    Url::parse("http://invalid/").expect("a literal URL")
}

/// Reserved paths, in addition to those that begin with `_` or `-`, which no id can.
const RESERVED: &[&str] = &["friends.xml", "robots.txt", "favicon.ico"];
/// The number of pages that are read from one static repository file or tape at a time.
const STATIC_LIST_REQUESTS_MAX: usize = 64;
const PEM_START: &[u8] = b"-----BEGIN CERTIFICATE-----";
