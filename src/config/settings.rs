//! `oaimend.toml` itself, and reading it again while the program runs.
//!
//! Invariant: a file with faults changes nothing. What cannot change while the
//! program runs is named, so that somebody can restart it.

use super::file::{Document, Fault, Table};
use super::identify::read_email;
use super::{Cache, Clients, Connections, Limits};
use crate::error::Error;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use url::Url;

/// The file, as it was read last.
#[derive(Debug)]
pub struct Settings {
    path: PathBuf,
    /// Modification time and length: what tells that it changed.
    seen: Option<(Option<SystemTime>, u64)>,
    pub(super) written: Written,
}

/// What reading the file again brought.
#[derive(Debug)]
pub enum Resettled {
    /// It has not changed.
    Same,
    /// It has, and is well.
    Changed(Box<Change>),
    /// It has, and these are its faults.
    Faults(Vec<Fault>),
}

/// What counts from now on, and what does not.
#[derive(Debug)]
pub struct Change {
    /// Who asks us, and how much each may ask.
    pub clients: Clients,
    /// The bounds on connections and requests.
    pub connections: Connections,
    /// The bounds that mappings start from.
    pub limits: Limits,
    /// Keys that have changed and count from the next start on.
    pub at_next_start: Vec<&'static str>,
}

impl Settings {
    /// Reads the file that was named, or `oaimend.toml` if there is one.
    ///
    /// # Errors
    ///
    /// A file that was named cannot be read.
    pub(super) fn open(named: Option<&Path>) -> Result<(Self, Vec<Fault>), Error> {
        let path = named.unwrap_or(Path::new("oaimend.toml")).to_owned();
        let mut settings = Self { seen: state_of(&path), path, written: Written::default() };
        let faults = match std::fs::read_to_string(&settings.path) {
            Ok(text) => settings.written.read(&settings.path, &text),
            Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(Error::reading(&settings.path, error, "name a readable TOML file with --config"));
            }
        };
        Ok((settings, faults))
    }

    /// Reads the file again if it has changed. One that is gone counts as unchanged.
    ///
    /// # Errors
    ///
    /// It cannot be read; nothing has changed then.
    pub fn reread(&mut self) -> Result<Resettled, Error> {
        let now = state_of(&self.path);
        if now == self.seen || now.is_none() {
            return Ok(Resettled::Same);
        }
        let text = std::fs::read_to_string(&self.path)
            .map_err(|error| Error::reading(&self.path, error, "make it readable again"))?;
        self.seen = now;
        let mut written = Written::default();
        let faults = written.read(&self.path, &text);
        if !faults.is_empty() {
            return Ok(Resettled::Faults(faults));
        }
        let before = std::mem::replace(&mut self.written, written);
        let written = &self.written;
        let fixed = [
            ("listen", before.listen != written.listen),
            ("public_url", before.public_url != written.public_url),
            ("mappings", before.mappings != written.mappings),
            ("data", before.data != written.data),
            ("[admin]", before.admin != written.admin),
            ("admin_email", before.admin_email != written.admin_email),
            ("[cache]", before.cache != written.cache),
        ];
        Ok(Resettled::Changed(Box::new(Change {
            clients: written.clients.clone(),
            connections: written.connections.clone(),
            limits: written.limits.clone(),
            at_next_start: fixed.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect(),
        })))
    }
}

fn state_of(path: &Path) -> Option<(Option<SystemTime>, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok(), meta.len()))
}

/// What `oaimend.toml` says.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) listen: Option<SocketAddr>,
    pub(super) public_url: Option<String>,
    pub(super) mappings: Option<PathBuf>,
    pub(super) data: Option<PathBuf>,
    pub(super) admin: Option<Option<SocketAddr>>,
    pub(super) admin_email: Option<String>,
    pub(super) clients: Clients,
    pub(super) connections: Connections,
    pub(super) cache: Cache,
    pub(super) limits: Limits,
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
        self.admin_email = root.parsed("admin_email", read_email);
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

fn read_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "is no address; an IP address and a port like \"127.0.0.1:8080\" are right".to_owned())
}

/// Reads a public URL; `Err` says what would be right.
pub(super) fn read_public_url(text: &str) -> Result<String, String> {
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
