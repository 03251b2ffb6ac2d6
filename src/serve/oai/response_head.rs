//! Response headers of pages and of failures, and the text of failures.

use crate::serve::response::{RESPONSE_SECURITY_POLICY, RESPONSE_VARY};
use bytes::Bytes;
use http::{HeaderValue, header};
use oaimend_repository::{AnsweredBy, Failure, ResponseHead};
use pingora_error::Result;
use pingora_http::ResponseHeader;

/// The header of every page.
pub(super) fn page() -> Result<ResponseHeader> {
    // With the default spelling of names: another one needs a second table.
    let mut head = ResponseHeader::build_no_case(200, Some(12))?;
    head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=UTF-8"))?;
    add_common(&mut head)?;
    Ok(head)
}

/// Adds the headers of all responses of repositories.
fn add_common(head: &mut ResponseHeader) -> Result<()> {
    head.insert_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))?;
    head.insert_header(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(RESPONSE_SECURITY_POLICY))?;
    head.insert_header(header::VARY, HeaderValue::from_static(RESPONSE_VARY))
}

/// The header of a page. `why` is the reason for a request to the source (RFC 9211, section 2.2).
pub(super) fn whole(answer: &ResponseHead, why: &str) -> Result<ResponseHeader> {
    let mut head = page()?;
    match &answer.answered_by {
        AnsweredBy::Source(status) => {
            head.insert_header(header::CACHE_STATUS, format!("oaimend; fwd={why}; fwd-status={status}"))?;
        }
        AnsweredBy::Mirror(failure) => {
            head.insert_header(header::CACHE_STATUS, MIRROR_STATUS)?;
            if let Some(failure) = failure {
                head.insert_header(PROXY_STATUS, failure.proxy_status())?;
            }
        }
    }
    if let Some(length) = answer.length {
        head.insert_header(header::CONTENT_LENGTH, length)?;
    }
    Ok(head)
}

/// The field that describes a failure of the source (RFC 9209).
pub(super) const PROXY_STATUS: &str = "Proxy-Status";

/// The `Cache-Status` of the mirror.
const MIRROR_STATUS: &str = "oaimend; hit; detail=mirror";

/// The header and the text of a failure.
pub(super) fn failed(failure: &Failure) -> Result<(ResponseHeader, Bytes)> {
    let text = failure.text();
    let mut head = ResponseHeader::build(failure.status(), Some(12))?;
    head.insert_header("Content-Type", "text/plain; charset=UTF-8")?;
    head.insert_header("Content-Length", text.len())?;
    if let Some(secs) = failure.retry_after() {
        head.insert_header("Retry-After", secs)?;
    }
    head.insert_header(PROXY_STATUS, failure.proxy_status())?;
    head.insert_header("Cache-Control", "no-store")?;
    add_common(&mut head)?;
    Ok((head, text.into()))
}
