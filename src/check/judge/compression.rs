//! The rule for content codings: which ones Identify lists, and which ones the source uses.

use crate::check::exchange::{CheckRequest, CheckResponse, Received};
use crate::check::findings::{Findings, Verdict};
use crate::check::rules::Rule;

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
        let header = probed.content_encoding.as_deref().unwrap_or_default().to_ascii_lowercase();
        let codings = header.split(',').map(str::trim).filter(|coding| !["", "identity"].contains(coding));
        let codings: Vec<&str> = codings.collect();
        for coding in &codings {
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
        let Some((request, length)) = self.plain.as_ref().filter(|_| self.used.is_empty()) else { return };
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

/// The least length of a response that a server with compression compresses, in bytes. Servers skip short responses.
const COMPRESSED_BYTES_MIN: usize = 2 << 10;
