//! A request to a source that failed: the reason, whose fault it is, whether to retry, and a text that a
//! person can act on.

use oaimend_oai::named_enum;
use oaimend_repair::NotOai;
use oaimend_store::{LedgerError, MirrorError};
use std::fmt::{Display, Write as _};
use std::time::Duration;

/// Why a request to a source failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub reason: Reason,
    /// The event and the action against it, in printable ASCII, for operators. It quotes nothing that the source sent.
    pub details: String,
    /// The same for harvesters, without the parts that are `for_operators`.
    pub public_details: String,
    /// What the source sent, in printable ASCII and without secrets; empty if it does not matter. For operators only.
    pub evidence: String,
    /// When to retry, in seconds, 1 to 3600, if that is useful.
    pub retry_after_secs: u64,
    /// Whether a retry is useful.
    pub outlook: Outlook,
    /// The status of the source, if there was a response.
    pub received_status: Option<u16>,
    /// The `Retry-After` of the source, in seconds.
    pub requested_wait_secs: Option<u64>,
}

/// Whether a retry of a failed request is useful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The failure may pass by itself.
    MayPass,
    /// The failure lasts until a person removes its cause.
    Permanent,
    /// The failure was temporary at first, and has lasted this long.
    OldOutage(Duration),
}

named_enum! {
    /// The kinds of failure: label of the metric, and error type of RFC 9209.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Reason {
        /// The name of the source cannot be resolved.
        Dns = "dns",
        /// The source, or the target of its redirect, has an address that is not public.
        AddressRefused = "address-refused",
        /// The connection was refused.
        ConnectionRefused = "connection-refused",
        /// No connection in time.
        ConnectionTimeout = "connection-timeout",
        /// The connection was closed or reset before a response.
        ConnectionLost = "connection-lost",
        /// The source's certificate is not valid.
        TlsCertificate = "tls-certificate",
        /// No agreement on TLS.
        TlsProtocol = "tls-protocol",
        /// The response is not HTTP.
        HttpProtocol = "http-protocol",
        /// The response took too long to begin or to continue.
        ResponseTimeout = "response-timeout",
        /// The response ended early.
        Incomplete = "incomplete",
        /// The page cannot be resumed: a repeated request returned a different page.
        NotResumable = "not-resumable",
        /// The limits of the source are used up, and there was no permit in time.
        Busy = "busy",
        /// The circuit breaker of the source is open.
        CircuitOpen = "circuit-open",
        /// A content coding of the response is broken.
        ContentCoding = "content-coding",
        /// The response is too long, or inflates too much.
        TooLarge = "too-large",
        /// A redirect that is not followed.
        Redirect = "redirect",
        /// An error status without an OAI-PMH body.
        Status = "status",
        /// A record could not be repaired, and the mapping wants the page to fail then.
        Unrepairable = "unrepairable",
        /// A record could not be quarantined.
        Quarantine = "quarantine",
        /// The ledger of tokens cannot be read.
        Ledger = "ledger",
        /// Another process of ours has taken over the ledger and the quarantine.
        TakenOver = "taken-over",
        /// The page is too long for an HTTP/1.0 client.
        SpoolFull = "spool-full",
        /// The file of a static repository cannot be read, or is not one.
        StaticFile = "static-file",
        /// A tape cannot be read, or its index is not the right one.
        TapeFile = "tape-file",
        /// The mapping cannot be used.
        Configuration = "configuration",
        /// The mirror has not harvested the repository completely yet.
        MirrorIncomplete = "mirror-incomplete",
        /// The store of the mirror cannot be read.
        Mirror = "mirror",
        /// The search index is being built for the first time, or too many searches wait.
        SearchBusy = "search-busy",
        /// The search index cannot be read.
        Search = "search";
        /// The body is not an OAI-PMH response.
        NotOai(NotOai),
    }
}

/// What follows from a kind of failure.
struct Policy {
    /// The proxy error type of RFC 9209, section 2.3.
    proxy_error: &'static str,
    /// The status of our response if a retry is useless.
    status: u16,
    /// Whether a retry is useful.
    outlook: Outlook,
    /// When to retry, in seconds, if the source does not say it.
    retry_after_secs: u64,
    /// The party that can remove the failure.
    fault: Fault,
}

/// A party that can remove a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Source,
    /// The source, and the mapping that does not accept what it sends.
    StrictMapping,
    OtherRequests,
    FirstHarvest,
    SearchIndex,
    Oaimend,
    Configuration,
    Request,
}

