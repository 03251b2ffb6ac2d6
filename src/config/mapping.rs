//! One repository: the file `mappings/<repositoryid>.toml`, resolved.

use super::credentials::Credentials;
use super::file::{At, Document, Fault, Table, nearest};
use super::{Limits, Politeness, Quirks, StaticFile, identify};
use crate::repair::catalog::CATALOG;
use crate::repair::{Certainty, IdentifyValues, ProvenanceScope, RepairId, RepairSet};
use blake2::{Blake2s256, Digest};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// A repository and how its source is to be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// Its id: the name of the file, and the first part of the path in our URLs.
    pub id: String,
    /// The source's base URL, http or https; of a static repository the URL of its file.
    pub base_url: Url,
    /// The source is a static repository file, and not asked for pages.
    pub static_file: Option<StaticFile>,
    /// What the source wants to know us by; sent to the scheme, host and port of `base_url` only.
    pub credentials: Option<Credentials>,
    /// A file of PEM certificates that may sign the source's one, beside the usual ones.
    pub ca_file: Option<PathBuf>,
    /// Whether the source's certificate is checked at all.
    pub verify: bool,
    /// Longest wait for a connection, TLS included.
    pub connect_timeout: Duration,
    /// Longest silence of the source, before the header and in the body.
    pub read_timeout: Duration,
    /// `User-Agent` of our requests.
    pub user_agent: String,
    /// `From` of our requests: the mail address of who harvests.
    pub from: Option<String>,
    /// Whether a public base URL may lead to private addresses.
    pub allow_private: bool,
    /// What becomes of a record that cannot be mended.
    pub on_unrepairable: OnUnrepairable,
    /// Whether the first page of a list may be an old one when the source fails.
    pub stale_lists: bool,
    /// Repairs that are not made.
    pub off: RepairSet,
    /// Repairs of certainty `guess` that are made.
    pub enabled: RepairSet,
    /// Of which records we say where they come from, and whether they were altered.
    pub provenance: Option<ProvenanceScope>,
    /// What Identify is to say where it says nothing, or nothing legal.
    pub identify: IdentifyValues,
    /// What is particular about it.
    pub quirks: Quirks,
    /// How much is asked of it.
    pub politeness: Politeness,
    /// The bounds for this source.
    pub limits: Limits,
}

/// What becomes of a record that cannot be mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnrepairable {
    /// It is put aside, the page goes on.
    #[default]
    Quarantine,
    /// It is put aside, and the page fails visibly.
    Fail,
}

impl Mapping {
    /// A repository with nothing but an id and a base URL; `Err` says what would be right.
    pub fn new(id: &str, base_url: &str, limits: &Limits) -> Result<Self, String> {
        check_id(id)?;
        Ok(Self {
            id: id.to_owned(),
            base_url: read_base_url(base_url)?,
            static_file: None,
            credentials: None,
            ca_file: None,
            verify: true,
            connect_timeout: CONNECT_TIMEOUT,
            read_timeout: READ_TIMEOUT,
            user_agent: default_user_agent(),
            from: None,
            allow_private: false,
            on_unrepairable: OnUnrepairable::default(),
            stale_lists: false,
            off: RepairSet::EMPTY,
            enabled: RepairSet::EMPTY,
            provenance: None,
            identify: IdentifyValues::default(),
            quirks: Quirks::default(),
            politeness: Politeness::default(),
            limits: limits.clone(),
        })
    }

    /// Reads the file of a repository.
    pub(super) fn read(id: &str, file: &Path, text: &str, limits: &Limits) -> Result<Self, Vec<Fault>> {
        let document = Document::new(file, text);
        let mut root = document.root();
        if let Err(text) = check_id(id) {
            document.fault(0..0, format!("the file's name is the id: \"{id}\" {text}"));
        }
        let file_of_static = StaticFile::read(&mut root, file);
        let is_static = root.was_given("static_file");
        let base_url = root.parsed("base_url", read_base_url);
        if !is_static && base_url.is_none() && !root.was_given("base_url") {
            root.missing(
                "base_url is missing; base_url = \"https://source.example/oai\" is wanted, or static_file"
                    .into(),
            );
        }
        let (base_url, static_file) = match file_of_static {
            Some((url, static_file)) => (Some(url), Some(static_file)),
            None => (base_url, None),
        };
        let mut mapping = Self {
            id: id.to_owned(),
            base_url: base_url.unwrap_or_else(placeholder),
            static_file,
            credentials: Credentials::read(&mut root, file),
            ca_file: None,
            verify: true,
            connect_timeout: seconds(&mut root, "connect_timeout_secs").unwrap_or(CONNECT_TIMEOUT),
            read_timeout: seconds(&mut root, "read_timeout_secs").unwrap_or(READ_TIMEOUT),
            user_agent: root.parsed("user_agent", header_text).unwrap_or_else(default_user_agent),
            from: root.parsed("from", header_text),
            allow_private: root.boolean("allow_private").unwrap_or(false),
            on_unrepairable: root.parsed("on_unrepairable", read_on_unrepairable).unwrap_or_default(),
            stale_lists: root.boolean("stale_lists").unwrap_or(false),
            off: RepairSet::EMPTY,
            enabled: RepairSet::EMPTY,
            provenance: root.parsed("provenance", read_provenance).unwrap_or_default(),
            identify: identify::read(root.table("identify")),
            quirks: Quirks::read(&mut root),
            politeness: Politeness::default(),
            limits: limits.clone(),
        };
        mapping.read_tls(root.table("tls"), file);
        mapping.read_repairs(root.table("repairs"));
        mapping.politeness.read(root.table("politeness"));
        mapping.limits.read(root.table("limits"));
        if let Some(granularity) = mapping.quirks.granularity {
            // What is announced in any case is announced where Identify says nothing, too.
            mapping.identify.granularity = Some(granularity.name().to_owned());
        }
        if mapping.static_file.is_some() {
            // What cannot be mended cannot be had otherwise, and nobody is burdened by questions.
            mapping.quirks.refetch_broken_records = false;
            mapping.politeness.list_requests_max = STATIC_LIST_REQUESTS_MAX;
        }
        root.finish();
        let faults = document.into_faults();
        if faults.is_empty() { Ok(mapping) } else { Err(faults) }
    }

