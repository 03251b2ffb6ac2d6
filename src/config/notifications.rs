//! The `[notifications]` table of `oaimend.toml`: which events operators are told of, by webhook and by mail.
//!
//! Invariant: no message, log line or `Debug` output contains the secret or the path of the webhook, or the password of
//! the mail server.

use super::credentials::read_credentials;
use super::file::Table;
use super::identify::read_email;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oaimend_base::credentials::Credentials;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::{Position, Url};

/// When an event begins, and who is told.
#[derive(Clone, Debug, PartialEq)]
pub struct NotificationPolicy {
    /// How long a source fails before it is down.
    pub source_down_after: Duration,
    /// The share of `quarantine_bytes_max` from which on a quarantine is nearly full.
    pub quarantine_share: f64,
    /// The shortest time between two events about lost records of one repository.
    pub records_lost_interval: Duration,
    /// The webhook; `None`: there is none.
    pub webhook: Option<WebhookTarget>,
    /// The mail address; `None`: no mail is sent.
    pub mail: Option<MailTarget>,
}

/// A webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookTarget {
    /// Where events are sent. Its path and query may be secret.
    pub url: Url,
    /// The key of the signatures.
    pub key: WebhookKey,
    /// The file with the key. A change of it is a change of the settings.
    pub(super) secret_file: PathBuf,
    /// A file of PEM certificates that may sign the certificate of the server, in addition to the usual ones.
    pub ca_file: Option<PathBuf>,
}

/// The key of the signatures of a webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookKey(Vec<u8>);

/// A mail address, and the mail server on the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailTarget {
    /// The recipient.
    pub to: String,
    /// The sender.
    pub from: String,
    /// Host and port of the mail server, such as `127.0.0.1:25`.
    pub smtp: String,
    /// How the connection to the mail server is encrypted.
    pub tls: MailTls,
    /// A file of PEM certificates that may sign the certificate of the mail server, in addition to the usual ones.
    pub ca_file: Option<PathBuf>,
    /// User and password for the mail server. They are sent by TLS only.
    pub credentials: Option<Credentials>,
    /// How long events are gathered for one mail.
    pub gather: Duration,
}

/// How the connection to the mail server is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MailTls {
    /// Not at all: for a mail server on this machine or in this network.
    #[default]
    Off,
    /// By STARTTLS (RFC 3207), usually on port 587. Without it no mail is sent.
    StartTls,
    /// From the start (RFC 8314), usually on port 465.
    Implicit,
}

impl Default for NotificationPolicy {
    fn default() -> Self {
        Self {
            source_down_after: Duration::from_secs(900),
            quarantine_share: 0.8,
            records_lost_interval: Duration::from_secs(3_600),
            webhook: None,
            mail: None,
        }
    }
}

/// The longest time that can be configured, in seconds: 30 days.
const SECS_MAX: u64 = 2_592_000;
/// The longest time for which events are gathered, in seconds.
const GATHER_SECS_MAX: u64 = 3_600;
/// The length of a key, in bytes, as the convention Standard Webhooks requires it.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// What stands before the key in its file.
const KEY_PREFIX: &str = "whsec_";

impl NotificationPolicy {
    /// Reads the `[notifications]` table. Relative paths start at `folder`.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>, folder: &Path) {
        table.set_seconds("source_down_after_secs", 1..=SECS_MAX, &mut self.source_down_after);
        let read_share = |share: f64| (share > 0.0 && share <= 1.0).then_some(share);
        if let Some(share) = table.read_float("quarantine_share", "a number above 0, up to 1", read_share) {
            self.quarantine_share = share;
        }
        table.set_seconds("records_lost_interval_secs", 60..=SECS_MAX, &mut self.records_lost_interval);
        let webhook = table.take_table("webhook");
        self.webhook = WebhookTarget::read(webhook, table.has_key("webhook"), folder);
        let mail = table.take_table("mail");
        self.mail = MailTarget::read(mail, table.has_key("mail"), folder);
        table.finish();
    }

    /// Whether anybody is told of events.
    pub const fn has_target(&self) -> bool {
        self.webhook.is_some() || self.mail.is_some()
    }
}

impl WebhookTarget {
    fn read(mut table: Table<'_, '_>, is_present: bool, folder: &Path) -> Option<Self> {
        let url = table.read_parsed("url", read_url);
        let secret_file = table.read_string("secret_file");
        let ca_file = table.read_string("ca_file").map(|text| folder.join(text.value));
        if is_present {
            for (key, what) in
                [("url", "the address of the receiver"), ("secret_file", "the file of the key")]
            {
                if !table.has_key(key) {
                    table.report_missing(format!("notifications.webhook has no {key}; expected {what}"));
                }
            }
        }
        let key = secret_file.and_then(|file| {
            let path = folder.join(&file.value);
            match WebhookKey::read(&path) {
                Ok(key) => Some((key, path)),
                Err(problem) => {
                    let file_name = file.value.escape_debug();
                    let text = format!("notifications.webhook.secret_file = \"{file_name}\" {problem}");
                    table.report_fault(file.span, text);
                    None
                }
            }
        });
        table.finish();
        let (key, secret_file) = key?;
        Some(Self { url: url?, key, secret_file, ca_file })
    }

    /// The address for people: scheme, host and port. Path and query may be secret.
    pub fn shown_url(&self) -> &str {
        &self.url[Position::BeforeScheme..Position::BeforePath]
    }
}

