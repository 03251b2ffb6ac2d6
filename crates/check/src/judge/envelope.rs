//! Rules for every response: HTTP, XML and the OAI-PMH envelope.

use super::schema;
use crate::exchange::{CheckRequest, CheckResponse, OAI, Received};
use crate::findings::Findings;
use crate::rules::Rule;
use crate::tree::Element;
use oaimend_oai::datestamp;
use oaimend_upstream::Probed;
use url::Url;

/// Judges a response by itself.
pub(crate) fn judge(response: &CheckResponse, base_url: &Url, findings: &mut Findings) {
    for deferral in &response.deferrals {
        let value = deferral.retry_after.as_deref();
        let seconds = value.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
        let is_legal =
            seconds.and_then(|value| value.parse::<u64>().ok()).is_some_and(|seconds| seconds <= 3600);
        let received = format!("{} with Retry-After {:?}", deferral.status, value.unwrap_or("missing"));
        findings.judge(Rule::RetryAfter, deferral.status == 503 && is_legal, response, received);
    }
    let probed = match &response.received {
        Received::Complete(probed) => probed,
        Received::Failed(why) => return findings.fail(Rule::Answers, response, why),
        Received::Skipped(_) => return,
    };
    findings.pass(Rule::Answers, response, format!("{} bytes", probed.body.len()));
    judge_http(response, probed, findings);
    if probed.status != 200 && response.root().is_none() {
        return;
    }
    match &response.document {
        Ok(root) => {
            findings.pass(Rule::WellFormed, response, "well-formed");
            judge_declaration(response, &probed.body, findings);
            let received = response.html_page();
            let received = received.unwrap_or_else(|| format!("{} in \"{}\"", root.name, root.namespace));
            findings.judge(Rule::RootElement, response.root().is_some(), response, received);
        }
        // The source sends another page; its syntax is of no interest.
        Err(why) if response.html_page().is_some() => findings.fail(Rule::RootElement, response, why),
        Err(why) => findings.fail(Rule::WellFormed, response, why),
    }
    if let Some(root) = response.root() {
        judge_root(response, root, base_url, findings);
    }
}

fn judge_http(response: &CheckResponse, probed: &Probed, findings: &mut Findings) {
    findings.judge(Rule::HttpStatus, probed.status == 200, response, probed.status.to_string());
    let permanent = probed.redirects.iter().any(|status| matches!(status, 301 | 308));
    let statuses: Vec<String> = probed.redirects.iter().map(u16::to_string).collect();
    let received = if statuses.is_empty() { "no redirect".to_owned() } else { statuses.join(", then ") };
    findings.judge(Rule::PermanentRedirect, !permanent, response, received);
    let other = probed.other_host.as_ref();
    let received =
        other.map_or_else(|| "no other host".to_owned(), |host| format!("a redirect to the host {host}"));
    findings.advise(Rule::RedirectHost, other.is_none(), response, received);
    if probed.status == 200 {
        let content_type = probed.content_type.as_deref().unwrap_or_default();
        let received = if content_type.is_empty() { "none" } else { content_type };
        findings.judge(Rule::ContentType, is_text_xml(content_type), response, received);
    }
}