    /// Which source it is: what was seen of its records holds as long as this stays.
    pub fn source(&self) -> String {
        format!("{} {}", self.id, self.base_url)
    }

    /// Another text with every change of it: 16 hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        let hash = Blake2s256::digest(format!("{self:?}"));
        hash.iter().take(8).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn read_tls(&mut self, mut table: Table<'_, '_>, file: &Path) {
        self.ca_file = table.parsed("ca_file", |text| {
            let path = file.parent().unwrap_or(Path::new("")).join(text);
            match std::fs::read(&path) {
                Ok(pem) if pem.windows(PEM_MARK.len()).any(|window| window == PEM_MARK) => Ok(path),
                Ok(_) => Err("holds no certificate; a file with PEM certificates is wanted".to_owned()),
                Err(error) => Err(format!("cannot be read: {error}; a file with PEM certificates is wanted")),
            }
        });
        self.verify = table.boolean("verify").unwrap_or(true);
        table.finish();
    }

    fn read_repairs(&mut self, mut table: Table<'_, '_>) {
        for name in table.strings("off") {
            if let Some(id) = repair_of(&table, &name, "repairs.off", |_| true) {
                self.off.insert(id);
            }
        }
        for name in table.strings("enable") {
            let is_guess = |id: RepairId| id.certainty() == Certainty::Guess;
            if let Some(id) = repair_of(&table, &name, "repairs.enable", is_guess) {
                self.enabled.insert(id);
            }
        }
        table.finish();
    }
}

/// Whether a text can be the id of a repository; `Err` says what would be right.
pub(super) fn check_id(id: &str) -> Result<(), String> {
    let legal = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    if OURS.contains(&id) {
        return Err("is a path of our own; any other name is right".to_owned());
    }
    if id.starts_with(|character: char| character.is_ascii_alphanumeric()) && id.chars().all(legal) {
        return Ok(());
    }
    Err("is no id; letters, digits, '.', '_' and '-' are right, the first a letter or digit".to_owned())
}

/// Reads the URL of a source; `Err` says what would be right.
pub(super) fn read_base_url(text: &str) -> Result<Url, String> {
    let right = "is no base URL; one like \"https://source.example/oai\" is right";
    let url = Url::parse(text).map_err(|error| format!("{right} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{right} (http or https, with a host)"));
    }
    if url.fragment().is_some() {
        return Err(format!("{right} (without #)"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{right} (without user and password: set user and password_file instead)"));
    }
    if url.query_pairs().any(|(name, _)| name == "verb") {
        return Err(format!("{right} (without verb=, the harvester says it)"));
    }
    Ok(url)
}

fn read_on_unrepairable(text: &str) -> Result<OnUnrepairable, String> {
    match text {
        "quarantine" => Ok(OnUnrepairable::Quarantine),
        "fail" => Ok(OnUnrepairable::Fail),
        _ => Err("is not known; \"quarantine\" or \"fail\" is right".to_owned()),
    }
}

fn read_provenance(text: &str) -> Result<Option<ProvenanceScope>, String> {
    match text {
        "off" => Ok(None),
        "altered" => Ok(Some(ProvenanceScope::Altered)),
        "all" => Ok(Some(ProvenanceScope::All)),
        _ => Err("is not known; \"off\", \"altered\" or \"all\" is right".to_owned()),
    }
}

fn header_text(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(text.to_owned());
    }
    Err("cannot stand in an HTTP header; printable ASCII is right".to_owned())
}

fn seconds(table: &mut Table<'_, '_>, key: &'static str) -> Option<Duration> {
    table.integer(key, 1..=3600).map(Duration::from_secs)
}

fn repair_of(
    table: &Table<'_, '_>,
    name: &At<String>,
    key: &str,
    fits: impl Fn(RepairId) -> bool,
) -> Option<RepairId> {
    match RepairId::from_name(&name.value) {
        Some(id) if fits(id) && !id.is_rewrite() => return Some(id),
        _ => {}
    }
    let names: Vec<&str> =
        CATALOG.iter().filter(|e| fits(e.id) && !e.id.is_rewrite()).map(|e| e.name).collect();
    let right = match nearest(&name.value, &names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if names.len() <= 3 => format!("known here are {}", names.join(", ")),
        None => "the names stand in docs/reference/repairs.md".to_owned(),
    };
    let value = name.value.escape_debug();
    table.fault(name.span.clone(), format!("{key}: \"{value}\" is no repair that fits here; {right}"));
    None
}

fn default_user_agent() -> String {
    concat!("oaimend/", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Stands for a base URL whose fault is reported; never asked.
fn placeholder() -> Url {
    Url::parse("http://invalid/").expect("a literal URL")
}

/// Paths of our own beside those that begin with `_` or `-`, which no id can.
const OURS: &[&str] = &["friends.xml", "robots.txt", "favicon.ico"];
/// Most pages that are read from a static repository file at one time.
const STATIC_LIST_REQUESTS_MAX: usize = 64;
const PEM_MARK: &[u8] = b"-----BEGIN CERTIFICATE-----";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
