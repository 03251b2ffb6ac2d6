//! The responses to writers that cannot have what they want: problem details (RFC 9457).

use crate::config::Mapping;
use crate::serve::response::Response;
use oaimend_deposit::{BadXml, DepositError};
use serde_json::json;

/// When to try again if the store cannot be written, in seconds.
const RETRY_SECS: u64 = 60;

/// A response of this status with a text that says what to do now.
pub(crate) fn problem(status: u16, detail: &str) -> Response {
    problem_at(status, detail, None)
}

/// The response to a writer of a repository whose records are the files of a folder; `None` for others.
pub(super) fn refuse_folder(mapping: &Mapping) -> Option<Response> {
    let folder = mapping.local.as_ref()?.folder.as_ref()?;
    // The path of the server is not for writers elsewhere.
    let name = folder.file_name().unwrap_or_default().display();
    let text =
        format!("the records of {} are the files of the folder {name}; change them there", mapping.id());
    Some(problem(409, &text))
}

fn problem_at(status: u16, detail: &str, place: Option<&BadXml>) -> Response {
    let title = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut value = json!({ "title": title.unwrap_or_default(), "status": status, "detail": detail });
    if let Some(place) = place {
        value["line"] = json!(place.line);
        value["column"] = json!(place.column);
    }
    Response::new(status, "application/problem+json", format!("{value:#}\n"))
        .with("Cache-Control", "no-store".to_owned())
}

/// The response to a record that is not written. `bad_status` is that of a record which is not correct.
pub(super) fn of_error(error: &DepositError, bad_status: u16) -> Response {
    let detail = error.to_string();
    match error {
        DepositError::BadXml(place) => problem_at(bad_status, &detail, Some(place)),
        DepositError::Unfit(_) => problem(bad_status, &detail),
        DepositError::Forbidden(_) => problem(403, &detail),
        DepositError::Unknown(_) => problem(404, &detail),
        DepositError::Foreign { .. } => problem(409, &detail),
        DepositError::Changed(_) => problem(412, &detail),
        DepositError::Unchecked(_) => {
            tracing::error!(details = detail, "a record is not written");
            let detail = "the schemas of the repository cannot be used now, and its log says why; nothing is stored, so send \
                          the request again later";
            problem(503, detail).with("Retry-After", RETRY_SECS.to_string())
        }
        DepositError::Store(_) => {
            tracing::error!(details = detail, "a record is not written");
            let detail =
                "the store of oaimend cannot be written now; nothing is lost, send the request again later";
            problem(503, detail).with("Retry-After", RETRY_SECS.to_string())
        }
    }
}