impl Fault {
    /// The party, for harvesters.
    const fn text(self) -> &'static str {
        match self {
            Self::Source => "the source's",
            Self::StrictMapping => "the source's; the mapping makes such a page fail (on_unrepairable)",
            Self::OtherRequests => "none; other requests use up the limits of the source",
            Self::FirstHarvest => "none; the first harvest of the mirror is not complete",
            Self::SearchIndex => "none; the search index is being built, or other searches use it",
            Self::Oaimend => "oaimend's, or that of its machine",
            Self::Configuration => "the configuration of oaimend",
            Self::Request => "the request's; HTTP/1.0 cannot carry a page of this length, HTTP/1.1 can",
        }
    }
}

impl Reason {
    /// The policy of each kind. There is no default, so that a new kind gets one too.
    const fn policy(self) -> Policy {
        use Outlook::{MayPass, Permanent};
        let (proxy_error, status, outlook, retry_after_secs, fault) = match self {
            Self::Dns => ("dns_error", 502, Permanent, 300, Fault::Source),
            Self::AddressRefused => ("destination_ip_prohibited", 502, Permanent, 300, Fault::Configuration),
            Self::ConnectionRefused => ("connection_refused", 502, MayPass, 30, Fault::Source),
            Self::ConnectionTimeout => ("connection_timeout", 504, MayPass, 60, Fault::Source),
            Self::ConnectionLost => ("connection_terminated", 502, MayPass, 60, Fault::Source),
            Self::TlsCertificate => ("tls_certificate_error", 502, Permanent, 300, Fault::Source),
            Self::TlsProtocol => ("tls_protocol_error", 502, Permanent, 300, Fault::Source),
            Self::HttpProtocol => ("http_protocol_error", 502, MayPass, 300, Fault::Source),
            Self::ResponseTimeout => ("http_response_timeout", 504, MayPass, 60, Fault::Source),
            Self::Incomplete | Self::NotResumable => {
                ("http_response_incomplete", 502, MayPass, 60, Fault::Source)
            }
            Self::Busy => ("destination_unavailable", 502, MayPass, 30, Fault::OtherRequests),
            Self::CircuitOpen => ("destination_unavailable", 502, MayPass, 60, Fault::Source),
            Self::ContentCoding => ("http_response_content_coding", 502, MayPass, 300, Fault::Source),
            Self::TooLarge => ("http_response_body_size", 502, Permanent, 300, Fault::Source),
            Self::Redirect => ("destination_unavailable", 502, Permanent, 300, Fault::Source),
            Self::Status | Self::NotOai(NotOai::UnknownError) => {
                ("destination_unavailable", 502, MayPass, 30, Fault::Source)
            }
            Self::NotOai(NotOai::StaticRepository | NotOai::Version1) => {
                ("destination_unavailable", 502, Permanent, 300, Fault::Source)
            }
            Self::NotOai(_) | Self::StaticFile => {
                ("destination_unavailable", 502, MayPass, 300, Fault::Source)
            }
            Self::Unrepairable => ("proxy_internal_error", 502, Permanent, 300, Fault::StrictMapping),
            Self::Quarantine | Self::Ledger | Self::Mirror | Self::Search | Self::TapeFile => {
                ("proxy_internal_error", 502, MayPass, 600, Fault::Oaimend)
            }
            Self::TakenOver => ("proxy_internal_error", 502, MayPass, 1, Fault::Oaimend),
            Self::SpoolFull => ("proxy_internal_error", 502, Permanent, 300, Fault::Request),
            Self::Configuration => ("proxy_configuration_error", 502, Permanent, 300, Fault::Configuration),
            Self::MirrorIncomplete => ("destination_unavailable", 502, MayPass, 300, Fault::FirstHarvest),
            Self::SearchBusy => ("destination_unavailable", 502, MayPass, 5, Fault::SearchIndex),
        };
        Policy { proxy_error, status, outlook, retry_after_secs, fault }
    }

    /// Whether a retry of this kind of failure is useful, after a response with that status.
    const fn outlook(self, received_status: Option<u16>) -> Outlook {
        match (self, received_status) {
            // A source may forbid or limit requests for a limited time.
            (Self::Status, Some(403 | 408 | 425 | 429)) => Outlook::MayPass,
            (Self::Status, Some(400..=499 | 501 | 505)) => Outlook::Permanent,
            (reason, _) => reason.policy().outlook,
        }
    }

    /// Whether the source has failed. Other failures are those of oaimend, of its configuration, or of a request.
    pub const fn is_of_source(self) -> bool {
        matches!(self.policy().fault, Fault::Source | Fault::StrictMapping)
    }
}

impl Failure {
    /// A failure with the wait of its kind. Parts of the details can be `for_operators`.
    pub fn new(reason: Reason, details: impl AsRef<str>) -> Self {
        let [details, public_details] = split_readers(details.as_ref());
        Self {
            reason,
            details: printable(details.as_bytes(), DETAILS_CHARS_MAX),
            public_details: printable(public_details.as_bytes(), DETAILS_CHARS_MAX),
            evidence: String::new(),
            retry_after_secs: reason.policy().retry_after_secs,
            outlook: reason.outlook(None),
            received_status: None,
            requested_wait_secs: None,
        }
    }

