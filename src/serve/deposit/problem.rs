//! The responses to writers that cannot have what they want.

use crate::config::Mapping;
use crate::serve::problem::{problem, problem_at};
use crate::serve::response::Response;
use oaimend_deposit::DepositError;

/// When to try again if the store cannot be written, in seconds.
const RETRY_SECS: u64 = 60;

/// The response to a writer of a repository whose records are the files of a folder; `None` for others.
pub(super) fn refuse_folder(mapping: &Mapping) -> Option<Response> {
    let folder = mapping.local.as_ref()?.folder.as_ref()?;
    // The path of the server is not for writers elsewhere.
    let name = folder.file_name().unwrap_or_default().display();
    let text =
        format!("the records of {} are the files of the folder {name}; change them there", mapping.id());
    Some(problem(409, &text))
}

/// The response to a record that is not written. `bad_status` is that of a record which is not correct.
pub(super) fn of_error(error: &DepositError, bad_status: u16) -> Response {
    let detail = error.to_string();
    match error {
        DepositError::BadXml(place) => problem_at(bad_status, &detail, Some((place.line, place.column))),
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
