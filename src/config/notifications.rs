//! The `[notifications]` table of `oaimend.toml`: which events operators are told of, by webhook and by mail.
//!
//! Invariant: no message, log line or `Debug` output contains the secret or the path of the webhook, or the password of
//! the mail server.

use super::credentials;
use super::identify::read_email;
use super::keys::{Decimals, Keys, Table, declare, file, named, path, seconds, secret, string};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oaimend_base::credentials::Credentials;
use oaimend_oai::named_enum;
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

named_enum! {
    /// How the connection to the mail server is encrypted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum MailTls {
        /// Not at all: for a mail server on this machine or in this network.
        #[default]
        Off = "off",
        /// By STARTTLS (RFC 3207), usually on port 587. Without it no mail is sent.
        StartTls = "starttls",
        /// From the start (RFC 8314), usually on port 465.
        Implicit = "implicit",
    }
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
    /// The keys of the table. Relative paths start at `folder`.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>, folder: &Path) {
        declare! { keys:
            /// How long a source fails before it is down. The last failure must be this long after the
            /// first one, without a success in between.
            source_down_after_secs: seconds(1..=SECS_MAX) => self.source_down_after,
            /// The share of `limits.quarantine_bytes_max` from which on a quarantine is nearly full.
            quarantine_share: Decimals::AboveUpTo(0.0, 1.0) => self.quarantine_share,
            /// The shortest time between two events about lost records of one repository.
            records_lost_interval_secs: seconds(60..=SECS_MAX) => self.records_lost_interval,
        }
        keys.table("webhook", "The receiver of events.", |keys| {
            WebhookTarget::declare(&mut self.webhook, keys, folder);
        });
        keys.table("mail", "The recipient of events, and the mail server.", |keys| {
            MailTarget::declare(&mut self.mail, keys, folder);
        });
    }

    /// Whether anybody is told of events.
    pub const fn has_target(&self) -> bool {
        self.webhook.is_some() || self.mail.is_some()
    }
}

impl WebhookTarget {
    fn declare(target: &mut Option<Self>, keys: &mut Keys<'_, '_>, folder: &Path) {
        let (mut url, mut key, mut ca_file) = (None, None, None);
        declare! { keys:
            /// Where events are sent by POST. Private addresses are allowed. Redirects are not followed. Logs and
            /// messages show the host and the port only.
            url: secret("URL", read_url) => url,
            /// File with the key of the signatures: `whsec_`, and 24 to 64 random bytes in base64.
            secret_file: file(folder, |path| Ok((WebhookKey::read(&path)?, path))) => key,
            /// PEM file with certificates that may sign the certificate of the server, in addition to the usual
            /// ones.
            ca_file: path("file", folder) => ca_file,
        }
        keys.require("url", "notifications.webhook has no url; expected the address of the receiver");
        keys.require("secret_file", "notifications.webhook has no secret_file; expected the file of the key");
        let join = |(url, (key, secret_file))| Self { url, key, secret_file, ca_file };
        *target = url.zip(key).map(join);
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
    fn declare(target: &mut Option<Self>, keys: &mut Keys<'_, '_>, folder: &Path) {
        let (mut to, mut from, mut smtp) = (None, None, "127.0.0.1:25".to_owned());
        let (mut tls, mut credentials, mut ca_file) = (MailTls::default(), None, None);
        let mut gather = Duration::from_secs(60);
        let mailbox = || string("mail address", read_mailbox);
        declare! { keys:
            /// The recipient: one address, without a name.
            to: mailbox() => to,
            /// The sender.
            from: mailbox() => from,
            /// The mail server. Required with `tls`.
            smtp: string("host and port", read_mail_server) => smtp,
            /// How the connection is encrypted: not at all, by STARTTLS (usually port 587), or from the start
            /// (usually port 465).
            tls: named() => tls,
        }
        let meaning = "The user of the mail server, by PLAIN or LOGIN. Requires `tls`.";
        credentials::declare(&mut credentials, keys, folder, meaning);
        declare! { keys:
            /// PEM file with certificates that may sign the certificate of the mail server, in addition to the
            /// usual ones. Requires `tls`.
            ca_file: path("file", folder) => ca_file,
            /// How long events are gathered for one mail.
            gather_secs: seconds(0..=GATHER_SECS_MAX) => gather,
        }
        keys.require("to", "notifications.mail has no to; expected the address of the recipient");
        keys.require("from", "notifications.mail has no from; expected the address of the sender");
        if let Some(table) = keys.reading() {
            check_tls(table, tls);
        }
        let join = |(to, from)| Self { to, from, smtp, tls, ca_file, credentials, gather };
        *target = to.zip(from).map(join);
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

/// Reports keys that need TLS where it is off, and TLS with the mail server of this machine.
fn check_tls(table: &Table<'_, '_>, tls: MailTls) {
    if tls != MailTls::Off {
        if !table.has_key("smtp") {
            let problem = "needs smtp; expected the mail server, such as \"smtp.example.org:587\"";
            table.report_missing(format!("notifications.mail.tls {problem}"));
        }
        return;
    }
    for key in ["user", "password_file", "ca_file"] {
        if table.has_key(key) {
            let problem = "needs TLS; expected tls = \"starttls\" or \"implicit\" beside it";
            table.report_missing(format!("notifications.mail.{key} {problem}"));
        }
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
