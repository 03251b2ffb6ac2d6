//! Composes plain text mails, and hands them to a mail server.
//!
//! Invariant: headers contain checked addresses and texts of oaimend only. All texts of sources are in the body, which is
//! encoded if it contains anything but lines of ASCII.

use super::event::{Event, to_datestamp};
use crate::config::{MailTarget, MailTls};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::address::{Address, Envelope};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use oaimend_base::clock::Clock;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// Maximum number of events in one mail.
pub(crate) const MAIL_EVENTS_MAX: usize = 100;
/// Longest wait for the mail server to accept a mail.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Longest line of a mail, in bytes, by RFC 5322.
const LINE_BYTES_MAX: usize = 998;
/// Length of a line of base64, in bytes, by RFC 2045.
const ENCODED_LINE_BYTES: usize = 76;

/// A plain text mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    subject: String,
    text: String,
    reply_to: Option<String>,
    /// The part of the Message-ID that no other mail has.
    id: u128,
}

/// Why the mail server has not accepted a mail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct MailError {
    /// What happened, in one line.
    pub text: String,
    /// Whether the mail server may have accepted it, although its response is missing.
    pub may_have_arrived: bool,
}

/// The text of a mail about events, and its subject.
pub fn describe(events: &[Event], public_url: &str) -> (String, String) {
    let subject = match events {
        [event] if event.repository.is_empty() => format!("[oaimend] {}", event.name()),
        [event] => format!("[oaimend] {}: {}", event.repository, event.name()),
        events => format!("[oaimend] {} events", events.len()),
    };
    let mut text = format!("oaimend at {public_url} reports:\n");
    for event in events {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{}  {}\n{}\n", to_datestamp(event.at_secs), event.name(), event.summary());
        let remedy = event.remedy();
        if !remedy.is_empty() {
            let _ = writeln!(text, "{remedy}");
        }
    }
    (subject, text)
}

impl Mail {
    /// A mail with a random Message-ID, which is the same for all attempts to send it. `subject` is one line of printable
    /// ASCII. `text` has `\n` between its lines.
    pub fn new(subject: String, text: String) -> Self {
        Self { subject, text, reply_to: None, id: fastrand::u128(..) }
    }

    /// The same mail, with this address for answers, as [`read_mailbox`](crate::config::read_mailbox) accepts it.
    #[must_use]
    pub(crate) fn with_reply_to(self, address: &str) -> Self {
        Self { reply_to: Some(address.to_owned()), ..self }
    }

    /// The message as RFC 5322 has it.
    fn message(&self, from: &str, to: &str, now: SystemTime) -> Vec<u8> {
        let (_, domain) = from.split_once('@').unwrap_or_default();
        let mut message = String::new();
        let date = httpdate::fmt_http_date(now).replace("GMT", "+0000");
        for (name, value) in [
            ("Date", date.as_str()),
            ("From", from),
            ("To", to),
            ("Reply-To", self.reply_to.as_deref().unwrap_or_default()),
            ("Subject", &self.subject),
            ("Message-ID", &format!("<{:032x}@{domain}>", self.id)),
            ("Auto-Submitted", "auto-generated"),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
        ] {
            if value.is_empty() {
                continue;
            }
            // Addresses and subjects are legal. A line break would add a header.
            let value = value.replace(|c: char| !(c == ' ' || c.is_ascii_graphic()), " ");
            let _ = write!(message, "{name}: {value}\r\n");
        }
        let is_plain =
            |line: &str| line.len() <= LINE_BYTES_MAX && line.bytes().all(|b| (b' '..=b'~').contains(&b));
        let text = self.text.replace("\r\n", "\n").replace('\n', "\r\n");
        if self.text.split('\n').all(is_plain) {
            message.push_str("Content-Transfer-Encoding: 7bit\r\n\r\n");
            message.push_str(&text);
            return message.into_bytes();
        }
        message.push_str("Content-Transfer-Encoding: base64\r\n\r\n");
        let encoded = STANDARD.encode(text);
        for at in (0..encoded.len()).step_by(ENCODED_LINE_BYTES) {
            let end = encoded.len().min(at + ENCODED_LINE_BYTES);
            message.push_str(encoded.get(at..end).unwrap_or_default());
            message.push_str("\r\n");
        }
        message.into_bytes()
    }

    /// Tries once to hand the mail to the mail server of `target`. `to` is an address as
    /// `read_mailbox` accepts it.
    ///
    /// # Errors
    ///
    /// The mail server has not accepted it.
    pub async fn send(&self, to: &str, target: &MailTarget, clock: &dyn Clock) -> Result<(), MailError> {
        let message = self.message(&target.from, to, clock.now());
        tokio::select! {
            sent = hand_over(to, target, &message) => sent,
            () = clock.deadline(TIMEOUT) => Err(MailError { text: format!("not accepted within {TIMEOUT:?}"), may_have_arrived: true }),
        }
    }
}

async fn hand_over(to: &str, target: &MailTarget, message: &[u8]) -> Result<(), MailError> {
    let not_sent = |text: String| MailError { text, may_have_arrived: false };
    let address = |text: &str| text.parse::<Address>().map_err(|error| not_sent(format!("{text}: {error}")));
    let (from, to) = (address(&target.from)?, address(to)?);
    let envelope = Envelope::new(Some(from), vec![to]).map_err(|error| not_sent(error.to_string()))?;
    let mut connection = connect(target).await.map_err(not_sent)?;
    // Only a response of the mail server says that it has not accepted the mail.
    connection.send(&envelope, message).await.map_err(|error| MailError {
        text: explain(&error),
        may_have_arrived: !(error.is_transient() || error.is_permanent() || error.is_client()),
    })?;
    // The mail is accepted, whatever follows.
    let _ = connection.quit().await;
    Ok(())
}

/// Connects to the mail server, encrypts the connection and signs in, as the target says. Never falls back to less.
async fn connect(target: &MailTarget) -> Result<AsyncSmtpConnection, String> {
    let hello = ClientId::default();
    let explained = |error| explain(&error);
    let tls = match target.tls {
        MailTls::Off => None,
        MailTls::StartTls | MailTls::Implicit => Some(tls_parameters(target)?),
    };
    let (at_once, later) = if target.tls == MailTls::Implicit { (tls, None) } else { (None, tls) };
    let connected = AsyncSmtpConnection::connect_tokio1(&target.smtp, Some(TIMEOUT), &hello, at_once, None);
    let mut connection = connected.await.map_err(explained)?;
    if let Some(tls) = later {
        connection.starttls(tls, &hello).await.map_err(explained)?;
    }
    if let Some(credentials) = &target.credentials {
        let credentials = Credentials::new(credentials.user().to_owned(), credentials.password().to_owned());
        connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await.map_err(explained)?;
    }
    Ok(connection)
}

fn tls_parameters(target: &MailTarget) -> Result<TlsParameters, String> {
    let mut tls = TlsParameters::builder(target.host().to_owned());
    if let Some(file) = &target.ca_file {
        let unusable = |problem: String| format!("ca_file {}: {problem}", file.display());
        let pem = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
        tls =
            tls.add_root_certificate(Certificate::from_pem(&pem).map_err(|error| unusable(explain(&error)))?);
    }
    tls.build_rustls().map_err(|error| explain(&error))
}

/// An error of the client with its cause, in one line.
fn explain(error: &lettre::transport::smtp::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let _ = write!(text, ": {cause}");
        next = cause.source();
    }
    text.replace(|c: char| c.is_control(), " ")
}
