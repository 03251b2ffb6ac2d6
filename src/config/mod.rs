//! The configuration: resolved from its sources and checked.
//!
//! Defaults, `oaimend.toml` and flags are read in this order; a later one overrides an earlier one.
//! Each repository has a file of its own in the mappings folder. The program reloads these files
//! while it runs; see [`Repositories`].
//!
//! Each file declares the keys of one table, with what `keys/` offers: kinds of values, and the walks that read a file,
//! write the effective configuration, and make the JSON Schemas and the tables of the reference.

mod base_url;
mod browse;
mod cache;
mod certificate_files;
mod clients;
mod connections;
mod credentials;
mod crosswalks;
mod federations;
mod full_texts;
mod gateway;
mod headers;
mod identify;
mod keys;
mod limits;
mod listen_tls;
mod local;
mod mapping;
mod mirror;
mod named_files;
mod notifications;
mod politeness;
mod proxy;
mod quirks;
#[cfg(test)]
mod reference;
mod reports;
mod repositories;
mod schema;
mod search;
mod services;
mod settings;
mod static_file;
#[cfg(test)]
mod tests;
mod views;

pub use cache::Cache;
pub use clients::{ClassQuotas, ClientPolicy, ClientToken, Crawlers, KnownClient, PageQuotas, Quota};
pub use connections::Connections;
pub use federations::{FEDERATION_NAME, FederationFile, Federations};
pub use full_texts::FullTextChoices;
pub use gateway::{CanonicalPage, CorsOrigins, GatewayPolicy, LivePages, RecordPages, Robots, Theme};
pub use listen_tls::ListenTls;
pub use local::LocalChoices;
pub use mapping::{Mapping, check_id};
pub use mirror::ServeFrom;
pub use named_files::{Mappings, NamedFile, NamedFiles, TablesFile};
pub(crate) use notifications::read_mailbox;
pub use notifications::{MailTarget, MailTls, NotificationPolicy, WebhookKey, WebhookTarget};
pub use oaimend_base::error::Fault;
pub use quirks::read_charset;
pub use reports::{ReportPolicy, ReportTo};
pub use repositories::{MappingChanges, MappingsReload, Repositories};
pub use schema::{federation_schema, mapping_schema, settings_schema, view_schema};
pub use search::SearchPolicy;
pub use services::Service;
pub use settings::Settings;
pub(crate) use settings::SettingsReload;
pub use views::{ViewFile, Views};

use oaimend_base::error::Error;
use oaimend_crosswalks::CrosswalkChoices;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_upstream::settings::Limits;
use settings::{SettingsValues, read_public_url};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The whole configuration of the program.
#[derive(Debug)]
pub struct Config {
    /// The address on which harvesters are served.
    pub listen: SocketAddr,
    /// The listener with TLS for harvesters; `None`: there is none.
    pub listen_tls: Option<ListenTls>,
    /// The URL that `request` and `baseURL` contain, without a trailing slash. `None`: `https://` and the address of the
    /// listener with TLS, or `http://` and the listen address.
    pub public_url: Option<String>,
    /// The data folder: quarantine, ledger, token key, cache.
    pub data: PathBuf,
    /// The address of the admin listener; `None` turns it off.
    pub admin: Option<SocketAddr>,
    /// The host names, in lower case, by which clients may address the admin listener, in addition to `localhost` and all
    /// IP addresses.
    pub admin_hosts: Vec<String>,
    /// How clients are classified, and the quota of each class.
    pub clients: ClientPolicy,
    /// The limits on connections and requests.
    pub connections: Connections,
    /// The size of the cache and the lifetimes of its entries.
    pub cache: Cache,
    /// What holds for all mirrored repositories.
    pub mirror: MirrorPolicy,
    /// The crosswalks of repositories and views that do not say otherwise.
    pub crosswalks: CrosswalkChoices,
    /// The pages for people and crawlers.
    pub gateway: GatewayPolicy,
    /// The search in the mirror.
    pub search: SearchPolicy,
    /// Other services that may have records.
    pub services: Vec<Service>,
    /// Which events operators are told of.
    pub notifications: NotificationPolicy,
    /// When reports to providers are sent.
    pub reports: ReportPolicy,
    /// The settings file, for reloading it; `None` if there is none to reload.
    pub settings: Option<Settings>,
    /// The repositories.
    pub repositories: Repositories,
    /// The views of chosen records.
    pub views: Views,
    /// The federations of chosen repositories.
    pub federations: Federations,
}