    /// The same failure with what the source sent. The caller has masked secrets.
    #[must_use]
    pub fn with_evidence(mut self, evidence: impl AsRef<str>) -> Self {
        self.evidence = printable(evidence.as_ref().as_bytes(), DETAILS_CHARS_MAX);
        self
    }

    /// The details with the evidence, for the log and the admin listener.
    pub fn details_for_operators(&self) -> String {
        if self.evidence.is_empty() {
            self.details.clone()
        } else {
            format!("{}; {}", self.details, self.evidence)
        }
    }

    /// The details as a part of the details of another failure.
    pub fn quoted_details(&self) -> String {
        if self.details == self.public_details {
            self.details.clone()
        } else {
            for_operators(&self.details, &self.public_details)
        }
    }

    /// The same failure after a response with that status; `retry_after_secs` is the `Retry-After` of the
    /// source.
    #[must_use]
    pub fn after_status(mut self, status: u16, retry_after_secs: Option<u64>) -> Self {
        self.received_status = Some(status);
        self.outlook = self.reason.outlook(Some(status));
        self.requested_wait_secs = retry_after_secs;
        if let Some(seconds) = retry_after_secs {
            self.retry_after_secs = seconds.clamp(1, 3600);
        }
        self
    }

    /// The same failure, for harvesters that retry after this time at the earliest.
    #[must_use]
    pub fn retried_after(mut self, time: Duration) -> Self {
        let secs = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        self.retry_after_secs = self.retry_after_secs.max(secs).clamp(1, 3600);
        self
    }

    /// The same failure, with the reason why the mirror cannot answer in place of the source.
    #[must_use]
    pub fn with_details_of(mut self, of_mirror: &Self) -> Self {
        self.details = format!("{}; {}", self.details, of_mirror.details);
        self.public_details = format!("{}; {}", self.public_details, of_mirror.public_details);
        self
    }

    /// The status of our response: 503 asks for a retry, 502 and 504 do not.
    pub const fn status(&self) -> u16 {
        match self.outlook {
            Outlook::MayPass => 503,
            Outlook::Permanent | Outlook::OldOutage(_) => self.reason.policy().status,
        }
    }

    /// The value of `Retry-After`; none if a retry is useless.
    pub fn retry_after(&self) -> Option<u64> {
        (self.outlook == Outlook::MayPass).then_some(self.retry_after_secs)
    }

    /// The text of our response: what happened, whose fault it is, whether to retry, what to do now.
    pub fn text(&self) -> String {
        let (details, fault, secs) =
            (&self.public_details, self.reason.policy().fault.text(), self.retry_after_secs);
        let (retry, now) = match self.outlook {
            Outlook::MayPass => {
                (format!("yes, in {secs} seconds"), "repeat the same request then; nothing is lost")
            }
            Outlook::Permanent => (
                "no; this lasts until a person removes the cause".to_owned(),
                "end this harvest, and tell the operator of this proxy",
            ),
            Outlook::OldOutage(age) => (
                format!("no; this has failed for {} minutes", age.as_secs() / 60),
                "end this harvest, and continue later from the last resumptionToken or datestamp",
            ),
        };
        format!("{details}\nFault: {fault}.\nRetry: {retry}.\nNow: {now}.\n")
    }

    /// The member of a `Proxy-Status` header (RFC 9209).
    pub fn proxy_status(&self) -> String {
        let mut member = format!("oaimend; error={}", self.reason.policy().proxy_error);
        if let Some(status) = self.received_status {
            let _ = write!(member, "; received-status={status}");
        }
        member.push_str("; details=\"");
        for character in self.public_details.chars() {
            if matches!(character, '"' | '\\') {
                member.push('\\');
            }
            member.push(character);
        }
        member.push('"');
        member
    }
}

impl From<MirrorError> for Failure {
    fn from(error: MirrorError) -> Self {
        let reason = if matches!(error, MirrorError::Closed) { Reason::TakenOver } else { Reason::Mirror };
        Self::new(reason, format!("the mirror cannot be read: {error}"))
    }
}

/// The beginning of a text of the source, as printable ASCII: safe in a header, in a log and on a terminal.
/// Each run of other bytes becomes one blank.
pub fn printable(text_of_source: &[u8], chars_max: usize) -> String {
    let mut text = String::new();
    let mut pending_blank = false;
    for &byte in text_of_source {
        if !byte.is_ascii_graphic() {
            pending_blank = true;
            continue;
        }
        if text.len() + usize::from(pending_blank) >= chars_max {
            text.push_str("...");
            break;
        }
        if pending_blank && !text.is_empty() {
            text.push(' ');
        }
        pending_blank = false;
        text.push(char::from(byte));
    }
    text
}

