//! What holds of every answer: HTTP around it, XML, and the OAI-PMH envelope.

use super::answer::{Answer, Asked, Came, OAI};
use super::findings::Findings;
use super::rules::Rule;
use super::schema;
use super::tree::Element;
use crate::oai::datestamp;
use crate::upstream::Probed;
use url::Url;

/// Judges an answer by itself.
pub(super) fn judge(answer: &Answer, base_url: &Url, findings: &mut Findings) {
    for put_off in &answer.put_off {
        let said = put_off.retry_after.as_deref();
        let seconds = said.filter(|said| said.bytes().all(|byte| byte.is_ascii_digit()));
        let is_legal =
            seconds.and_then(|said| said.parse::<u64>().ok()).is_some_and(|seconds| seconds <= 3600);
        let came = format!("{} with Retry-After {:?}", put_off.status, said.unwrap_or("missing"));
        findings.judge(Rule::RetryAfter, put_off.status == 503 && is_legal, answer, came);
    }
    let probed = match &answer.came {
        Came::Whole(probed) => probed,
        Came::Missing(why) => return findings.fails(Rule::Answers, answer, why),
        Came::NotAsked(_) => return,
    };
    findings.holds(Rule::Answers, answer, format!("{} bytes", probed.body.len()));
    judge_http(answer, probed, findings);
    if probed.status != 200 && answer.root().is_none() {
        return;
    }
    match &answer.document {
        Ok(root) => {
            findings.holds(Rule::WellFormed, answer, "well-formed");
            judge_declaration(answer, &probed.body, findings);
            let came = format!("{} in \"{}\"", root.name, root.namespace);
            findings.judge(Rule::RootElement, answer.root().is_some(), answer, came);
        }
        Err(why) => findings.fails(Rule::WellFormed, answer, why),
    }
    if let Some(root) = answer.root() {
        judge_root(answer, root, base_url, findings);
    }
}

fn judge_http(answer: &Answer, probed: &Probed, findings: &mut Findings) {
    findings.judge(Rule::HttpStatus, probed.status == 200, answer, probed.status.to_string());
    let permanent = probed.redirects.iter().any(|status| matches!(status, 301 | 308));
    let statuses: Vec<String> = probed.redirects.iter().map(u16::to_string).collect();
    let came = if statuses.is_empty() { "no redirect".to_owned() } else { statuses.join(", then ") };
    findings.judge(Rule::PermanentRedirect, !permanent, answer, came);
    if probed.status == 200 {
        let content_type = probed.content_type.as_deref().unwrap_or_default();
        let came = if content_type.is_empty() { "none" } else { content_type };
        findings.judge(Rule::ContentType, is_text_xml(content_type), answer, came);
    }
}

fn is_text_xml(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let is_xml = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/xml"));
    let charset = parts.filter_map(|parameter| parameter.split_once('='));
    let mut charset = charset.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    is_xml && charset.all(|(_, value)| value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8"))
}

fn judge_declaration(answer: &Answer, body: &[u8], findings: &mut Findings) {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let end = memchr::memmem::find(body, b"?>").map_or(0, |at| at + 2);
    let declaration = String::from_utf8_lossy(body.get(..end).unwrap_or_default()).replace('\'', "\"");
    let dense: String = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_there = dense.starts_with("<?xml ");
    let encoding = dense.split_once("encoding=\"").and_then(|(_, rest)| rest.split_once('"'));
    let holds = is_there
        && dense.contains("version=\"1.0\"")
        && encoding.is_none_or(|(name, _)| name.eq_ignore_ascii_case("utf-8"));
    let came = if is_there { declaration.as_str() } else { "no XML declaration" };
    findings.judge(Rule::XmlDeclaration, holds, answer, came);
}

fn judge_root(answer: &Answer, root: &Element, base_url: &Url, findings: &mut Findings) {
    let location = root.attributes.iter().find(|attribute| {
        attribute.namespace == "http://www.w3.org/2001/XMLSchema-instance"
            && attribute.name == "schemaLocation"
    });
    let location = location.map_or("", |attribute| attribute.value.as_str());
    let words: Vec<&str> = location.split_whitespace().collect();
    let is_paired = words.chunks(2).any(|pair| pair == [OAI, SCHEMA]);
    let came = if location.is_empty() { "no schemaLocation" } else { location };
    findings.judge(Rule::SchemaLocation, is_paired, answer, came);
    let date = root.value("responseDate").unwrap_or_default();
    let is_utc = date.len() == 20 && datestamp::is_legal(date.as_bytes());
    findings.judge(Rule::ResponseDate, is_utc, answer, format!("\"{date}\""));
    if let Some(request) = root.first("request") {
        let said = request.text.trim();
        findings.judge(Rule::RequestUrl, is_same_url(said, base_url), answer, format!("\"{said}\""));
        judge_attributes(answer, request, findings);
    }
    match schema::complaint(root) {
        Some(complaint) => findings.fails(Rule::Schema, answer, complaint),
        None => findings.holds(Rule::Schema, answer, answer.gist()),
    }
    for error in root.all("error") {
        match error.text.trim() {
            "" => findings.warns(Rule::ErrorText, answer, "an error without a text"),
            text => findings.holds(Rule::ErrorText, answer, text),
        }
    }
}

/// Whether a source's own word for its base URL is the URL that was asked.
pub(super) fn is_same_url(said: &str, base_url: &Url) -> bool {
    Url::parse(said).is_ok_and(|said| said == *base_url)
}

fn judge_attributes(answer: &Answer, request: &Element, findings: &mut Findings) {
    let said: Vec<(&str, &str)> = request
        .attributes
        .iter()
        .filter(|attribute| attribute.namespace.is_empty())
        .map(|attribute| (attribute.name.as_str(), attribute.value.as_str()))
        .collect();
    let is_bare = answer.errors().iter().any(|code| matches!(*code, "badVerb" | "badArgument"));
    let wanted = if is_bare { Vec::new() } else { wanted(&answer.asked) };
    let holds = said.len() == wanted.len() && wanted.iter().all(|argument| said.contains(argument));
    let said: Vec<String> = said.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    let came = if said.is_empty() { "no attributes".to_owned() } else { said.join(" ") };
    findings.judge(Rule::RequestAttributes, holds, answer, came);
}

fn wanted(asked: &Asked) -> Vec<(&str, &str)> {
    asked.arguments.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

const SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_xml_may_say_utf_8_and_nothing_else() {
        for right in ["text/xml", "Text/XML;charset=UTF-8", "text/xml; charset=\"utf-8\"", "text/xml; x=1"] {
            assert!(is_text_xml(right), "{right}");
        }
        for wrong in ["", "application/xml", "text/html", "text/xml; charset=ISO-8859-1"] {
            assert!(!is_text_xml(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_base_url_has_one_spelling_but_for_the_slash_of_a_bare_host() {
        let base_url = Url::parse("http://x.example").expect("a literal URL");
        assert!(is_same_url("http://x.example/", &base_url) && is_same_url("http://x.example", &base_url));
        for other in
            ["https://x.example", "http://x.example/oai", "http://x.example/?verb=Identify", "", "oai"]
        {
            assert!(!is_same_url(other, &base_url), "{other}");
        }
    }
}
