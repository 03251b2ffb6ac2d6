//! What holds of Identify, and what it says that other answers are held to.

use super::answer::Answer;
use super::envelope::is_same_url;
use super::findings::Findings;
use super::rules::Rule;
use super::tree::Element;
use crate::oai::datestamp;
use url::Url;

/// What the repository says of itself, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// Length of a datestamp in the granularity, in characters.
    pub(super) datestamp_chars: Option<usize>,
    /// The lowest datestamp, in a legal form.
    pub(super) earliest: Option<String>,
    /// What is kept of deleted records.
    pub(super) deleted_record: String,
}

/// Judges the answer to Identify; `None` if it is none.
pub(super) fn judge(answer: &Answer, base_url: &Url, findings: &mut Findings) -> Option<Identity> {
    let identify = answer.verb_element()?;
    let value = |name| identify.value(name).unwrap_or_default();
    judge_emails(answer, identify, findings);
    if base_url.scheme() == "https" {
        findings.warns(Rule::PlainHttp, answer, base_url.as_str());
    } else {
        findings.holds(Rule::PlainHttp, answer, base_url.as_str());
    }
    let said = value("baseURL");
    findings.judge(Rule::BaseUrl, is_same_url(said, base_url), answer, format!("\"{said}\""));
    let version = value("protocolVersion");
    findings.judge(Rule::ProtocolVersion, version == "2.0", answer, format!("\"{version}\""));
    let granularity = value("granularity");
    let datestamp_chars = match granularity {
        "YYYY-MM-DD" => Some(10),
        "YYYY-MM-DDThh:mm:ssZ" => Some(20),
        _ => None,
    };
    let is_alone = identify.all("granularity").count() == 1;
    let came = format!("\"{granularity}\"");
    findings.judge(Rule::Granularity, datestamp_chars.is_some() && is_alone, answer, came);
    let earliest = value("earliestDatestamp");
    let is_date = datestamp::is_legal(earliest.as_bytes());
    let fits = is_date && datestamp_chars.is_none_or(|chars| chars == earliest.len());
    findings.judge(Rule::EarliestDatestamp, fits, answer, format!("\"{earliest}\""));
    let deleted_record = value("deletedRecord").to_owned();
    let is_known = ["no", "transient", "persistent"].contains(&deleted_record.as_str());
    findings.judge(Rule::DeletedRecord, is_known, answer, format!("\"{deleted_record}\""));
    judge_identifiers(answer, identify, findings);
    let earliest = is_date.then(|| earliest.to_owned());
    Some(Identity { datestamp_chars, earliest, deleted_record })
}

fn judge_emails(answer: &Answer, identify: &Element, findings: &mut Findings) {
    let mut emails = identify.all("adminEmail").map(|email| email.text.trim()).peekable();
    if emails.peek().is_none() {
        findings.fails(Rule::AdminEmail, answer, "no adminEmail");
    }
    for email in emails {
        match email.strip_prefix("mailto:") {
            Some(bare) if is_address(bare) => {
                findings.warns(Rule::AdminEmail, answer, format!("\"{email}\""))
            }
            _ => findings.judge(Rule::AdminEmail, is_address(email), answer, format!("\"{email}\"")),
        }
    }
}

/// A local part, and a domain with a top level.
fn is_address(email: &str) -> bool {
    let Some((local, domain)) = email.rsplit_once('@') else { return false };
    let top = domain.rsplit_once('.').map_or("", |(_, top)| top);
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    !local.is_empty()
        && local.bytes().all(|byte| byte.is_ascii_graphic() && !b"@<>:,;\"".contains(&byte))
        && domain.bytes().all(is_host)
        && !domain.starts_with('.')
        && top.len() >= 2
        && top.bytes().all(|byte| byte.is_ascii_alphabetic())
}

const IDENTIFIER_2_0: &str = "http://www.openarchives.org/OAI/2.0/oai-identifier";
const IDENTIFIER_1_1: &str = "http://www.openarchives.org/OAI/1.1/oai-identifier";

fn judge_identifiers(answer: &Answer, identify: &Element, findings: &mut Findings) {
    let described = identify.all("description").flat_map(|description| description.children.iter());
    let found: Vec<&Element> = described.filter(|child| child.name == "oai-identifier").collect();
    let (holds, came) = match found.as_slice() {
        [] => return,
        [one] => {
            let name = one.value("repositoryIdentifier").unwrap_or_default();
            let holds = match one.namespace.as_str() {
                IDENTIFIER_2_0 => is_domain(name),
                IDENTIFIER_1_1 => !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                _ => false,
            };
            (holds, format!("\"{name}\" in \"{}\"", one.namespace))
        }
        several => (false, format!("{} descriptions", several.len())),
    };
    findings.judge(Rule::OaiIdentifier, holds, answer, came);
}

/// Labels that begin with a letter, with a dot between them.
fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_alphabetic())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.contains('.') && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_domain_with_a_top_level() {
        for right in ["oai@example.org", "a.b-c+d@sub.example.museum"] {
            assert!(is_address(right), "{right}");
        }
        for wrong in [
            "",
            "oai",
            "oai@localhost",
            "@example.org",
            "oai@example.o",
            "mailto:oai@example.org",
            "a b@x.org",
        ] {
            assert!(!is_address(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_repository_identifier_is_a_domain_name() {
        assert!(is_domain("example.org") && is_domain("oai.x-y.example"));
        for wrong in ["", "example", "example.", "1.example", "exa mple.org"] {
            assert!(!is_domain(wrong), "{wrong}");
        }
    }
}
