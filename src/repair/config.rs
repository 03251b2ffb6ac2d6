//! The configuration of the engine for one response, and the known facts of its repository.

use std::sync::Arc;

use crate::oai::RequestEcho;
use crate::oai::datestamp::Granularity;
use crate::repair::catalog::RepairSet;
use crate::repair::limits::Limits;

/// What the engine is told about one response.
#[derive(Clone, Debug, Default)]
pub struct RepairConfig {
    /// The bounds on what it may hold.
    pub limits: Limits,
    /// Repairs that are not to be made: what would need them is quarantined.
    pub off: RepairSet,
    /// Repairs of certainty [`Certainty::Guess`] that are to be made.
    pub enabled: RepairSet,
    /// What `request` and Identify's `baseURL` are to say. `None` keeps them where legal.
    pub request: Option<Arc<RequestEcho>>,
    /// What is known of the repository from elsewhere.
    pub repository: RepositoryFacts,
    /// What a missing `responseDate` becomes, `YYYY-MM-DDThh:mm:ssZ`: the time
    /// at which the source was asked.
    pub response_date: Option<String>,
    /// The charset that the HTTP header named. It outranks the XML declaration
    /// (RFC 7303), where the bytes do not contradict it.
    pub charset: Option<String>,
    /// The charset of text that is no UTF-8, as somebody names it who knows the repository.
    pub text_charset: Option<String>,
    /// What to do with input that ends early.
    pub ending: Ending,
    /// What records are told to come from; `None` says nothing of it.
    pub provenance: Option<Origin>,
    /// What Identify is to say where it says nothing, or nothing legal.
    pub identify: IdentifyValues,
}

/// What somebody who knows a repository says of it. Values are legal; what is `None` is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentifyValues {
    /// `repositoryName`.
    pub repository_name: Option<String>,
    /// `adminEmail`, without `mailto:`.
    pub admin_email: Option<String>,
    /// `earliestDatestamp`.
    pub earliest_datestamp: Option<String>,
    /// `deletedRecord`.
    pub deleted_record: Option<String>,
    /// `granularity`.
    pub granularity: Option<String>,
}

/// What is known of a repository besides the response at hand. The engine does not guess it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryFacts {
    /// The granularity that its Identify announces. `None`: datestamps keep the one they have.
    pub granularity: Option<Granularity>,
    /// A legal datestamp that no item of this response can be older than: the request's `from`,
    /// or earliestDatestamp. It stands in for a datestamp that is missing or names no day; `None`
    /// leaves such items to quarantine.
    pub lowest_datestamp: Option<String>,
    /// The oldest datestamp that one of its items was seen with, for Identify.
    pub oldest_seen: Option<String>,
}

/// What to do with input that ends early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Close the document with a comment that says so. For files.
    #[default]
    Close,
    /// Write nothing more: the caller breaks the transfer off, so that the
    /// list can never look complete. For the proxy.
    Abort,
}

/// Where the records of a response come from, and of which of them that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Of which records it is said.
    pub told: ProvenanceScope,
    /// The base URL of the source.
    pub base_url: String,
    /// When the source was asked, `YYYY-MM-DDThh:mm:ssZ`.
    pub harvest_date: String,
}

/// Of which records provenance is told. Never of deleted ones, which have no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvenanceScope {
    /// Of those whose payload a repair of [`Effect::Content`](crate::repair::catalog::Effect) touched.
    Altered,
    /// Of all.
    All,
}
