//! Reads the arguments of a request: its query, with the form of a POST.

use super::headers::joined;
use crate::serve::response::Response;
use http::header;
use pingora_error::{Error, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use std::time::Duration;

/// The names that pingora gives to errors in the chunks of a body.
const BROKEN_CHUNKS: [&str; 2] = ["InvalidChunk", "InvalidTrailerEnd"];

/// The query, with the form of a POST appended, or the response that refuses it. A body that is not a form is read
/// and discarded, because pingora detects a closed connection only after the body. `limit` is that of [`body_of`].
pub(super) async fn query_of(
    session: &mut Session,
    is_form: bool,
    limit: (usize, &str),
    timeout: Duration,
) -> Result<Result<Vec<u8>, Response>> {
    // The received bytes: the URI replaces invalid UTF-8.
    let target = session.req_header().raw_path();
    let mut query = target.splitn(2, |&byte| byte == b'?').nth(1).unwrap_or_default().to_vec();
    if !is_form && session.as_downstream_mut().is_body_done() {
        return Ok(Ok(query));
    }
    let body = body_of(session, limit, timeout).await?;
    Ok(body.map(|body| {
        if is_form {
            query.push(b'&');
            query.extend_from_slice(&body);
        }
        query
    }))
}

/// The body of a request of at most this number of bytes, which has this name in the configuration if any; or the response
/// that refuses it.
pub(super) async fn body_of(
    session: &mut Session,
    (bytes_max, key): (usize, &str),
    timeout: Duration,
) -> Result<Result<Vec<u8>, Response>> {
    if joined(session.req_header(), header::EXPECT).eq_ignore_ascii_case("100-continue") {
        let go_on = ResponseHeader::build(100, None)?;
        session.as_downstream_mut().write_response_header(Box::new(go_on)).await?;
    }
    let reading = async {
        let mut body = Vec::new();
        loop {
            let piece = match session.read_request_body().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) if BROKEN_CHUNKS.contains(&error.etype().as_str()) => {
                    let text = "a chunk of the body is broken; send the request again with correct chunks";
                    return Ok(Err(Response::text(400, text)));
                }
                Err(error) => return Err(error),
            };
            body.extend_from_slice(&piece);
            if body.len() > bytes_max {
                let text =
                    format!("the body is longer than {bytes_max} bytes{key}, the longest that is read");
                return Ok(Err(Response::text(413, &text)));
            }
        }
        if !session.as_downstream_mut().is_body_done() {
            // HTTP/2 trailers: pingora would wait for an end that never comes.
            return Ok(Err(Response::text(
                400,
                "trailers after a request are not read; send the request without them",
            )));
        }
        Result::<_, Box<Error>>::Ok(Ok(body))
    };
    Ok(match tokio::time::timeout(timeout, reading).await {
        Ok(read) => read?,
        Err(_) => Err(Response::text(408, "the body was not received in time")),
    })
}