/// A part of the details of a failure that only operators see, such as the address of a source, and the text that
/// harvesters see in its place.
pub fn for_operators(text: impl Display, public: impl Display) -> String {
    format!("{OPERATORS}{text}{PUBLIC}{public}{ALL_READERS}")
}

/// The part of a text for harvesters, without its parts `for_operators`.
pub fn for_harvesters(marked: &str) -> String {
    let [_, public] = split_readers(marked);
    public
}

/// The marks of `for_operators`. No text of a failure contains them, because it is printable.
const OPERATORS: char = '\u{2}';
const PUBLIC: char = '\u{3}';
const ALL_READERS: char = '\u{4}';

/// The texts of marked details: for operators, and for harvesters.
fn split_readers(marked: &str) -> [String; 2] {
    let [mut for_operators, mut public] = [String::new(), String::new()];
    let (mut is_for_operators, mut is_public) = (true, true);
    for character in marked.chars() {
        match character {
            OPERATORS => (is_for_operators, is_public) = (true, false),
            PUBLIC => (is_for_operators, is_public) = (false, true),
            ALL_READERS => (is_for_operators, is_public) = (true, true),
            _ => {
                for_operators.extend(is_for_operators.then_some(character));
                public.extend(is_public.then_some(character));
            }
        }
    }
    [for_operators, public]
}

/// Longest `details`, in characters.
const DETAILS_CHARS_MAX: usize = 600;

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let reason = match error {
            LedgerError::Closed => Reason::TakenOver,
            LedgerError::Database(_) | LedgerError::Stopped(_) => Reason::Ledger,
        };
        Self::new(reason, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_read_by_its_name() {
        assert_eq!(Reason::ALL.first(), Some(&Reason::Dns));
        assert!(NotOai::ALL.iter().all(|why| Reason::ALL.contains(&Reason::NotOai(*why))));
        for reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.name()), Some(*reason));
        }
    }

    #[test]
    fn texts_of_a_source_are_shortened_and_made_printable() {
        assert_eq!(
            printable(b"  <h1>\x1b[31mno\r\n\r\nX-Evil: 1\x00 caf\xC3\xA9 end", 100),
            "<h1> [31mno X-Evil: 1 caf end"
        );
        assert_eq!(printable(b"abcdef", 4), "abcd...");
        assert_eq!(printable(b"abc def", 4), "abc...");
        assert_eq!(printable(b"", 4), "");
    }

    #[test]
    fn parts_for_operators_are_not_public() {
        let inner = for_operators("10.0.0.7", "its server");
        let name = format!("the source of x{}", for_operators(" (http://10.0.0.7/)", ""));
        let failure = Failure::new(Reason::Status, format!("{name}: {inner} is down; wait"));
        assert_eq!(failure.details, "the source of x (http://10.0.0.7/): 10.0.0.7 is down; wait");
        assert_eq!(failure.public_details, "the source of x: its server is down; wait");
        let both = failure.with_details_of(&Failure::new(Reason::Mirror, format!("{inner}!")));
        for text in [both.text(), both.proxy_status()] {
            assert!(text.contains("its server!") && !text.contains("10.0.0.7"), "{text}");
        }
    }

    #[test]
    fn proxy_status_is_one_member_of_a_structured_field() {
        let failure =
            Failure::new(Reason::Status, "it said \"no\" and \\ and\nmore").after_status(500, Some(9999));
        assert_eq!(
            failure.proxy_status(),
            r#"oaimend; error=destination_unavailable; received-status=500; details="it said \"no\" and \\ and more""#
        );
        assert_eq!(failure.retry_after_secs, 3600);
        assert_eq!(Failure::new(Reason::Dns, "").after_status(200, Some(0)).retry_after_secs, 1);
    }

    #[test]
    fn only_temporary_failures_ask_for_a_retry() {
        let status = |code| Failure::new(Reason::Status, "no").after_status(code, Some(7));
        for code in [403, 408, 429, 500, 502, 503, 504, 521] {
            assert_eq!((status(code).status(), status(code).retry_after()), (503, Some(7)), "{code}");
        }
        for code in [400, 401, 404, 410, 414, 501] {
            assert_eq!((status(code).status(), status(code).retry_after()), (502, None), "{code}");
        }
        for reason in [Reason::Dns, Reason::TlsCertificate, Reason::Configuration] {
            assert_eq!(Failure::new(reason, "").status(), 502, "{reason:?}");
        }
        let outlook = Outlook::OldOutage(Duration::from_secs(930));
        let silent = Failure { outlook, ..Failure::new(Reason::ResponseTimeout, "silent") };
        assert_eq!((silent.status(), silent.retry_after()), (504, None));
        assert!(silent.text().contains("Retry: no; this has failed for 15 minutes."), "{}", silent.text());
    }
}
