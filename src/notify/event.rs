//! The events of which operators are notified, as JSON for webhooks and as text for mail.
//!
//! Pure. docs/reference/notifications.md describes the JSON. Invariant: a text in an event has one line of printable
//! ASCII, since part of it comes from sources.

use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use serde_json::{Value, json};

/// The version of the JSON. It rises when a field is removed or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// An event. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was noticed.
    pub at_secs: UnixSecs,
    /// The repository; empty for an event of no repository.
    pub repository: String,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A source fails for longer than is configured.
    SourceDown {
        /// The time of its first failure.
        since_secs: UnixSecs,
        /// The kind of its last failure.
        reason: String,
        /// What happened last, and what to do.
        details: String,
    },
    /// A source that was down has sent a usable response.
    SourceRecovered {
        /// The time of its first failure.
        since_secs: UnixSecs,
    },
    /// Records were quarantined for the first time.
    RecordsLost {
        /// How many since the last such event.
        count: u64,
        /// When the first of them was found.
        since_secs: UnixSecs,
        /// All records in quarantine.
        quarantined: u64,
    },
    /// The quarantine needs more than the configured share of its limit.
    QuarantineNearlyFull {
        /// Its bytes on disk.
        bytes: u64,
        /// Its limit, in bytes.
        bytes_max: u64,
    },
    /// The quarantine needs clearly less than that share again.
    QuarantineHasSpace {
        /// Its bytes on disk.
        bytes: u64,
        /// Its limit, in bytes.
        bytes_max: u64,
    },
    /// The mirror holds back deletions until an operator confirms them.
    DeletionsHeld {
        /// The number of records.
        count: u64,
    },
    /// No deletion waits any more.
    DeletionsReleased,
    /// The folder of a local repository cannot be followed.
    FolderUnreadable {
        /// What the operating system says.
        details: String,
    },
    /// It is followed again.
    FolderReadable,
    /// More files of the folder are not published.
    FilesRefused {
        /// All of them.
        count: u64,
        /// The last one, with the reason.
        details: String,
    },
    /// The certificate of the listener with TLS ends soon, or has ended.
    CertificateExpiring {
        /// Its end.
        expires_secs: UnixSecs,
    },
    /// A certificate whose end is not near has replaced it.
    CertificateRenewed {
        /// Its end.
        expires_secs: UnixSecs,
    },
    /// An operator has asked for it.
    Test,
}

