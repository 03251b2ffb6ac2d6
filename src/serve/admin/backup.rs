//! A backup of the data folder as a download: `POST /-/backup`.

use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use oaimend_base::clock::utc_datetime;
use oaimend_store::MirrorError;
use oaimend_store_local::backup::{BackupError, write_backup};
use serde_json::json;
use std::io::{self, Write};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Bytes of a backup in one piece of the response.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum number of pieces that wait for the client.
const PIECES_MAX: usize = 4;

/// A piece of a backup.
type Piece = Result<Bytes, BackupError>;

/// Writes a backup, while harvesters are answered. A backup that fails is truncated, and without its checksums.
pub(super) async fn back_up(served: &Arc<ServedRepositories>, lifecycle: &Lifecycle) -> Response {
    if lifecycle.is_ending() {
        return Response::json(503, &json!({"error": "this process is stopping; send the request again"}));
    }
    let Ok(turn) = Arc::clone(&served.mirror.maintenance).try_lock_owned() else {
        let error = "another backup or a maintenance of the mirror runs; try again after its end";
        return Response::json(409, &json!({ "error": error }));
    };
    let (pieces, mut received) = mpsc::channel(PIECES_MAX);
    let served = Arc::clone(served);
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut out = PieceWriter { pieces: pieces.clone(), piece: Vec::new() };
        let created = utc_datetime(served.clock.now());
        if let Err(error) = write_backup(&served.store, &created, &mut out) {
            // Without a client nobody needs it.
            let _ = pieces.blocking_send(Err(error));
        }
    });
    match received.recv().await {
        Some(Ok(first)) => {
            let rest = stream::unfold(received, async |mut received: mpsc::Receiver<Piece>| {
                Some((received.recv().await?, received))
            });
            let failed = |error| MirrorError::Database(Box::new(error));
            let all = stream::iter([Ok(first)]).chain(rest).map(move |piece: Piece| piece.map_err(failed));
            Response::download("application/zstd", all.boxed())
        }
        Some(Err(error)) => Response::json(500, &json!({ "error": error.to_string() })),
        None => Response::json(500, &json!({ "error": "the backup stopped; the log says why" })),
    }
}

/// Sends what is written in pieces. An error means that the client is gone.
struct PieceWriter {
    pieces: mpsc::Sender<Piece>,
    piece: Vec<u8>,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        self.pieces.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
