//! Answers a list of identifiers with a list of results. No service is asked for them.

use super::{resolve, result};
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::identifier_failure::{failure_json, with_retry};
use crate::serve::pages::records::record::with_policies;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_pages::resolver::json_results;
use oaimend_pages::texts::resolver as texts;
use oaimend_resolver::{PlacesMax, repaired_request};
use serde_json::json;

/// Maximum number of identifiers in a request.
const IDENTIFIERS_MAX: usize = 1_000;

/// Longest body of a request, in bytes.
pub(crate) const LIST_BYTES_MAX: usize = 1 << 20;

/// The response to a POST: a JSON array of strings, or one identifier on each line.
pub(crate) async fn answer_list(served: &ServedRepositories, pages: &Gateway, body: &[u8]) -> Response {
    let Some(identifiers) = read(body) else { return refused(400, texts::NOT_A_LIST) };
    if identifiers.len() > IDENTIFIERS_MAX {
        return refused(413, &texts::too_many(IDENTIFIERS_MAX));
    }
    let Ok(_permit) = served.resolver.lists.try_acquire() else {
        return refused(503, texts::BUSY).with("Retry-After", "1".to_owned());
    };
    let gateway = pages.current_for_pages(served);
    let mut results = Vec::with_capacity(identifiers.len());
    for identifier in identifiers {
        let identifier = repaired_request(identifier.trim());
        match resolve(served, &identifier, PlacesMax::OF_MANY).await {
            Ok(resolved) => results.push(result(&identifier, resolved, gateway.policy.enabled)),
            Err(failure) => return with_retry(with_policies(failure_json(&failure)), &failure),
        }
    }
    let json = Response::json(200, &json_results(&results, gateway.site.public_url()));
    with_policies(json.with("Cache-Control", "no-store".to_owned())).compressible()
}

/// The identifiers of a body, without empty ones. `None` if it is not a list of texts in UTF-8.
fn read(body: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(body).ok()?;
    let mut identifiers: Vec<String> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).ok()?
    } else {
        text.lines().map(str::to_owned).collect()
    };
    identifiers.retain(|identifier| !identifier.trim().is_empty());
    (!identifiers.is_empty()).then_some(identifiers)
}

fn refused(status: u16, text: &str) -> Response {
    let page = Response::json(status, &json!({"error": text}));
    with_policies(page.with("Cache-Control", "no-store".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_an_array_or_lines() {
        for (body, identifiers) in [
            ("[\"a\", \" \", \"b\\nc\"]", Some(vec!["a", "b\nc"])),
            ("a\r\n\n b ", Some(vec!["a", " b "])),
            ("{\"a\": 1}", Some(vec!["{\"a\": 1}"])),
            ("[\"a\"", None),
            ("[1]", None),
            ("", None),
        ] {
            let expected = identifiers.map(|texts| texts.into_iter().map(str::to_owned).collect());
            assert_eq!(read(body.as_bytes()), expected, "{body}");
        }
        assert_eq!(read(b"\xFF"), None);
    }
}