impl WebhookKey {
    /// Reads the file of a key. The error text names the expected content and never the found one.
    fn read(path: &Path) -> Result<Self, String> {
        let expected = "expected a file with whsec_ and 24 to 64 random bytes in base64, as from: \
                        (printf whsec_; head -c 32 /dev/urandom | base64) > FILE";
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}; {expected}"))?;
        let key = text.trim().strip_prefix(KEY_PREFIX).and_then(|encoded| STANDARD.decode(encoded).ok());
        let key = key.filter(|key| KEY_BYTES.contains(&key.len()));
        key.map(Self).ok_or_else(|| format!("contains no key; {expected}"))
    }

    /// The bytes of the key; use them only for signatures.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WebhookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookTarget").field("url", &self.shown_url()).finish_non_exhaustive()
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookKey(***)")
    }
}

impl MailTarget {
    fn read(mut table: Table<'_, '_>, is_present: bool, folder: &Path) -> Option<Self> {
        let to = table.read_parsed("to", read_mailbox);
        let from = table.read_parsed("from", read_mailbox);
        let smtp = table.read_parsed("smtp", read_mail_server);
        let tls = table.read_parsed("tls", read_mail_tls).unwrap_or_default();
        let credentials = read_credentials(&mut table, folder);
        let ca_file = table.read_string("ca_file").map(|text| folder.join(text.value));
        let mut gather = Duration::from_secs(60);
        table.set_seconds("gather_secs", 0..=GATHER_SECS_MAX, &mut gather);
        if is_present {
            for (key, what) in [("to", "the address of the recipient"), ("from", "the address of the sender")]
            {
                if !table.has_key(key) {
                    table.report_missing(format!("notifications.mail has no {key}; expected {what}"));
                }
            }
        }
        for key in ["user", "password_file", "ca_file"] {
            if tls == MailTls::Off && table.has_key(key) {
                let problem = "needs TLS; expected tls = \"starttls\" or \"implicit\" beside it";
                table.report_missing(format!("notifications.mail.{key} {problem}"));
            }
        }
        if tls != MailTls::Off && !table.has_key("smtp") {
            let problem = "needs smtp; expected the mail server, such as \"smtp.example.org:587\"";
            table.report_missing(format!("notifications.mail.tls {problem}"));
        }
        table.finish();
        let smtp = smtp.unwrap_or_else(|| "127.0.0.1:25".to_owned());
        Some(Self { to: to?, from: from?, smtp, tls, ca_file, credentials, gather })
    }

    /// The host of the mail server, which its certificate names.
    pub fn host(&self) -> &str {
        let (host, _) = self.smtp.rsplit_once(':').unwrap_or((&self.smtp, ""));
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }
}

/// Reads one mail address without a name. No address that passes can end a header, or name a second recipient. A mail
/// server that passes it to a program cannot read it as an option (`-f@example.org`), a command (`|sh@example.org`) or a file. The
/// error text names the expected value.
pub(crate) fn read_mailbox(text: &str) -> Result<String, String> {
    let address = read_email(text)?;
    let has_one_at = address.bytes().filter(|&byte| byte == b'@').count() == 1;
    if !has_one_at || address.contains(['<', '>', '(', ')', '[', ']', ',', ';', ':', '\\', '"']) {
        return Err(
            "is not one mail address; expected one such as \"oai@example.org\", without a name".to_owned()
        );
    }
    let has_odd_start = |part: &str| part.starts_with(['-', '/']);
    if address.split('@').any(has_odd_start) || address.contains(['|', '`']) {
        return Err(
            "looks like an option, a command or a file; expected a mail address such as \"oai@example.org\""
                .to_owned(),
        );
    }
    Ok(address)
}

fn read_url(text: &str) -> Result<Url, String> {
    let problem = "is not the URL of a webhook; expected one such as \"https://hooks.example.org/oaimend\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("{problem} (http or https, with a host)"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{problem} (without user and password; the signature authenticates oaimend)"));
    }
    Ok(url)
}

fn read_mail_server(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let is_port = parts.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
    if is_port && text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains('/') {
        return Ok(text.to_owned());
    }
    Err("is not a mail server; expected a host and a port such as \"127.0.0.1:25\"".to_owned())
}

fn read_mail_tls(text: &str) -> Result<MailTls, String> {
    match text {
        "off" => Ok(MailTls::Off),
        "starttls" => Ok(MailTls::StartTls),
        "implicit" => Ok(MailTls::Implicit),
        _ => Err("is not known; expected \"off\", \"starttls\" or \"implicit\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailbox_is_one_address_without_header_syntax() {
        for text in ["oai@example.org", "o-a/i+x_!%@ex-ample.org"] {
            assert_eq!(read_mailbox(text).as_deref(), Ok(text));
        }
        for text in [
            "a@example.org,b@example.org",
            "a@example.org;b.c",
            "<a@example.org>",
            "a@example.org\r\nBcc:b@example.org",
            "a@example.org\nx",
            "\"a b\"@example.org",
            "a@[127.0.0.1]",
            "a b@example.org",
            "@example.org",
            "ä@example.org",
            "-oQ/tmp@example.org",
            "-f@example.org",
            "oai@-example.org",
            "|sh@example.org",
            "oai|sh@example.org",
            "`id`@example.org",
            "/var/mail/x@example.org",
        ] {
            assert!(read_mailbox(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn secrets_of_a_webhook_are_not_printed() {
        let url = Url::parse("https://hooks.example.org:8443/s3cret?token=s3cret").expect("a literal URL");
        let key = WebhookKey(b"s3cret".to_vec());
        let target = WebhookTarget { url, key, secret_file: PathBuf::new(), ca_file: None };
        assert_eq!(target.shown_url(), "https://hooks.example.org:8443");
        let printed = format!("{target:?} {:?}", target.key);
        assert!(!printed.contains("s3cret") && !printed.contains("115"), "{printed}");
    }
}
