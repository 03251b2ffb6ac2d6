//! The rules for content codings: which ones Identify lists, which ones the source uses, and what its headers say.

use crate::exchange::{CheckRequest, CheckResponse, Received};
use crate::findings::{Findings, Verdict};
use crate::rules::Rule;

/// The content codings of the responses so far.
#[derive(Debug, Default)]
pub(crate) struct CodingsSeen {
    /// The first response with each coding, in lower case.
    used: Vec<(CheckRequest, String)>,
    /// The longest response without a coding, and its length in bytes.
    plain: Option<(CheckRequest, usize)>,
}

impl CodingsSeen {
    /// Notes the coding of a response.
    pub(crate) fn note(&mut self, response: &CheckResponse) {
        let Received::Complete(probed) = &response.received else { return };
        let codings = &probed.codings;
        for coding in codings {
            if self.used.iter().all(|(_, known)| known != coding) {
                self.used.push((response.request.clone(), (*coding).to_owned()));
            }
        }
        let length = probed.body.len();
        let is_longest = self.plain.as_ref().is_none_or(|(_, longest)| length > *longest);
        if codings.is_empty() && probed.status == 200 && is_longest {
            self.plain = Some((response.request.clone(), length));
        }
    }

    /// Judges the codings of all responses. `announced` are those of Identify, in lower case.
    ///
    /// Harvesters decode a coding that is not announced; so it is only advice to announce it.
    pub(crate) fn judge(&self, announced: &[String], findings: &mut Findings) {
        let listed = if announced.is_empty() { "none".to_owned() } else { announced.join(", ") };
        for (request, coding) in &self.used {
            let verdict = if announced.contains(coding) { Verdict::Holds } else { Verdict::Advice };
            let received = format!("a response in {coding}; Identify lists {listed}");
            findings.record(Rule::Compression, verdict, request, &received);
        }
        let (Some((request, length)), true) = (&self.plain, self.used.is_empty()) else { return };
        let is_announced = announced.iter().any(|coding| coding != "identity");
        let verdict = match (is_announced, *length >= COMPRESSED_BYTES_MIN) {
            (false, _) => Verdict::Holds,
            (true, true) => Verdict::Fails,
            (true, false) => Verdict::Unjudged,
        };
        let received = format!("{length} bytes without compression; Identify lists {listed}");
        findings.record(Rule::Compression, verdict, request, &received);
    }
}

/// Judges whether the header of a response names the codings of its body.
pub(crate) fn judge_header(response: &CheckResponse, findings: &mut Findings) {
    let Received::Complete(probed) = &response.received else { return };
    if probed.body.is_empty() && probed.codings.is_empty() {
        return;
    }
    let header = probed.content_encoding.as_deref().unwrap_or_default().to_ascii_lowercase();
    let named = header.split(',').map(str::trim).filter(|coding| !["", "identity"].contains(coding));
    // The header names the codings in the order of their application.
    let named = named.rev().map(|coding| coding.strip_prefix("x-").unwrap_or(coding));
    let holds = named.eq(probed.codings.iter().copied());
    let body = if probed.codings.is_empty() { "plain".to_owned() } else { probed.codings.join(" in ") };
    let header = if header.is_empty() { "absent".to_owned() } else { format!("\"{header}\"") };
    findings.judge(
        Rule::ContentEncoding,
        holds,
        response,
        format!("Content-Encoding is {header}, the body is {body}"),
    );
}

/// The least length of a response that a server with compression compresses, in bytes. Servers skip short responses.
const COMPRESSED_BYTES_MIN: usize = 2 << 10;