fn is_text_xml(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let is_xml = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/xml"));
    let charset = parts.filter_map(|parameter| parameter.split_once('='));
    let mut charset = charset.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    is_xml && charset.all(|(_, value)| value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8"))
}

fn judge_declaration(response: &CheckResponse, body: &[u8], findings: &mut Findings) {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let end = memchr::memmem::find(body, b"?>").map_or(0, |at| at + 2);
    let declaration = String::from_utf8_lossy(body.get(..end).unwrap_or_default()).replace('\'', "\"");
    let dense: String = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_there = dense.starts_with("<?xml ");
    let encoding = dense.split_once("encoding=\"").and_then(|(_, rest)| rest.split_once('"'));
    let holds = is_there
        && dense.contains("version=\"1.0\"")
        && encoding.is_none_or(|(name, _)| name.eq_ignore_ascii_case("utf-8"));
    let received = if is_there { declaration.as_str() } else { "no XML declaration" };
    findings.judge(Rule::XmlDeclaration, holds, response, received);
}

fn judge_root(response: &CheckResponse, root: &Element, base_url: &Url, findings: &mut Findings) {
    let location = root.attributes.iter().find(|attribute| {
        attribute.namespace == "http://www.w3.org/2001/XMLSchema-instance"
            && attribute.name == "schemaLocation"
    });
    let location = location.map_or("", |attribute| attribute.value.as_str());
    let words: Vec<&str> = location.split_whitespace().collect();
    let is_paired = words.chunks(2).any(|pair| pair == [OAI, SCHEMA]);
    let received = if location.is_empty() { "no schemaLocation" } else { location };
    findings.judge(Rule::SchemaLocation, is_paired, response, received);
    let date = root.child_text("responseDate").unwrap_or_default();
    let is_utc = date.len() == 20 && datestamp::is_legal(date.as_bytes());
    findings.judge(Rule::ResponseDate, is_utc, response, format!("\"{date}\""));
    if let Some(request) = root.child("request") {
        let value = request.text.trim();
        findings.judge(Rule::RequestUrl, is_same_url(value, base_url), response, format!("\"{value}\""));
        judge_attributes(response, request, findings);
    }
    match schema::find_violation(root) {
        Some(complaint) => findings.fail(Rule::Schema, response, complaint),
        None => findings.pass(Rule::Schema, response, response.summarize()),
    }
    for error in root.children_named("error") {
        match error.text.trim() {
            "" => findings.warn(Rule::ErrorText, response, "an error without a text"),
            text => findings.pass(Rule::ErrorText, response, text),
        }
    }
}

/// Whether a URL in a response equals the URL that was requested.
pub(crate) fn is_same_url(value: &str, base_url: &Url) -> bool {
    Url::parse(value).is_ok_and(|value| value == *base_url)
}

fn judge_attributes(response: &CheckResponse, request: &Element, findings: &mut Findings) {
    let attributes: Vec<(&str, &str)> = request
        .attributes
        .iter()
        .filter(|attribute| attribute.namespace.is_empty())
        .map(|attribute| (attribute.name.as_str(), attribute.value.as_str()))
        .collect();
    let is_bare = response.errors().iter().any(|code| matches!(*code, "badVerb" | "badArgument"));
    let expected = if is_bare { Vec::new() } else { expected_attributes(&response.request) };
    let holds =
        attributes.len() == expected.len() && expected.iter().all(|argument| attributes.contains(argument));
    let attributes: Vec<String> =
        attributes.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    let received = if attributes.is_empty() { "no attributes".to_owned() } else { attributes.join(" ") };
    findings.judge(Rule::RequestAttributes, holds, response, received);
}

fn expected_attributes(request: &CheckRequest) -> Vec<(&str, &str)> {
    request.arguments.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

const SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_is_text_xml_with_utf_8() {
        for valid in ["text/xml", "Text/XML;charset=UTF-8", "text/xml; charset=\"utf-8\"", "text/xml; x=1"] {
            assert!(is_text_xml(valid), "{valid}");
        }
        for invalid in ["", "application/xml", "text/html", "text/xml; charset=ISO-8859-1"] {
            assert!(!is_text_xml(invalid), "{invalid}");
        }
    }

    #[test]
    fn base_urls_are_compared_exactly_except_for_the_slash_of_a_bare_host() {
        let base_url = Url::parse("http://x.example").expect("a literal URL");
        assert!(is_same_url("http://x.example/", &base_url) && is_same_url("http://x.example", &base_url));
        for other in
            ["https://x.example", "http://x.example/oai", "http://x.example/?verb=Identify", "", "oai"]
        {
            assert!(!is_same_url(other, &base_url), "{other}");
        }
    }
}
