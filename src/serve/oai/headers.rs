//! Reads header fields.

use http::header;
use pingora_http::RequestHeader;

/// All values of a header field, joined by commas.
pub(super) fn joined(head: &RequestHeader, name: header::HeaderName) -> String {
    let values = head.headers.get_all(name);
    values.iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(", ")
}
