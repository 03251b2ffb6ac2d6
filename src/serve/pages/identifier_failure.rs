//! The responses while the identifiers of the mirror cannot be read, for programs.

use super::records::record::with_policies;
use crate::serve::response::Response;
use oaimend_pages::texts::resolver as texts;
use oaimend_repository::{Failure, Reason};
use serde_json::json;

/// The text of a failure as JSON.
pub(super) fn failure_json(failure: &Failure) -> Response {
    let text = match failure.reason {
        Reason::MirrorIncomplete => texts::BUILDING,
        _ => texts::UNREADABLE,
    };
    Response::json(503, &json!({"error": text}))
}

pub(super) fn with_retry(page: Response, failure: &Failure) -> Response {
    page.with("Cache-Control", "no-store".to_owned())
        .with("Retry-After", failure.retry_after_secs.to_string())
        .with("Proxy-Status", failure.proxy_status())
}

/// The failure of a request for links.
pub(super) fn failed_links(failure: &Failure) -> Response {
    with_retry(with_policies(failure_json(failure)), failure)
}
