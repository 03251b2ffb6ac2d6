//! A backup of the data folder as a download: `POST /-/backup`, and the space that it needs: `GET /-/backup`.

use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream};
use oaimend_base::clock::{Clock, utc_datetime};
use oaimend_store::MirrorError;
use oaimend_store_local::backup::{BackupError, BackupSize, EMPTY_FRAME, backup_size, write_backup};
use serde_json::json;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes of a backup in one piece of the response.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum number of pieces that wait for the client.
const PIECES_MAX: usize = 4;
/// Time between two empty frames while the databases are copied. Clients and proxies end silent connections.
const COPYING_INTERVAL: Duration = Duration::from_secs(5);

/// A piece of a backup.
type Piece = Result<Bytes, BackupError>;

/// The space that a backup needs now.
pub(super) async fn size(served: &Arc<ServedRepositories>) -> Result<BackupSize, String> {
    let store = served.store.clone();
    let measured =
        tokio::task::spawn_blocking(move || backup_size(&store).map_err(|error| error.to_string()));
    measured.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Writes a backup, while harvesters are answered. A backup that fails is truncated, and without its checksums.
pub(super) async fn back_up(served: &Arc<ServedRepositories>, lifecycle: &Lifecycle) -> Response {
    if lifecycle.is_ending() {
        return Response::json(503, &json!({"error": "this process is stopping; send the request again"}));
    }
    let Ok(turn) = Arc::clone(&served.mirror.maintenance).try_lock_owned() else {
        let error = "another backup or a maintenance of the mirror runs; try again after its end";
        return Response::json(409, &json!({ "error": error }));
    };
    let (pieces, received) = mpsc::channel(PIECES_MAX);
    let (served, clock) = (Arc::clone(served), Arc::clone(&served.clock));
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut out = PieceWriter { pieces: pieces.clone(), piece: Vec::new() };
        let created = utc_datetime(served.clock.now());
        if let Err(error) = write_backup(&served.store, &created, &mut out) {
            // Without a client nobody needs it.
            let _ = pieces.blocking_send(Err(error));
        }
    });
    respond(received, clock).await
}

/// The response with these pieces. Its head waits for the first one for some seconds, so that a backup that fails at once
/// has a status and a text.
async fn respond(received: mpsc::Receiver<Piece>, clock: Arc<dyn Clock>) -> Response {
    let pieces = stream::unfold(received, async |mut received: mpsc::Receiver<Piece>| {
        Some((received.recv().await?, received))
    });
    let mut pieces = with_empty_frames(pieces.boxed(), clock);
    match pieces.next().await {
        Some(Ok(first)) => {
            let failed = |error| MirrorError::Database(Box::new(error));
            let all = stream::iter([Ok(first)]).chain(pieces);
            Response::download("application/zstd", all.map(move |piece| piece.map_err(failed)).boxed())
        }
        Some(Err(error)) => Response::json(500, &json!({ "error": error.to_string() })),
        None => Response::json(500, &json!({ "error": "the backup stopped; the log says why" })),
    }
}

/// The pieces, with an empty frame at each interval without the first one. Later ones come as fast as the disk is read.
fn with_empty_frames(pieces: BoxStream<'static, Piece>, clock: Arc<dyn Clock>) -> BoxStream<'static, Piece> {
    let framed = stream::unfold((pieces, false), move |(mut pieces, has_begun)| {
        let deadline = clock.deadline(COPYING_INTERVAL);
        async move {
            if has_begun {
                return Some((pieces.next().await?, (pieces, true)));
            }
            match select(pieces.next(), deadline).await {
                Either::Left((piece, _)) => Some((piece?, (pieces, true))),
                Either::Right(_) => Some((Ok(Bytes::from_static(&EMPTY_FRAME)), (pieces, false))),
            }
        }
    });
    framed.boxed()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::response::Body;
    use futures::FutureExt as _;
    use futures::future::{BoxFuture, ready};

    /// Each deadline has passed when it is polled.
    #[derive(Debug)]
    struct Hurried;

    impl Clock for Hurried {
        fn pause(&self, _: Duration) -> BoxFuture<'static, ()> {
            ready(()).boxed()
        }

        fn deadline(&self, _: Duration) -> BoxFuture<'static, ()> {
            ready(()).boxed()
        }
    }

    fn archive(text: &'static str) -> Piece {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn empty_frames_come_before_a_backup_and_not_inside_it() {
        let (pieces, received) = mpsc::channel(PIECES_MAX);
        let response = respond(received, Arc::new(Hurried)).await;
        assert_eq!(response.status, 200, "the client need not wait for the databases");
        let Body::Stream(mut body) = response.body else { panic!("a body of pieces") };
        for _ in 0..3 {
            assert_eq!(body.next().await.expect("a piece").expect("whole"), EMPTY_FRAME.as_slice());
        }
        pieces.send(archive("first")).await.expect("there is space");
        assert_eq!(body.next().await.expect("a piece").expect("whole"), "first");
        assert!(body.next().now_or_never().is_none(), "nothing comes between two pieces");
        pieces.send(archive("last")).await.expect("there is space");
        drop(pieces);
        assert_eq!(body.next().await.expect("a piece").expect("whole"), "last");
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn a_backup_that_fails_at_once_has_a_status() {
        let (pieces, received) = mpsc::channel(PIECES_MAX);
        pieces.send(Err(BackupError::Damaged("x".to_owned()))).await.expect("there is space");
        assert_eq!(respond(received, Arc::new(Hurried)).await.status, 500);
        let (_, received) = mpsc::channel(PIECES_MAX);
        assert_eq!(respond(received, Arc::new(Hurried)).await.status, 500, "nobody sends a piece");
    }
}
