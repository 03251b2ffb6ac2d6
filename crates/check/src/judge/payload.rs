//! The rule for records of a format: they are valid for its schema.

use crate::exchange::{CheckResponse, Received};
use crate::findings::Findings;
use crate::payload_schemas::Validation;
use crate::rules::Rule;
use memchr::memmem;

/// Judges the validation of a list in the format `prefix`.
pub(crate) fn judge(response: &CheckResponse, prefix: &str, validation: Validation, findings: &mut Findings) {
    match validation {
        Validation::Valid => {
            let records = response.verb_element().map_or(0, |verb| verb.children_named("record").count());
            findings.pass(Rule::PayloadSchema, response, format!("{records} records in {prefix}"));
        }
        Validation::Invalid(line, violation) => {
            let body = match &response.received {
                Received::Complete(probed) => probed.body.as_slice(),
                Received::Failed(_) | Received::Skipped(_) => &[],
            };
            let place = line.map_or_else(String::new, |line| match find_identifier(body, line) {
                Some(identifier) => format!("{identifier}, line {line}: "),
                None => format!("line {line}: "),
            });
            findings.fail(Rule::PayloadSchema, response, format!("{place}{violation}"));
        }
        Validation::Unknown(why) => findings.mark_unjudged(Rule::PayloadSchema, response, why),
    }
}

/// The identifier of the record that contains a line; `None` if several records share this line.
fn find_identifier(body: &[u8], line: usize) -> Option<&str> {
    let start = match line.checked_sub(2) {
        Some(breaks) => memchr::memchr_iter(b'\n', body).nth(breaks)? + 1,
        None => 0,
    };
    let end = memchr::memchr(b'\n', body.get(start..)?).map_or(body.len(), |length| start + length);
    if memmem::find_iter(body.get(start..end)?, "<header").count() > 1 {
        return None;
    }
    let header = body.get(memmem::rfind(body.get(..end)?, b"<header")?..)?;
    let header = header.get(..memmem::find(header, b"</header>")?)?;
    let identifier = header.get(memmem::find(header, b"<identifier>")? + "<identifier>".len()..)?;
    let identifier = identifier.get(..memmem::find(identifier, b"</identifier>")?)?;
    std::str::from_utf8(identifier).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifier_of_a_line() {
        let body = b"<ListRecords>\n\
            <header><identifier>a</identifier></header><x/>\n<y/>\n\
            <header><identifier>b</identifier></header>\n<z/>\n\
            <header><identifier>c</identifier></header><header><identifier>d</identifier></header>";
        let found: Vec<_> = (0..8).map(|line| find_identifier(body, line)).collect();
        let [a, b] = [Some("a"), Some("b")];
        assert_eq!(found, [None, None, a, a, b, b, None, None]);
    }
}
