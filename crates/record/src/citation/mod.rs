//! Citations of a work for reference managers: BibTeX, RIS and CSL-JSON.
//!
//! All creators and subjects are in them. Values of a record cannot end a field or a line: each form escapes what has a
//! meaning in it.

mod bibtex;
mod csl;
mod ris;

pub use bibtex::bibtex;
pub use csl::csl_json;
pub use ris::ris;

use crate::agent::{Agent, AgentKind};
use crate::text::on_one_line;
use crate::work::WorkDescription;

/// Longest key of a citation, in bytes.
const KEY_BYTES_MAX: usize = 100;

/// The key of a work in a list of citations, in ASCII. It depends on the identifier of the record only.
fn key(work: &WorkDescription) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '-' | '_');
    let key: String = work.identifier.chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
    // The end of an identifier is what distinguishes it.
    let start = key.len().saturating_sub(KEY_BYTES_MAX);
    match key.get(start..) {
        Some(key) if !key.is_empty() => key.to_owned(),
        _ => "record".to_owned(),
    }
}

/// The URL to cite: the persistent one, or the page of the record.
fn url<'w>(work: &'w WorkDescription, page_url: &'w str) -> &'w str {
    work.links.persistent().map_or(page_url, |link| link.url.as_str())
}

/// A value on one line without control characters.
fn clean(value: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    on_one_line(&value.chars().map(printable).collect::<String>())
}

/// The family name and the given names of a person; `None` for other agents and for names in one part.
fn name_parts(agent: &Agent) -> Option<(String, String)> {
    let (family, given) = agent.name.value.split_once(',')?;
    let (family, given) = (clean(family), clean(given));
    let is_divided = agent.kind != AgentKind::Organization && !family.is_empty() && !given.is_empty();
    is_divided.then_some((family, given))
}

#[cfg(test)]
mod tests;
