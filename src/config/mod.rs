//! The configuration, resolved and checked.
//!
//! Three sources, the later wins: defaults, `oaimend.toml`, flags. The
//! repositories stand beside it, one file each in the mappings folder, and
//! are read again while the program runs; see [`Repositories`].

mod cache;
mod clients;
mod connections;
mod credentials;
mod file;
mod identify;
mod limits;
mod mapping;
mod politeness;
mod quirks;
mod repositories;
mod settings;
mod static_file;

pub use cache::Cache;
pub use clients::{Clients, Crawlers, Known, Quota, Quotas, Token};
pub use connections::Connections;
pub use credentials::Credentials;
pub use file::Fault;
pub use limits::Limits;
pub use mapping::{Mapping, OnUnrepairable};
pub use politeness::Politeness;
pub use quirks::{HeadersVia, Method, PageFallback, Quirks, Version};
pub use repositories::{Repositories, Reread};
pub use settings::{Change, Resettled, Settings};
pub use static_file::StaticFile;

use crate::error::Error;
use settings::{Written, read_public_url};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Everything the program is told.
#[derive(Debug)]
pub struct Config {
    /// Where harvesters are answered.
    pub listen: SocketAddr,
    /// What `request` and `baseURL` say, without a slash at the end. `None`:
    /// `http://` and the address that is listened on.
    pub public_url: Option<String>,
    /// The folder of state: quarantine, ledger, key of our tokens, cache.
    pub data: PathBuf,
    /// Where operators are answered; `None` turns it off.
    pub admin: Option<SocketAddr>,
    /// Who asks us, and how much each may ask.
    pub clients: Clients,
    /// The bounds on connections and requests.
    pub connections: Connections,
    /// What is kept of answers.
    pub cache: Cache,
    /// The file all this was read from, where it is to be read again.
    pub settings: Option<Settings>,
    /// The repositories.
    pub repositories: Repositories,
}

/// What the command line says; each value wins over the file.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`; without it `oaimend.toml`, if there is one.
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
    /// A configuration on free loopback ports, without any file and without
    /// repositories; see [`Config::map`].
    pub fn on_loopback(data: &Path) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            listen: free,
            public_url: None,
            data: data.to_owned(),
            admin: Some(free),
            clients: Clients::default(),
            connections: Connections::default(),
            cache: Cache::default(),
            settings: None,
            repositories: Repositories::new(None, Limits::default()),
        }
    }

    /// Adds a repository, as `--map` does.
    pub fn map(&mut self, id: &str, base_url: &str) -> Result<(), Error> {
        let mapping = Mapping::new(id, base_url, &self.repositories.limits());
        let mapping = mapping
            .map_err(|right| Error::Usage(format!("--map {id}={}: {right}", file::shown(base_url))))?;
        self.repositories.fix(mapping);
        Ok(())
    }

    /// Reads `oaimend.toml`, the mappings and the flags.
    ///
    /// # Errors
    ///
    /// All faults of all files at once ([`Error::Config`]), a file or folder
    /// that was named and is not there ([`Error::File`]), or a flag that makes
    /// no sense ([`Error::Usage`]).
    pub fn load(flags: &Flags) -> Result<Self, Error> {
        let (settings, mut faults) = Settings::open(flags.config.as_deref())?;
        let mut written: Written = settings.written.clone();
        let folder = match flags.mappings.clone().or(written.mappings.take()) {
            Some(named) => Some(existing_folder(named)?),
            None => Some(PathBuf::from("mappings")).filter(|default| default.is_dir()),
        };
        let public_url = match &flags.public_url {
            Some(text) => Some(
                read_public_url(text)
                    .map_err(|right| Error::Usage(format!("--public-url \"{text}\" {right}")))?,
            ),
            None => written.public_url,
        };
        let mut config = Self {
            listen: flags.listen.or(written.listen).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
            public_url,
            data: flags.data.clone().or(written.data).unwrap_or_else(|| PathBuf::from("data")),
            admin: flags.admin.or(written.admin).unwrap_or(Some(SocketAddr::from(([127, 0, 0, 1], 8081)))),
            clients: written.clients,
            connections: written.connections,
            cache: written.cache,
            settings: Some(settings),
            repositories: Repositories::new(folder, written.limits).with_admin_email(written.admin_email),
        };
        for (id, base_url) in &flags.maps {
            config.map(id, base_url)?;
        }
        match config.repositories.reread()? {
            Reread::Same | Reread::Changed => {}
            Reread::Faults(more) => faults.extend(more),
        }
        if faults.is_empty() { Ok(config) } else { Err(Error::Config(faults)) }
    }
}

fn existing_folder(path: PathBuf) -> Result<PathBuf, Error> {
    match std::fs::read_dir(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(Error::reading(&path, error, "name a folder of mapping files with --mappings")),
    }
}
