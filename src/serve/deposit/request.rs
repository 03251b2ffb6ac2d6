//! The request of a writer, as the head of it says. Pure: no I/O.

use crate::config::Mapping;
use crate::serve::routes::{PUBLIC, PublicEndpoint};
use http::{HeaderMap, header};
use oaimend_deposit::Condition;
use oaimend_oai::path_segment::text_of;
use percent_encoding::percent_decode_str;
use std::sync::Arc;
use url::form_urlencoded;

/// The request of a writer.
#[derive(Clone, Debug)]
pub(crate) struct DepositRequest {
    /// The local repository.
    pub(crate) mapping: Arc<Mapping>,
    /// The wish of the writer.
    pub(crate) kind: DepositKind,
    /// The metadataPrefix; empty if the request has none.
    pub(crate) prefix: String,
    /// The setSpecs of a new record.
    pub(crate) sets: Vec<String>,
    /// The kind of the request in the log.
    pub(crate) label: Option<&'static str>,
}

/// What a writer wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DepositKind {
    /// The metadata of the record with this identifier.
    Read(String),
    /// The body is its metadata.
    Put(String),
    /// The body names its sets.
    Patch(String),
    /// No record any more.
    Delete(String),
    /// The body is a list of records.
    PutList,
}

impl DepositRequest {
    /// Reads a request target; `None` if it is none of a writer. `find` finds the mapping of a repository.
    pub(crate) fn read(
        method: &str,
        target: &str,
        find: impl Fn(&str) -> Option<Arc<Mapping>>,
    ) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let found = PUBLIC.find(method, path)?;
        let argument = |name: &str| {
            let mut arguments = form_urlencoded::parse(query.as_bytes());
            arguments.find(|(argument, _)| argument == name).map(|(_, value)| value.into_owned())
        };
        let prefix = argument("metadataPrefix");
        let written = found.part("identifier").unwrap_or_default();
        let identifier = text_of(&percent_decode_str(written).decode_utf8_lossy()).to_owned();
        let kind = match (found.route.endpoint, method) {
            // Without the argument, it is the page of the record.
            (PublicEndpoint::Record, _) if prefix.is_some() => DepositKind::Read(identifier),
            (PublicEndpoint::WrittenRecord, "PUT") => DepositKind::Put(identifier),
            (PublicEndpoint::WrittenRecord, "PATCH") => DepositKind::Patch(identifier),
            (PublicEndpoint::WrittenRecord, _) => DepositKind::Delete(identifier),
            (PublicEndpoint::WrittenRecords, _) => DepositKind::PutList,
            _ => return None,
        };
        let mapping = find(found.id())?;
        let is_page = mapping.local.is_none() && !kind.writes();
        let sets = argument("sets").unwrap_or_default();
        let request = Self {
            mapping,
            kind,
            prefix: prefix.unwrap_or_default(),
            sets: split_sets(&sets),
            label: found.route.label,
        };
        (!is_page).then_some(request)
    }
}

impl DepositKind {
    /// Whether the record may be another one afterwards.
    pub(crate) const fn writes(&self) -> bool {
        !matches!(self, Self::Read(_))
    }
}

/// The setSpecs of a list with commas.
pub(super) fn split_sets(sets: &str) -> Vec<String> {
    sets.split(',').map(str::trim).filter(|set| !set.is_empty()).map(str::to_owned).collect()
}

/// The condition in the header of a request (RFC 9110, sections 13.1.1 and 13.1.2).
pub(super) fn condition_of(headers: &HeaderMap) -> Condition {
    let joined = |name: header::HeaderName| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.collect::<Vec<_>>().join(",")
    };
    let tags = joined(header::IF_MATCH);
    if tags.trim() == "*" {
        return Condition::Exists;
    }
    if headers.contains_key(header::IF_MATCH) {
        return Condition::Matches(tags.split(',').map(|tag| tag.trim().to_owned()).collect());
    }
    if joined(header::IF_NONE_MATCH).trim() == "*" { Condition::IsNew } else { Condition::None }
}
