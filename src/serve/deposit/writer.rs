//! Who writes: the token of a request, and its rights.

use crate::serve::problem::problem;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::{HeaderMap, header};
use oaimend_write_tokens::WriteRights;

/// A writer that may write to the repository of its request.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) rights: WriteRights,
}

/// The challenge of a response without a right (RFC 6750, section 3).
const CHALLENGE: &str = "Bearer realm=\"oaimend\"";

/// The writer of a request to this local repository, or the response that refuses it.
pub(crate) fn writer_of(
    served: &ServedRepositories,
    repository: &str,
    headers: &HeaderMap,
) -> Result<Writer, Response> {
    let Some(token) = token_of(headers) else {
        let text =
            "writers need a token; send it as Authorization: Bearer, or make one with oaimend token create";
        return Err(problem(401, text).with("WWW-Authenticate", CHALLENGE.to_owned()));
    };
    match served.deposit.tokens.rights(token) {
        Ok(Some(rights)) if rights.repository == repository => Ok(Writer { rights }),
        Ok(Some(rights)) => {
            let text = format!("the token {} is for the repository {}", rights.name, rights.repository);
            let challenge = format!("{CHALLENGE}, error=\"insufficient_scope\"");
            Err(problem(403, &text).with("WWW-Authenticate", challenge))
        }
        Ok(None) => {
            let text = "this token is unknown or revoked; make one with oaimend token create";
            let challenge = format!("{CHALLENGE}, error=\"invalid_token\"");
            Err(problem(401, text).with("WWW-Authenticate", challenge))
        }
        Err(error) => {
            tracing::error!(details = %error, "the tokens cannot be read");
            let text = "the tokens of oaimend cannot be read; its log says why";
            Err(problem(503, text).with("Retry-After", RETRY_SECS.to_string()))
        }
    }
}

/// When to try again if the tokens cannot be read, in seconds.
const RETRY_SECS: u64 = 60;

fn token_of(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl Writer {
    /// Whether a record with these setSpecs may be written; `None`: any record may be.
    pub(super) fn may_write(&self) -> Option<impl Fn(&[String]) -> bool + Send + Sync> {
        let rights = &self.rights;
        let is_limited = !rights.sets.is_empty();
        is_limited.then_some(move |set_specs: &[String]| rights.may_write(&rights.repository, set_specs))
    }
}
