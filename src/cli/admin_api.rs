//! The admin API of a data folder: in this process, or of the server that uses the folder.
//!
//! Commands for operators send it the same requests in both cases. Therefore they print the same.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use oaimend::config::{Config, Repositories};
use oaimend::serve::InProcess;
use oaimend_base::clock::{Clock as _, SystemClock};
use oaimend_base::suggestions::suggest_ids;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_store::MirrorError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::admin_client::{AdminClient, AdminResponse};
use super::exit::Failure;
use super::state::State;

/// The admin API of a data folder.
pub(super) struct AdminApi {
    runtime: Runtime,
    place: Place,
    /// The data folder of the configuration.
    pub(super) data: PathBuf,
    /// What holds for all mirrored repositories.
    pub(super) mirror: MirrorPolicy,
}

enum Place {
    /// With the data folder of an empty state.
    Here {
        in_process: Box<InProcess>,
        _empty: Option<TempDir>,
    },
    InServer {
        client: AdminClient,
        repositories: Box<Repositories>,
    },
}

/// A response with the result of a request.
pub(super) struct ApiResult<'a> {
    body: Box<dyn Read + 'a>,
    /// What sends the body, for messages.
    sender: String,
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The status of the response.
    pub(super) status: u16,
    pub(super) error: String,
}

/// Bytes of a file that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

impl AdminApi {
    /// Opens the state.
    ///
    /// # Errors
    ///
    /// The data cannot be opened.
    pub(super) fn open(config: Config, state: State) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
        let (data, mirror) = (config.data.clone(), config.mirror.clone());
        let place = match state {
            State::Here(data) => {
                let (store, empty) = data.open()?;
                let _entered = runtime.enter();
                Place::Here { in_process: Box::new(InProcess::start(config, store)), _empty: empty }
            }
            State::InServer(client) => {
                Place::InServer { client, repositories: Box::new(config.repositories) }
            }
        };
        Ok(Self { runtime, place, data, mirror })
    }

    /// The repositories of the configuration.
    pub(super) fn repositories(&self) -> &Repositories {
        match &self.place {
            Place::Here { in_process, .. } => in_process.repositories(),
            Place::InServer { repositories, .. } => repositories,
        }
    }

    /// The ids of all repositories: those of the server, which may have others than the configuration of the command.
    ///
    /// # Errors
    ///
    /// The server does not respond.
    pub(super) fn repository_ids(&self) -> Result<Vec<String>, Failure> {
        #[derive(Deserialize)]
        struct Served {
            repositories: Vec<Id>,
        }
        #[derive(Deserialize)]
        struct Id {
            id: String,
        }
        if let Place::Here { in_process, .. } = &self.place {
            return Ok(in_process.repositories().all().keys().cloned().collect());
        }
        let served = self.send("GET", "/-/repositories")?;
        let served = served.map_err(|refusal| Failure::in_use(refusal.error))?.read::<Served>()?;
        Ok(served.repositories.into_iter().map(|repository| repository.id).collect())
    }

    /// Checks that there is a repository with this id.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn check_id(&self, id: &str) -> Result<(), Failure> {
        let all = self.repository_ids()?;
        if all.iter().any(|known| known == id) {
            return Ok(());
        }
        let known: Vec<&str> = all.iter().map(String::as_str).collect();
        let (named, known) = (id.escape_debug(), suggest_ids(id, &known));
        Err(Failure::usage(format_args!("there is no repository \"{named}\"; known ids are {known}")))
    }

    /// Sends a request, such as `GET /-/mirror`.
    ///
    /// # Errors
    ///
    /// There is no response, or it cannot be read.
    pub(super) fn send(&self, method: &str, target: &str) -> Result<Result<ApiResult<'_>, Refusal>, Failure> {
        let (status, result) = match &self.place {
            Place::Here { in_process, .. } => {
                let (status, pieces) = self.runtime.block_on(in_process.respond(method, target));
                let body = Box::new(PieceReader { runtime: &self.runtime, pieces, piece: Bytes::new() });
                (status, ApiResult { body, sender: "the data folder".to_owned() })
            }
            Place::InServer { client, .. } => {
                let AdminResponse { status, body } = client.send(method, target)?;
                (status, ApiResult { body: Box::new(body), sender: client.to_string() })
            }
        };
        if (200..300).contains(&status) {
            return Ok(Ok(result));
        }
        #[derive(Deserialize)]
        struct Problem {
            error: String,
        }
        Ok(Err(Refusal { status, error: result.read::<Problem>()?.error }))
    }

    /// Waits.
    pub(super) fn pause(&self, time: Duration) {
        // The pause needs the timer of the runtime.
        self.runtime.block_on(async { SystemClock.pause(time).await });
    }
}

impl Drop for AdminApi {
    fn drop(&mut self) {
        if let Place::Here { in_process, .. } = &self.place {
            in_process.close();
        }
    }
}

impl<'a> ApiResult<'a> {
    /// Reads the one JSON document of the result.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(super) fn read<T: DeserializeOwned + 'a>(self) -> Result<T, Failure> {
        self.into_lines().next().unwrap_or_else(|| Err(no_result()))
    }

    /// The JSON objects of the lines, as they come.
    pub(super) fn into_lines<T: DeserializeOwned + 'a>(
        self,
    ) -> impl Iterator<Item = Result<T, Failure>> + 'a {
        let Self { body, sender } = self;
        let values = serde_json::Deserializer::from_reader(BufReader::new(body)).into_iter();
        values.map(move |value| {
            value.map_err(|error| match error.io_error_kind() {
                Some(_) => failure(&sender, &error.into()),
                None => failure(&sender, &io::Error::other("its response is not that of this version")),
            })
        })
    }

    /// The bytes in pieces, as they come.
    pub(super) fn into_pieces(mut self) -> impl Iterator<Item = Result<Vec<u8>, Failure>> + 'a {
        std::iter::from_fn(move || {
            let mut piece = vec![0; PIECE_BYTES];
            let length = self.body.read(&mut piece).map_err(|error| failure(&self.sender, &error));
            piece.truncate(*length.as_ref().unwrap_or(&0));
            length.map(|length| (length > 0).then_some(piece)).transpose()
        })
    }
}

/// The failure of a request that the server did not end.
pub(super) fn no_result() -> Failure {
    let error = io::Error::other("the server ended before the result; run the command again");
    failure("the admin listener", &error)
}

fn failure(sender: &str, error: &io::Error) -> Failure {
    Failure::io("use", Path::new(sender), error)
}

/// Reads the body of a response of this process.
struct PieceReader<'a> {
    runtime: &'a Runtime,
    pieces: BoxStream<'static, Result<Bytes, MirrorError>>,
    piece: Bytes,
}

impl Read for PieceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.runtime.block_on(self.pieces.next()) {
                Some(piece) => self.piece = piece.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let length = self.piece.remaining().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