impl Event {
    /// The name of the event in the JSON.
    pub const fn name(&self) -> &'static str {
        match self.kind {
            EventKind::SourceDown { .. } => "source.down",
            EventKind::SourceRecovered { .. } => "source.recovered",
            EventKind::RecordsLost { .. } => "records.lost",
            EventKind::QuarantineNearlyFull { .. } => "quarantine.nearly_full",
            EventKind::QuarantineHasSpace { .. } => "quarantine.has_space",
            EventKind::DeletionsHeld { .. } => "deletions.held",
            EventKind::DeletionsReleased => "deletions.released",
            EventKind::FolderUnreadable { .. } => "folder.unreadable",
            EventKind::FolderReadable => "folder.readable",
            EventKind::FilesRefused { .. } => "files.refused",
            EventKind::CertificateExpiring { .. } => "certificate.expiring",
            EventKind::CertificateRenewed { .. } => "certificate.renewed",
            EventKind::Test => "test",
        }
    }

    /// One sentence about it.
    pub fn summary(&self) -> String {
        let id = &self.repository;
        match &self.kind {
            EventKind::SourceDown { since_secs, reason, .. } => {
                format!("The source of {id} is down since {} ({reason}).", to_datestamp(*since_secs))
            }
            EventKind::SourceRecovered { since_secs } => {
                format!("The source of {id} responds again. It was down since {}.", to_datestamp(*since_secs))
            }
            EventKind::RecordsLost { count, since_secs, quarantined } => format!(
                "New records of {id} in quarantine since {}: {count}. All together: {quarantined}.",
                to_datestamp(*since_secs)
            ),
            EventKind::QuarantineNearlyFull { bytes, bytes_max } => {
                format!("The quarantine of {id} is nearly full: {bytes} of {bytes_max} bytes.")
            }
            EventKind::QuarantineHasSpace { bytes, bytes_max } => {
                format!("The quarantine of {id} has space again: {bytes} of {bytes_max} bytes.")
            }
            EventKind::DeletionsHeld { count } => format!(
                "Records of {id} that have vanished from the source and wait for a confirmation: {count}."
            ),
            EventKind::DeletionsReleased => format!("No deletion of {id} waits for a confirmation any more."),
            EventKind::FolderUnreadable { .. } => {
                format!("The folder of {id} cannot be followed; its records stay as they are.")
            }
            EventKind::FolderReadable => format!("The folder of {id} is followed again."),
            EventKind::FilesRefused { count, details } => {
                format!(
                    "Files of the folder of {id} that are not published: {count}. The last one: {}",
                    to_line(details)
                )
            }
            EventKind::CertificateExpiring { expires_secs } => {
                format!("The certificate of listen_tls ends at {}.", to_datestamp(*expires_secs))
            }
            EventKind::CertificateRenewed { expires_secs } => {
                format!("The new certificate of listen_tls ends at {}.", to_datestamp(*expires_secs))
            }
            EventKind::Test => "This is a test of the notifications of oaimend.".to_owned(),
        }
    }

    /// What an operator can do now; empty if nothing is necessary.
    pub fn remedy(&self) -> String {
        let id = &self.repository;
        match &self.kind {
            EventKind::SourceDown { details, .. } => details.clone(),
            EventKind::RecordsLost { .. } => {
                format!("Harvesters do not receive these records. List them: oaimend quarantine ls {id}")
            }
            EventKind::QuarantineNearlyFull { .. } => format!(
                "Pages with new broken records fail when it is full. Remove records with oaimend quarantine rm {id}, \
                 or raise limits.quarantine_bytes_max."
            ),
            EventKind::DeletionsHeld { .. } => format!(
                "If the source has really removed them, confirm it: oaimend mirror sync --accept-deletions {id}"
            ),
            EventKind::FolderUnreadable { details } => to_line(details),
            EventKind::FilesRefused { .. } => {
                "Correct the files; the log names them all. The versions before stay published.".to_owned()
            }
            EventKind::CertificateExpiring { .. } => {
                "Clients refuse it after that. Replace its files by those of a new certificate; oaimend reads them at once."
                    .to_owned()
            }
            EventKind::SourceRecovered { .. }
            | EventKind::QuarantineHasSpace { .. }
            | EventKind::DeletionsReleased
            | EventKind::FolderReadable
            | EventKind::CertificateRenewed { .. }
            | EventKind::Test => String::new(),
        }
    }

    /// The event as JSON. `public_url` names the program that sends it.
    pub fn to_json(&self, public_url: &str) -> Value {
        let mut data = match &self.kind {
            EventKind::SourceDown { since_secs, reason, details } => {
                json!({ "since": to_datestamp(*since_secs), "reason": reason, "details": details })
            }
            EventKind::SourceRecovered { since_secs } => json!({ "since": to_datestamp(*since_secs) }),
            EventKind::RecordsLost { count, since_secs, quarantined } => {
                json!({ "count": count, "since": to_datestamp(*since_secs), "quarantined": quarantined })
            }
            EventKind::QuarantineNearlyFull { bytes, bytes_max }
            | EventKind::QuarantineHasSpace { bytes, bytes_max } => {
                json!({ "bytes": bytes, "bytes_max": bytes_max })
            }
            EventKind::DeletionsHeld { count } => json!({ "count": count }),
            EventKind::CertificateExpiring { expires_secs }
            | EventKind::CertificateRenewed { expires_secs } => {
                json!({ "expires": to_datestamp(*expires_secs) })
            }
            EventKind::FolderUnreadable { details } => json!({ "details": to_line(details) }),
            EventKind::FilesRefused { count, details } => {
                json!({ "count": count, "details": to_line(details) })
            }
            EventKind::DeletionsReleased | EventKind::FolderReadable | EventKind::Test => json!({}),
        };
        data["version"] = json!(SCHEMA_VERSION);
        data["instance"] = json!(public_url);
        data["summary"] = json!(self.summary());
        data["remedy"] = json!(self.remedy());
        if !self.repository.is_empty() {
            data["repository"] = json!(self.repository);
        }
        json!({ "type": self.name(), "timestamp": to_datestamp(self.at_secs), "data": data })
    }
}

/// A text with the name of a file, as one line of printable ASCII.
fn to_line(text: &str) -> String {
    let printable = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
    text.chars().map(printable).collect()
}

/// A time as `YYYY-MM-DDThh:mm:ssZ`.
pub(super) fn to_datestamp(secs: UnixSecs) -> String {
    from_secs(secs, Granularity::Second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_the_event_its_version_and_its_repository() {
        let (reason, details) = ("dns".to_owned(), "no such name".to_owned());
        let kind = EventKind::SourceDown { since_secs: UnixSecs(0), reason, details };
        let event = Event { at_secs: UnixSecs(900), repository: "x".to_owned(), kind };
        let expected = json!({
            "type": "source.down",
            "timestamp": "1970-01-01T00:15:00Z",
            "data": {
                "version": 1,
                "instance": "https://oai.example.org",
                "repository": "x",
                "summary": "The source of x is down since 1970-01-01T00:00:00Z (dns).",
                "remedy": "no such name",
                "since": "1970-01-01T00:00:00Z",
                "reason": "dns",
                "details": "no such name",
            },
        });
        assert_eq!(event.to_json("https://oai.example.org"), expected);
        let test = Event { at_secs: UnixSecs(0), repository: String::new(), kind: EventKind::Test };
        assert!(test.to_json("")["data"].get("repository").is_none());
    }
}
