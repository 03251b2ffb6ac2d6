//! The settings file `oaimend.toml`, reloaded while the program runs.
//!
//! Invariant: a file with faults changes nothing. Changed keys that require a restart are reported
//! by name.

use super::cache::Cache;
use super::clients::ClientPolicy;
use super::connections::Connections;
use super::crosswalks::Crosswalks;
use super::federations::FederationFile;
use super::gateway::GatewayPolicy;
use super::identify::mail_address;
use super::keys::{self, Keys, declare, list, path, string, text};
use super::listen_tls::{self, ListenTls, listen_address, read_address};
use super::named_files::{TablesFile, declare_table};
use super::notifications::NotificationPolicy;
use super::reports::ReportPolicy;
use super::search::SearchPolicy;
use super::services::Service;
use super::{limits, mirror};
use oaimend_base::credentials::Credentials;
use oaimend_base::error::{Error, Fault};
use oaimend_crosswalks::CrosswalkChoices;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_upstream::settings::Limits;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use url::Url;

/// The key of the tables of federations.
const FEDERATIONS: &str = "federations";

/// The settings file, as of the last read.
#[derive(Debug)]
pub struct Settings {
    path: PathBuf,
    /// The file and the files that it names, at the last read.
    seen: FileStamps,
    pub(super) written: SettingsValues,
}

/// Modification time and length of a file; a difference means that the file changed. `None`: there is no file.
type FileStamp = Option<(Option<SystemTime>, u64)>;

/// The files from which the settings are read.
#[derive(Debug, Default, PartialEq, Eq)]
struct FileStamps {
    settings: FileStamp,
    /// The style sheet, and the key of the webhook.
    named: [FileStamp; 3],
}

/// The result of reloading the settings file.
#[derive(Debug)]
pub(crate) enum SettingsReload {
    /// The file has not changed.
    Unchanged,
    /// The file has changed and has no faults.
    Changed(Box<SettingsChange>),
    /// The file has changed and has these faults.
    Faults(Vec<Fault>),
}

/// The settings that take effect at once, and the keys that do not.
#[derive(Debug)]
pub(crate) struct SettingsChange {
    /// How clients are classified, and the quota of each class.
    pub(crate) clients: ClientPolicy,
    /// The limits on connections and requests.
    pub(crate) connections: Connections,
    /// The limits that mappings start with.
    pub(crate) limits: Limits,
    /// What holds for all mirrored repositories.
    pub(crate) mirror: MirrorPolicy,
    /// The pages for people and crawlers.
    pub(crate) gateway: GatewayPolicy,
    /// Other services that may have records.
    pub(crate) services: Vec<Service>,
    /// The tables of federations.
    pub(crate) federations: Option<Arc<TablesFile>>,
    /// Which events operators are told of.
    pub(crate) notifications: NotificationPolicy,
    /// When reports to providers are sent.
    pub(crate) reports: ReportPolicy,
    /// Changed keys that take effect only after a restart.
    pub(crate) restart_required: Vec<&'static str>,
}

impl Settings {
    /// Reads the named file, or `oaimend.toml` if it exists.
    ///
    /// # Errors
    ///
    /// The named file cannot be read.
    pub(super) fn open(named: Option<&Path>) -> Result<(Self, Vec<Fault>), Error> {
        let path = named.unwrap_or(Path::new("oaimend.toml")).to_owned();
        let mut settings = Self { seen: FileStamps::default(), path, written: SettingsValues::default() };
        settings.seen = settings.stamps();
        let faults = match std::fs::read_to_string(&settings.path) {
            Ok(text) => settings.written.read(&settings.path, &text),
            Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(Error::reading(&settings.path, error, "name a readable TOML file with --config"));
            }
        };
        settings.seen.named = settings.stamps().named;
        Ok((settings, faults))
    }

    /// The folder of the file, at which relative paths start.
    pub(super) fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// The files as they are now.
    fn stamps(&self) -> FileStamps {
        let named = self.written.named_files().map(|path| path.and_then(file_stamp));
        FileStamps { settings: file_stamp(&self.path), named }
    }

    /// Reads the file again if it or a file that it names has changed. A missing file counts as unchanged.
    ///
    /// # Errors
    ///
    /// The file cannot be read; nothing changes then.
    pub(crate) fn reload(&mut self) -> Result<SettingsReload, Error> {
        let now = self.stamps();
        if now == self.seen || now.settings.is_none() {
            return Ok(SettingsReload::Unchanged);
        }
        let text = std::fs::read_to_string(&self.path)
            .map_err(|error| Error::reading(&self.path, error, "make it readable again"))?;
        self.seen = now;
        let mut written = SettingsValues::default();
        let faults = written.read(&self.path, &text);
        if !faults.is_empty() {
            return Ok(SettingsReload::Faults(faults));
        }
        let before = std::mem::replace(&mut self.written, written);
        if before.named_files() != self.written.named_files() {
            self.seen.named = self.stamps().named;
        }
        let written = &self.written;
        let fixed = [
            ("listen", before.listen != written.listen),
            ("[listen_tls]", before.listen_tls != written.listen_tls),
            ("public_url", before.public_url != written.public_url),
            ("mappings", before.mappings != written.mappings),
            ("data", before.data != written.data),
            ("[admin]", (&before.admin, &before.admin_hosts) != (&written.admin, &written.admin_hosts)),
            ("admin_email", before.admin_email != written.admin_email),
            ("[cache]", before.cache != written.cache),
            ("[crosswalks]", before.crosswalks != written.crosswalks),
            ("[search]", before.search != written.search),
        ];
        Ok(SettingsReload::Changed(Box::new(SettingsChange {
            clients: written.clients.clone(),
            connections: written.connections.clone(),
            limits: written.limits.clone(),
            mirror: written.mirror.clone(),
            gateway: written.gateway.clone(),
            services: written.services.clone(),
            federations: written.federations.clone(),
            notifications: written.notifications.clone(),
            reports: written.reports.clone(),
            restart_required: fixed.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect(),
        })))
    }
}

