//! The clients of all sources.

use crate::client::source_client::{FileRepository, SourceClient};
use crate::http::rate_limit::LimitUsage;
use crate::settings::SourceMapping;
use crate::static_repository::{FileState, StaticRepository};
use crate::tape_repository::{TapeRepository, TapeState};
use oaimend_files::StaticFiles;
use oaimend_repository::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The clients of all sources, each created at its first use and after a change of its mapping.
#[derive(Debug)]
pub struct SourceClients {
    clients: Mutex<HashMap<String, SourceClient>>,
    static_files: StaticFiles,
}

impl SourceClients {
    /// An empty set; files of static repositories are kept in `static_files`.
    pub fn new(static_files: StaticFiles) -> Self {
        Self { clients: Mutex::default(), static_files }
    }

    /// The client of a source.
    ///
    /// # Errors
    ///
    /// Its certificates cannot be read.
    pub fn client_for(&self, mapping: &Arc<SourceMapping>) -> Result<SourceClient, Failure> {
        let mut clients = self.known();
        match clients.get(&mapping.id) {
            Some(client) if Arc::ptr_eq(client.mapping(), mapping) => Ok(client.clone()),
            _ => {
                let mut client = SourceClient::new(mapping)?;
                if let Some(file) = &mapping.static_file {
                    let (static_files, file) = (self.static_files.clone(), file.clone());
                    let repository = Arc::new(StaticRepository::new(file, static_files));
                    client = client.with_file(FileRepository::Static(repository));
                }
                if let Some(path) = &mapping.tape_file {
                    client =
                        client.with_file(FileRepository::Tape(Arc::new(TapeRepository::new(path.clone()))));
                }
                // Repositories of one server share the limits of its host, as configured for the first one.
                let neighbour = clients.values().find(|other| share_host(other.mapping(), mapping));
                if let Some(neighbour) = neighbour {
                    client.share_host(neighbour);
                }
                clients.insert(mapping.id.clone(), client.clone());
                Ok(client)
            }
        }
    }

    /// For how many seconds the circuit of a repository's source stays open, if it is open.
    pub fn circuit_open_secs(&self, id: &str, now: SystemTime) -> Option<u64> {
        self.known().get(id)?.breaker().circuit_open_secs(now)
    }

    /// The limits on requests to a source and their use; `None` before its first request.
    pub fn limit_usage(&self, id: &str, now: SystemTime) -> Option<LimitUsage> {
        self.known().get(id).map(|client| client.http().limit_usage(now))
    }

    /// The state of the file of a static repository, after its first request.
    pub fn file_state(&self, id: &str) -> Option<FileState> {
        match self.known().get(id)?.file()? {
            FileRepository::Static(repository) => Some(repository.state()),
            FileRepository::Tape(_) => None,
        }
    }

    /// The state of the tape of a repository, after its first request.
    pub fn tape_state(&self, id: &str) -> Option<TapeState> {
        match self.known().get(id)?.file()? {
            FileRepository::Tape(repository) => Some(repository.state()),
            FileRepository::Static(_) => None,
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, SourceClient>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two sources share a host and port, with any scheme. A file has no server.
fn share_host(one: &SourceMapping, other: &SourceMapping) -> bool {
    let server = |mapping: &SourceMapping| {
        let url = (!mapping.is_file()).then_some(&mapping.base_url)?;
        Some((url.host()?.to_owned(), url.port_or_known_default()))
    };
    one.id != other.id && server(one).is_some_and(|server_of_one| server(other) == Some(server_of_one))
}
