//! Responses with a JSON object in each line, which come as the work goes on.

use crate::serve::response::Response;
use bytes::Bytes;
use futures::future::{Either, select};
use futures::stream::{self, BoxStream, StreamExt as _};
use oaimend_base::clock::Clock;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Time between two lines that say that the work goes on. Clients and proxies end silent connections.
const RUNNING_INTERVAL: Duration = Duration::from_secs(5);

/// A response with these lines, and with one at each interval without one. `running` makes it from the seconds since the
/// begin. The work ends if the client is gone.
pub(super) fn respond_with_lines<T: Serialize + Send + 'static, R: Future<Output = T> + Send + 'static>(
    lines: BoxStream<'static, T>,
    clock: Arc<dyn Clock>,
    running: impl Fn(u64) -> R + Send + Sync + 'static,
) -> Response {
    let running = Arc::new(running);
    let lines = stream::unfold((lines, 0), move |(mut lines, secs)| {
        let (deadline, running) = (clock.deadline(RUNNING_INTERVAL), Arc::clone(&running));
        async move {
            match select(lines.next(), deadline).await {
                Either::Left((line, _)) => Some((line?, (lines, secs))),
                Either::Right(_) => {
                    let secs = secs + RUNNING_INTERVAL.as_secs();
                    Some((running(secs).await, (lines, secs)))
                }
            }
        }
    });
    let lines = lines.map(|line| Ok(Bytes::from(format!("{}\n", json!(line)))));
    Response::download("application/jsonl", lines.boxed())
}
