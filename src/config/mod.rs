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
mod limits;
mod mapping;
mod politeness;
mod quirks;
mod repositories;

pub use cache::Cache;
pub use clients::{Clients, Crawlers, Known, Quota, Quotas, Token};
pub use connections::Connections;
pub use credentials::Credentials;
pub use file::Fault;
pub use limits::Limits;
pub use mapping::{Mapping, Unmended};
pub use politeness::Politeness;
pub use quirks::{Method, Poisoned, Quirks};
pub use repositories::{Repositories, Reread};

use crate::error::Error;
use file::{Document, Table};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use url::Url;

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
            repositories: Repositories::new(None, Limits::default()),
        }
    }

    /// Adds a repository, as `--map` does.
    pub fn map(&mut self, id: &str, base_url: &str) -> Result<(), Error> {
        let mapping = Mapping::new(id, base_url, self.repositories.limits());
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
        let mut written = Written::default();
        let mut faults = Vec::new();
        if let Some((path, text)) = config_file(flags.config.as_deref())? {
            faults = written.read(&path, &text);
        }
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
            repositories: Repositories::new(folder, written.limits),
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

/// What `oaimend.toml` says.
#[derive(Default)]
struct Written {
    listen: Option<SocketAddr>,
    public_url: Option<String>,
    mappings: Option<PathBuf>,
    data: Option<PathBuf>,
    admin: Option<Option<SocketAddr>>,
    clients: Clients,
    connections: Connections,
    cache: Cache,
    limits: Limits,
}

impl Written {
    fn read(&mut self, path: &Path, text: &str) -> Vec<Fault> {
        let document = Document::new(path, text);
        let mut root = document.root();
        // Paths in the file are meant from where the file lies.
        let folder = path.parent().unwrap_or(Path::new(""));
        self.listen = root.parsed("listen", read_address);
        self.public_url = root.parsed("public_url", read_public_url);
        self.mappings = root.string("mappings").map(|text| folder.join(text.value));
        self.data = root.string("data").map(|text| folder.join(text.value));
        self.read_admin(root.table("admin"));
        self.clients.read(root.table("clients"), folder);
        self.connections.read(root.table("connections"));
        self.cache.read(root.table("cache"));
        self.limits.read(root.table("limits"));
        root.finish();
        document.into_faults()
    }

    fn read_admin(&mut self, mut table: Table<'_, '_>) {
        self.admin = table.parsed("listen", |text| match text {
            "off" => Ok(None),
            _ => read_address(text).map(Some).map_err(|right| format!("{right}, or \"off\"")),
        });
        table.finish();
    }
}

fn config_file(named: Option<&Path>) -> Result<Option<(PathBuf, String)>, Error> {
    let path = named.unwrap_or(Path::new("oaimend.toml"));
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((path.to_owned(), text))),
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::reading(path, error, "name a readable TOML file with --config")),
    }
}

fn existing_folder(path: PathBuf) -> Result<PathBuf, Error> {
    match std::fs::read_dir(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(Error::reading(&path, error, "name a folder of mapping files with --mappings")),
    }
}

fn read_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "is no address; an IP address and a port like \"127.0.0.1:8080\" are right".to_owned())
}

/// Reads a public URL; `Err` says what would be right.
fn read_public_url(text: &str) -> Result<String, String> {
    let right = "is no public URL; one like \"https://oai.example.org\" is right";
    let url = Url::parse(text).map_err(|error| format!("{right} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{right} (http or https, with a host)"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{right} (without ? and #)"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}
