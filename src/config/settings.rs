//! The settings file `oaimend.toml`, reloaded while the program runs.
//!
//! Invariant: a file with faults changes nothing. Changed keys that require a restart are reported
//! by name.

use super::cache::Cache;
use super::clients::ClientPolicy;
use super::connections::Connections;
use super::file::{Document, Table, read_address};
use super::gateway::GatewayPolicy;
use super::identify::read_email;
use super::limits::read_limits;
use super::listen_tls::ListenTls;
use super::mirror::read_mirror_policy;
use super::notifications::NotificationPolicy;
use super::reports::ReportPolicy;
use oaimend_base::credentials::Credentials;
use oaimend_base::error::{Error, Fault};
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_upstream::settings::Limits;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use url::Url;

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
        ];
        Ok(SettingsReload::Changed(Box::new(SettingsChange {
            clients: written.clients.clone(),
            connections: written.connections.clone(),
            limits: written.limits.clone(),
            mirror: written.mirror.clone(),
            gateway: written.gateway.clone(),
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

/// The values of `oaimend.toml`; `None` where the file does not set a value.
#[derive(Clone, Debug, Default)]
pub(super) struct SettingsValues {
    pub(super) listen: Option<SocketAddr>,
    pub(super) listen_tls: Option<ListenTls>,
    pub(super) public_url: Option<String>,
    pub(super) mappings: Option<PathBuf>,
    pub(super) data: Option<PathBuf>,
    pub(super) admin: Option<Option<SocketAddr>>,
    pub(super) admin_hosts: Vec<String>,
    pub(super) admin_email: Option<String>,
    pub(super) clients: ClientPolicy,
    pub(super) connections: Connections,
    pub(super) cache: Cache,
    pub(super) limits: Limits,
    pub(super) mirror: MirrorPolicy,
    pub(super) gateway: GatewayPolicy,
    pub(super) notifications: NotificationPolicy,
    pub(super) reports: ReportPolicy,
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
        let document = Document::new(path, text);
        let mut root = document.root();
        // Relative paths start at the folder of the file.
        let folder = folder_of(path);
        self.listen = root.read_parsed("listen", read_address);
        self.listen_tls = ListenTls::read(&mut root, folder);
        self.public_url = root.read_parsed("public_url", read_public_url);
        self.mappings = root.read_string("mappings").map(|text| folder.join(text.value));
        self.data = root.read_string("data").map(|text| folder.join(text.value));
        self.admin_email = root.read_parsed("admin_email", read_email);
        self.read_admin(root.take_table("admin"));
        self.clients.read(root.take_table("clients"), folder);
        self.connections.read(root.take_table("connections"));
        self.cache.read(root.take_table("cache"));
        read_limits(&mut self.limits, root.take_table("limits"));
        read_mirror_policy(&mut self.mirror, root.take_table("mirror"));
        if self.mirror.aggregate_emails.is_empty() {
            self.mirror.aggregate_emails.extend(self.admin_email.clone());
        }
        self.gateway.read(root.take_table("gateway"), folder);
        if self.gateway.contact.is_none() {
            self.gateway.contact.clone_from(&self.admin_email);
        }
        self.notifications.read(root.take_table("notifications"), folder);
        self.reports.read(root.take_table("reports"));
        root.finish();
        document.into_faults()
    }

    fn read_admin(&mut self, mut table: Table<'_, '_>) {
        self.admin = table.read_parsed("listen", |text| match text {
            "off" => Ok(None),
            _ => read_address(text).map(Some).map_err(|problem| format!("{problem}, or \"off\"")),
        });
        for host in table.read_strings("hosts") {
            match read_host_name(&host.value) {
                Some(name) => self.admin_hosts.push(name),
                None => table.report_fault(
                    host.span,
                    format!(
                        "admin.hosts: \"{}\" is not a host name; expected one such as \"oai.example.org\", without \
                         scheme, port and path. IP addresses are always accepted",
                        host.value.escape_debug()
                    ),
                ),
            }
        }
        table.finish();
    }
}

/// Reads the name of a host, in the form in which browsers send it in `Host`. `None`: it is no name, or an IP address.
fn read_host_name(text: &str) -> Option<String> {
    match url::Host::parse(text).ok()? {
        url::Host::Domain(name) if !name.contains('*') => Some(name),
        _ => None,
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
