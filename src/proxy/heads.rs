//! How answers begin that come from sources, and the text of those that do not.

use crate::upstream::{Failure, ResponseHead};
use bytes::Bytes;
use http::{HeaderValue, header};
use pingora_error::Result;
use pingora_http::ResponseHeader;

/// The head of every page.
pub(super) fn page() -> Result<ResponseHeader> {
    // As pingora spells names by itself: a head that says how has a second table of them.
    let mut head = ResponseHeader::build_no_case(200, Some(8))?;
    head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=UTF-8"))?;
    Ok(head)
}

/// The head of a page of the source. `why` is why the source was asked (RFC 9211, section 2.2).
pub(super) fn whole(answer: ResponseHead, why: &str) -> Result<ResponseHeader> {
    let mut head = page()?;
    let status = answer.received_status;
    head.insert_header(header::CACHE_STATUS, format!("oaimend; fwd={why}; fwd-status={status}"))?;
    if let Some(length) = answer.length {
        head.insert_header(header::CONTENT_LENGTH, length)?;
    }
    Ok(head)
}

/// The head of a failure, and its text.
pub(super) fn failed(failure: &Failure) -> Result<(ResponseHeader, Bytes)> {
    let text = failure.text();
    let mut head = ResponseHeader::build(failure.status(), Some(8))?;
    head.insert_header("Content-Type", "text/plain; charset=UTF-8")?;
    head.insert_header("Content-Length", text.len())?;
    if let Some(secs) = failure.retry_after() {
        head.insert_header("Retry-After", secs)?;
    }
    head.insert_header("Proxy-Status", failure.proxy_status())?;
    head.insert_header("Cache-Control", "no-store")?;
    Ok((head, text.into()))
}
