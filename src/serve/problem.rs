//! Problem details (RFC 9457): the errors of the interfaces that programs read as JSON.

use crate::serve::response::{Body, Response};
use oaimend_api::Problem;

/// A response of this status with a text that says what to do now.
pub(crate) fn problem(status: u16, detail: &str) -> Response {
    problem_at(status, detail, None)
}

/// The same with the line and the column of a fault in the body of the request.
pub(crate) fn problem_at(status: u16, detail: &str, place: Option<(usize, usize)>) -> Response {
    let title = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let (line, column) = place.unzip();
    let title = title.unwrap_or_default().to_owned();
    let problem = Problem { title, status, detail: detail.to_owned(), line, column };
    let text = serde_json::to_string_pretty(&problem).expect("a problem is JSON");
    Response::new(status, "application/problem+json", format!("{text}\n"))
        .with("Cache-Control", "no-store".to_owned())
}

/// The problem in place of a refusal or failure in plain text, with the headers that say when to try again, and why.
/// Other responses stay as they are.
pub(crate) fn as_problem(response: Response) -> Response {
    let is_text = response
        .headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.starts_with("text/plain"));
    let Body::Bytes(body) = &response.body else { return response };
    if !is_text || response.status < 400 {
        return response;
    }
    let made = problem(response.status, String::from_utf8_lossy(body).trim());
    let kept = ["Retry-After", "Proxy-Status", "Allow"];
    let headers = response.headers.into_iter().filter(|(name, _)| kept.contains(name));
    headers.fold(made, |made, (name, value)| made.with(name, value))
}