fn file_stamp(path: &Path) -> FileStamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok(), meta.len()))
}

/// The values of `oaimend.toml`.
#[derive(Clone, Debug)]
pub(super) struct SettingsValues {
    pub(super) listen: SocketAddr,
    pub(super) listen_tls: Option<ListenTls>,
    pub(super) public_url: Option<String>,
    pub(super) mappings: Option<PathBuf>,
    pub(super) data: PathBuf,
    pub(super) admin: Option<SocketAddr>,
    pub(super) admin_hosts: Vec<String>,
    pub(super) admin_email: Option<String>,
    pub(super) clients: ClientPolicy,
    pub(super) connections: Connections,
    pub(super) cache: Cache,
    pub(super) limits: Limits,
    pub(super) mirror: MirrorPolicy,
    pub(super) crosswalks: CrosswalkChoices,
    pub(super) gateway: GatewayPolicy,
    pub(super) search: SearchPolicy,
    pub(super) services: Vec<Service>,
    /// The file, of which the federations read their tables when the repositories are known.
    pub(super) federations: Option<Arc<TablesFile>>,
    pub(super) notifications: NotificationPolicy,
    pub(super) reports: ReportPolicy,
}

impl Default for SettingsValues {
    fn default() -> Self {
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            listen: loopback(8080),
            listen_tls: None,
            public_url: None,
            mappings: None,
            data: PathBuf::from("data"),
            admin: Some(loopback(8081)),
            admin_hosts: Vec::new(),
            admin_email: None,
            clients: ClientPolicy::default(),
            connections: Connections::default(),
            cache: Cache::default(),
            limits: Limits::default(),
            mirror: MirrorPolicy::default(),
            crosswalks: CrosswalkChoices::default(),
            gateway: GatewayPolicy::default(),
            search: SearchPolicy::default(),
            services: Vec::new(),
            federations: None,
            notifications: NotificationPolicy::default(),
            reports: ReportPolicy::default(),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

impl SettingsValues {
    /// The files that are read with the settings: the style sheet, the key of the webhook, and the password of the mail
    /// server.
    fn named_files(&self) -> [Option<&Path>; 3] {
        let webhook = self.notifications.webhook.as_ref();
        let mail = self.notifications.mail.as_ref().and_then(|mail| mail.credentials.as_ref());
        [
            self.gateway.theme.as_ref().map(|theme| theme.path.as_path()),
            webhook.map(|webhook| webhook.secret_file.as_path()),
            mail.map(Credentials::password_file),
        ]
    }

    fn read(&mut self, path: &Path, text: &str) -> Vec<Fault> {
        let faults = keys::read(path, text, |keys| self.declare(keys, folder_of(path)));
        let tables = TablesFile { path: path.to_owned(), text: text.to_owned(), key: FEDERATIONS };
        self.federations = Some(Arc::new(tables));
        if self.mirror.aggregate_emails.is_empty() {
            self.mirror.aggregate_emails.extend(self.admin_email.clone());
        }
        if self.gateway.contact.is_none() {
            self.gateway.contact.clone_from(&self.admin_email);
        }
        faults
    }

    /// The keys of the file. Relative paths start at its folder.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>, folder: &Path) {
        declare! { keys:
            /// IP address and port for harvesters, by HTTP/1.0, HTTP/1.1, and HTTP/2 without TLS. Flag: `--listen`.
            listen: listen_address() => self.listen,
        }
        keys.table("listen_tls", "The listener with TLS.", |keys| {
            listen_tls::declare(&mut self.listen_tls, keys, folder);
        });
        declare! { keys:
            /// The URL in `<request>`, in `baseURL` of Identify and on the pages. Without it: `https://` and the
            /// address of `listen_tls`, or `http://` and the listen address. Flag: `--public-url`.
            public_url: string("URL", read_public_url) => self.public_url,
            /// The folder of mapping files. Without it: `mappings` beside this file, if it exists. Flag:
            /// `--mappings`.
            mappings: path("folder", folder) => self.mappings,
            /// The folder for state: quarantine, ledger, token key, mirror, cache. oaimend creates it. One process
            /// at a time can use it. Flag: `--data`.
            data: path("folder", folder) => self.data,
            /// The `adminEmail` of Identify if neither the source nor the mapping has one.
            admin_email: mail_address() => self.admin_email,
        }
        keys.table("admin", "The admin listener.", |keys| self.declare_admin(keys));
        keys.table("clients", "Classes of clients and their quotas.", |keys| {
            self.clients.declare(keys, folder)
        });
        keys.table("connections", "Limits on connections and requests.", |keys| {
            self.connections.declare(keys)
        });
        keys.table("cache", "The cache of responses.", |keys| self.cache.declare(keys));
        keys.table("limits", "Limits on responses, records and storage.", |keys| {
            limits::declare(&mut self.limits, keys);
        });
        keys.table("mirror", "What holds for all mirrored repositories.", |keys| {
            mirror::declare_policy(&mut self.mirror, keys);
        });
        declare! { keys:
            /// The formats that are made of other formats, for all repositories, `/_all` and views that lack them.
            crosswalks: Crosswalks => self.crosswalks,
        }
        keys.table("gateway", "The pages for people and crawlers.", |keys| {
            self.gateway.declare(keys, folder)
        });
        keys.table("search", "The search in the mirror.", |keys| self.search.declare(keys));
        keys.tables("services", "Other services that may have records, which the resolver asks.", |keys| {
            let service = Service::declare(keys);
            if let Some(table) = keys.reading()
                && self.services.iter().any(|other| other.name == service.name)
            {
                table.report_missing(format!("two services have the name \"{}\"", service.name));
            }
            self.services.push(service);
        });
        keys.tables(FEDERATIONS, "Federations of chosen repositories, as files define them too.", |keys| {
            declare_table::<FederationFile>(keys, None);
        });
        keys.table("notifications", "Events that operators are told of.", |keys| {
            self.notifications.declare(keys, folder);
        });
        keys.table("reports", "Weekly reports to providers.", |keys| self.reports.declare(keys));
    }

    fn declare_admin(&mut self, keys: &mut Keys<'_, '_>) {
        let address = text("address or `\"off\"`", read_admin_address, |address: &Option<SocketAddr>| {
            Some(address.map_or("off".to_owned(), |address| address.to_string()))
        });
        declare! { keys:
            /// IP address and port of the admin listener. Flag: `--admin`.
            listen: address => self.admin,
            /// Names of the admin listener in URLs, without scheme and port. `localhost` and all IP addresses are
            /// always accepted.
            hosts: list("host names", string("host name", read_host_name)) => self.admin_hosts,
        }
    }
}

fn read_admin_address(text: &str) -> Result<Option<SocketAddr>, String> {
    match text {
        "off" => Ok(None),
        _ => read_address(text).map(Some).map_err(|problem| format!("{problem}, or \"off\"")),
    }
}

/// Reads the name of a host, in the form in which browsers send it in `Host`; an IP address is none.
fn read_host_name(text: &str) -> Result<String, String> {
    match url::Host::parse(text) {
        Ok(url::Host::Domain(name)) if !name.contains('*') => Ok(name),
        _ => Err("is not a host name; expected one such as \"oai.example.org\", without scheme, port and path. IP \
                  addresses are always accepted"
            .to_owned()),
    }
}

/// Reads a public URL; the error text names the expected value.
pub(super) fn read_public_url(text: &str) -> Result<String, String> {
    let problem = "is not a public URL; expected one such as \"https://oai.example.org\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{problem} (http or https, with a host)"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{problem} (without ? and #)"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
