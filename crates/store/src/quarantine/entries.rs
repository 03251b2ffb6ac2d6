//! The entries of the quarantine.

use super::records::{QuarantineBatch, QuarantinedRecord, WholeRecords, plain_identifier};
use oaimend_oai::{Argument, Request, Verb, named_enum};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The entry of a quarantined record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    /// Its identifier, if one could be read.
    pub identifier: Option<String>,
    /// The reason when it was last seen, as a kebab-case name.
    pub why: String,
    /// Its offset in the decoded body when it was last seen, in bytes.
    pub offset: u64,
    /// The query whose response contained it when it was last seen.
    pub request: String,
    /// When it was first seen, `YYYY-MM-DDThh:mm:ssZ`.
    pub first_seen: String,
    /// When it was last seen.
    pub last_seen: String,
    /// How often it was seen.
    pub seen: u64,
    /// Length of the raw record, in bytes.
    pub bytes: u64,
    /// Its format, if it was known when it was last seen. Earlier versions did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_prefix: Option<String>,
    /// When the source sent the record whole; `None`: not since it was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<String>,
}

named_enum! {
    /// The state of an entry. Its name is in the admin API, the commands and metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum QuarantineState {
        /// The source has not sent the record whole since.
        Open = "open",
        /// The source has sent the record whole.
        Resolved = "resolved",
    }
}

impl QuarantineEntry {
    /// The entry of a record of this batch. It is open. `known` is the entry before.
    pub fn after(known: Option<&Self>, record: &QuarantinedRecord, batch: &QuarantineBatch) -> Self {
        let now = batch.received_at.clone();
        Self {
            identifier: record.identifier.clone(),
            why: record.why.to_owned(),
            offset: record.offset,
            request: batch.request.clone(),
            first_seen: known.map_or_else(|| now.clone(), |entry| entry.first_seen.clone()),
            last_seen: now,
            seen: 1 + known.map_or(0, |entry| entry.seen),
            bytes: record.raw.len() as u64,
            metadata_prefix: batch.metadata_prefix.clone(),
            resolved_at: None,
        }
    }

    /// The state.
    pub const fn state(&self) -> QuarantineState {
        match self.resolved_at {
            Some(_) => QuarantineState::Resolved,
            None => QuarantineState::Open,
        }
    }

    /// The time from which the age of the entry counts: when it was resolved, or last seen if it is open.
    pub fn changed_at(&self) -> &str {
        self.resolved_at.as_deref().unwrap_or(&self.last_seen)
    }

    /// The identifier with references resolved.
    pub fn plain_identifier(&self) -> Option<Cow<'_, str>> {
        self.identifier.as_deref().map(plain_identifier)
    }

    /// The format of the record, if it is known.
    pub fn format(&self) -> Option<Cow<'_, str>> {
        if let Some(prefix) = &self.metadata_prefix {
            return Some(Cow::Borrowed(prefix));
        }
        let request = Request::parse(self.request.as_bytes()).ok()?;
        Some(Cow::Owned(request.argument(Argument::MetadataPrefix)?.to_owned()))
    }

    /// The entry after these whole records; `None` if they do not resolve it.
    pub fn resolved_by(&self, whole: &WholeRecords) -> Option<Self> {
        let resolved = || Self { resolved_at: Some(whole.received_at.clone()), ..self.clone() };
        self.is_resolved_by(whole).then(resolved)
    }

    /// Whether it is open, and these records contain the same record whole. A header of a record is the same in all
    /// formats, and a part of the record. If a format is not known, it counts as the same one.
    pub fn is_resolved_by(&self, whole: &WholeRecords) -> bool {
        if self.state() != QuarantineState::Open {
            return false;
        }
        let Some(identifier) = self.plain_identifier() else { return false };
        let is_header = Request::parse(self.request.as_bytes())
            .is_ok_and(|request| request.verb() == Verb::ListIdentifiers);
        let is_same_format = || match (self.format(), &whole.metadata_prefix) {
            (Some(one), Some(other)) => one == *other,
            _ => true,
        };
        (is_header || !whole.headers_only && is_same_format())
            && whole.identifiers.iter().any(|whole| *whole == identifier)
    }
}
