//! Rules for Identify, and the values of Identify that other rules use.

use super::envelope::is_same_url;
use crate::exchange::CheckResponse;
use crate::findings::Findings;
use crate::rules::Rule;
use crate::tree::Element;
use oaimend_oai::datestamp;
use url::Url;

/// The repository's own description, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The length of a datestamp in the granularity, in characters.
    pub(crate) datestamp_chars: Option<usize>,
    /// The lowest datestamp, if it is legal.
    pub(crate) earliest: Option<String>,
    /// The value of deletedRecord.
    pub(crate) deleted_record: String,
    /// The announced content codings, in lower case.
    pub(crate) codings: Vec<String>,
}

/// Judges the response to Identify; `None` if it contains no Identify.
pub(crate) fn judge(response: &CheckResponse, base_url: &Url, findings: &mut Findings) -> Option<Identity> {
    if response.root().is_some() {
        findings.judge(Rule::Identify, response.verb_element().is_some(), response, response.summarize());
    }
    let identify = response.verb_element()?;
    let value = |name| identify.child_text(name).unwrap_or_default();
    judge_emails(response, identify, findings);
    if base_url.scheme() == "https" {
        findings.warn(Rule::PlainHttp, response, base_url.as_str());
    } else {
        findings.pass(Rule::PlainHttp, response, base_url.as_str());
    }
    let url = value("baseURL");
    findings.judge(Rule::BaseUrl, is_same_url(url, base_url), response, format!("\"{url}\""));
    let version = value("protocolVersion");
    findings.judge(Rule::ProtocolVersion, version == "2.0", response, format!("\"{version}\""));
    let granularity = value("granularity");
    let datestamp_chars = match granularity {
        "YYYY-MM-DD" => Some(10),
        "YYYY-MM-DDThh:mm:ssZ" => Some(20),
        _ => None,
    };
    let is_alone = identify.children_named("granularity").count() == 1;
    let received = format!("\"{granularity}\"");
    findings.judge(Rule::Granularity, datestamp_chars.is_some() && is_alone, response, received);
    let earliest = value("earliestDatestamp");
    let is_date = datestamp::is_legal(earliest.as_bytes());
    let fits = is_date && datestamp_chars.is_none_or(|chars| chars == earliest.len());
    findings.judge(Rule::EarliestDatestamp, fits, response, format!("\"{earliest}\""));
    let deleted_record = value("deletedRecord").to_owned();
    let is_known = ["no", "transient", "persistent"].contains(&deleted_record.as_str());
    findings.judge(Rule::DeletedRecord, is_known, response, format!("\"{deleted_record}\""));
    findings.advise(
        Rule::DeletedPolicy,
        deleted_record != "no",
        response,
        format!("deletedRecord is \"{deleted_record}\""),
    );
    judge_identifiers(response, identify, findings);
    let earliest = is_date.then(|| earliest.to_owned());
    let compression = identify.children_named("compression");
    let codings = compression.map(|coding| coding.text.trim().to_ascii_lowercase()).collect();
    Some(Identity { datestamp_chars, earliest, deleted_record, codings })
}

fn judge_emails(response: &CheckResponse, identify: &Element, findings: &mut Findings) {
    let mut emails = identify.children_named("adminEmail").map(|email| email.text.trim()).peekable();
    if emails.peek().is_none() {
        findings.fail(Rule::AdminEmail, response, "no adminEmail");
    }
    for email in emails {
        match email.strip_prefix("mailto:") {
            Some(bare) if is_address(bare) => {
                findings.warn(Rule::AdminEmail, response, format!("\"{email}\""))
            }
            _ => findings.judge(Rule::AdminEmail, is_address(email), response, format!("\"{email}\"")),
        }
    }
}

/// Whether this is a mail address: a local part, and a domain with a top level.
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

fn judge_identifiers(response: &CheckResponse, identify: &Element, findings: &mut Findings) {
    let described =
        identify.children_named("description").flat_map(|description| description.children.iter());
    let found: Vec<&Element> = described.filter(|child| child.name == "oai-identifier").collect();
    let (holds, received) = match found.as_slice() {
        [] => return,
        [one] => {
            let name = exact_text(one, "repositoryIdentifier");
            let holds = match one.namespace.as_str() {
                IDENTIFIER_2_0 => is_domain(name),
                IDENTIFIER_1_1 => !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                _ => false,
            };
            match find_description_fault(one, name) {
                Some(fault) if holds => (false, fault),
                _ => (holds, format!("\"{name}\" in \"{}\"", one.namespace)),
            }
        }
        several => (false, format!("{} descriptions", several.len())),
    };
    findings.judge(Rule::OaiIdentifier, holds, response, received);
}

/// The text of a child with its blanks: the types of the schema are strings, in which they count.
fn exact_text<'a>(description: &'a Element, name: &'a str) -> &'a str {
    description.child(name).map_or("", |child| child.text.as_str())
}

/// The first violation of the schema of oai-identifier, which is the same in both versions.
fn find_description_fault(description: &Element, repository: &str) -> Option<String> {
    let names = ["scheme", "repositoryIdentifier", "delimiter", "sampleIdentifier"];
    let text = description.text.trim();
    if !text.is_empty() {
        return Some(format!("the text \"{text}\" between the elements"));
    }
    let children = &description.children;
    let is_child =
        |child: &Element, name: &str| child.name == name && child.namespace == description.namespace;
    if let Some((child, name)) =
        children.iter().zip(names).find(|(child, name)| !is_child(child, name) || !child.children.is_empty())
    {
        return Some(format!("<{}>, expected <{name}> with a text", child.name));
    }
    if children.len() != names.len() {
        return Some(format!("{} elements, expected {}", children.len(), names.join(", ")));
    }
    let value = |name| exact_text(description, name);
    if value("scheme") != "oai" || value("delimiter") != ":" {
        let (scheme, delimiter) = (value("scheme"), value("delimiter"));
        return Some(format!(
            "the scheme \"{scheme}\" and the delimiter \"{delimiter}\", expected oai and :"
        ));
    }
    let sample = value("sampleIdentifier");
    let is_local = |local: &str| !local.is_empty() && !local.contains(char::is_whitespace);
    let is_sample = sample.strip_prefix(&format!("oai:{repository}:")).is_some_and(is_local);
    (!is_sample).then(|| format!("the sampleIdentifier \"{sample}\" of the repository \"{repository}\""))
}

/// Whether this is a domain name whose labels begin with letters.
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
    fn mail_addresses_have_a_top_level_domain() {
        for valid in ["oai@example.org", "a.b-c+d@sub.example.museum"] {
            assert!(is_address(valid), "{valid}");
        }
        for invalid in [
            "",
            "oai",
            "oai@localhost",
            "@example.org",
            "oai@example.o",
            "mailto:oai@example.org",
            "a b@x.org",
        ] {
            assert!(!is_address(invalid), "{invalid}");
        }
    }

    #[test]
    fn repository_identifiers_are_domain_names() {
        assert!(is_domain("example.org") && is_domain("oai.x-y.example"));
        for invalid in ["", "example", "example.", "1.example", "exa mple.org"] {
            assert!(!is_domain(invalid), "{invalid}");
        }
    }
}