/// The command line flags; each overrides the settings file.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`; the default is `oaimend.toml`, if it exists.
    pub config: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--public-url`.
    pub public_url: Option<String>,
    /// `--mappings`.
    pub mappings: Option<PathBuf>,
    /// `--map ID=URL`, each split at its first `=`.
    pub maps: Vec<(String, String)>,
    /// `--data`.
    pub data: Option<PathBuf>,
    /// `--admin`; `Some(None)` is `off`.
    pub admin: Option<Option<SocketAddr>>,
}

impl Config {
    /// A configuration on free loopback ports, without files and without repositories; see
    /// [`Config::map`].
    pub fn on_loopback(data: &Path) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            listen: free,
            listen_tls: None,
            public_url: None,
            data: data.to_owned(),
            admin: Some(free),
            admin_hosts: Vec::new(),
            clients: ClientPolicy::default(),
            connections: Connections::default(),
            cache: Cache::default(),
            mirror: MirrorPolicy::default(),
            crosswalks: CrosswalkChoices::default(),
            gateway: GatewayPolicy::default(),
            search: SearchPolicy::default(),
            services: Vec::new(),
            notifications: NotificationPolicy::default(),
            reports: ReportPolicy::default(),
            settings: None,
            repositories: Repositories::new(None, Limits::default()),
            views: Views::default(),
            federations: Federations::default(),
        }
    }

    /// Adds a repository, as `--map` does.
    pub fn map(&mut self, id: &str, base_url: &str) -> Result<(), Error> {
        let mapping = Mapping::new(id, base_url, &self.repositories.limits());
        let mapping = mapping.map_err(|problem| {
            Error::Usage(format!("--map {id}={}: {problem}", keys::redact_value(base_url)))
        })?;
        self.repositories.add_fixed(mapping);
        Ok(())
    }

    /// Reads `oaimend.toml`, the mappings and the flags.
    ///
    /// # Errors
    ///
    /// All faults of all files at once ([`Error::Config`]), a named file or folder that cannot be
    /// read ([`Error::File`]), or an invalid flag ([`Error::Usage`]).
    pub fn load(flags: &Flags) -> Result<Self, Error> {
        let (settings, settings_faults) = Settings::open(flags.config.as_deref())?;
        let mut faults = settings_faults.clone();
        let mut written: SettingsValues = settings.written.clone();
        let folder = match flags.mappings.clone().or(written.mappings.take()) {
            Some(named) => existing_folder(named)?,
            // It may appear while the program runs.
            None => settings.folder().join("mappings"),
        };
        let views = Views::new(settings.folder().join("views"));
        let federations = Federations::new(settings.folder().join("federations"));
        federations.set_tables(written.federations.take());
        let public_url = match &flags.public_url {
            Some(text) => Some(
                read_public_url(text)
                    .map_err(|problem| Error::Usage(format!("--public-url \"{text}\" {problem}")))?,
            ),
            None => written.public_url,
        };
        let mut config = Self {
            listen: flags.listen.unwrap_or(written.listen),
            listen_tls: written.listen_tls,
            public_url,
            data: flags.data.clone().unwrap_or(written.data),
            admin: flags.admin.unwrap_or(written.admin),
            admin_hosts: written.admin_hosts,
            clients: written.clients,
            connections: written.connections,
            cache: written.cache,
            mirror: written.mirror,
            crosswalks: written.crosswalks.clone(),
            gateway: written.gateway,
            search: written.search,
            services: written.services,
            notifications: written.notifications,
            reports: written.reports,
            settings: Some(settings),
            repositories: Repositories::new(Some(folder), written.limits)
                .with_admin_email(written.admin_email)
                .with_crosswalks(written.crosswalks),
            views,
            federations,
        };
        for (id, base_url) in &flags.maps {
            config.map(id, base_url)?;
        }
        match config.repositories.reload()? {
            MappingsReload::Unchanged => {}
            MappingsReload::Changed { faults: more, .. } => faults.extend(more),
        }
        faults.extend(config.views.reload(&config.repositories.all()));
        // The settings name some faults of their tables too.
        let of_federations = config.federations.reload(&config.repositories.all());
        faults.extend(of_federations.into_iter().filter(|fault| !settings_faults.contains(fault)));
        faults.extend(config.faults_of_reports());
        if faults.is_empty() { Ok(config) } else { Err(Error::Config(faults)) }
    }
}

impl Config {
    /// Reports to providers that no mail server can send.
    fn faults_of_reports(&self) -> Vec<Fault> {
        if self.notifications.mail.is_some() {
            return Vec::new();
        }
        let folder = self.repositories.folder().unwrap_or(Path::new(""));
        let text = "report_to needs [notifications.mail] in oaimend.toml; add it, or remove report_to";
        let fault =
            |id: &str| Fault { file: folder.join(format!("{id}.toml")), line: 1, text: text.to_owned() };
        let mappings = self.repositories.all();
        mappings
            .values()
            .filter(|mapping| mapping.report_to.is_some())
            .map(|mapping| fault(mapping.id()))
            .collect()
    }
}

fn existing_folder(path: PathBuf) -> Result<PathBuf, Error> {
    match std::fs::read_dir(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(Error::reading(&path, error, "name a folder of mapping files with --mappings")),
    }
}
