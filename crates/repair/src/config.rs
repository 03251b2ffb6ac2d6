//! The configuration of the engine for one response, and the known facts of its repository.

use std::sync::Arc;

use crate::catalog::RepairSet;
use crate::limits::Limits;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{RequestEcho, named_enum};

/// The configuration of the engine for one response.
///
/// ```
/// use oaimend_repair::{Ending, RepairConfig};
///
/// let mut config = RepairConfig::default();
/// config.limits.record_bytes_max = 1 << 20;
/// config.ending = Ending::Abort;
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairConfig {
    /// The limits of the engine.
    pub limits: Limits,
    /// Disabled repairs. An item that needs one is quarantined.
    pub off: RepairSet,
    /// Enabled repairs, of those that are off by default
    /// ([`RepairId::is_optional`](crate::RepairId::is_optional)).
    pub enabled: RepairSet,
    /// The required content of `request` and of Identify's `baseURL`. `None` keeps legal values.
    pub request: Option<Arc<RequestEcho>>,
    /// The resumptionToken of the request to the source, empty if it had none. Another token in the `request`
    /// element is then the token of a list that has none itself. `None`: an attribute of `request` is an echo.
    pub request_token: Option<String>,
    /// The known facts of the repository.
    pub repository: RepositoryFacts,
    /// The value of a missing `responseDate`, `YYYY-MM-DDThh:mm:ssZ`: the time of the request to the source.
    pub response_date: Option<String>,
    /// The charset in the HTTP header. It has priority over the XML declaration (RFC 7303), unless the bytes
    /// contradict it.
    pub charset: Option<String>,
    /// The configured charset of text that is not UTF-8.
    pub text_charset: Option<String>,
    /// The handling of input that ends early.
    pub ending: Ending,
    /// The provenance of the records; `None` adds no provenance.
    pub provenance: Option<Origin>,
    /// The values of Identify elements that are missing or illegal.
    pub identify: IdentifyValues,
}

/// Configured values for elements of Identify. Values are legal; `None` means unknown.
///
/// ```
/// use oaimend_repair::{IdentifyValues, RepairConfig};
///
/// let mut config = RepairConfig::default();
/// config.identify.admin_email = Some("oai@example.org".to_owned());
/// assert_ne!(config.identify, IdentifyValues::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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

/// The known facts of a repository from sources other than this response. The engine does not guess them.
///
/// ```
/// use oaimend_repair::{Granularity, RepairConfig};
///
/// let mut config = RepairConfig::default();
/// // Datestamps with a time become days.
/// config.repository.granularity = Some(Granularity::Day);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryFacts {
    /// The granularity in its Identify. `None`: datestamps stay unchanged.
    pub granularity: Option<Granularity>,
    /// A legal datestamp that no item of this response precedes: the request's `from`, or earliestDatestamp.
    /// It replaces a datestamp that is missing or not a date. `None`: such items go to quarantine.
    pub lowest_datestamp: Option<String>,
    /// The oldest datestamp that was observed in an item, for Identify.
    pub oldest_seen: Option<String>,
}

/// The handling of input that ends early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Close the document, with a comment about the missing end. For files.
    #[default]
    Close,
    /// Write nothing more. The caller aborts the transfer, so that the list never looks complete. For the
    /// proxy.
    Abort,
}

/// The provenance of the records of a response.
///
/// ```
/// use oaimend_repair::{Origin, ProvenanceScope, RepairConfig};
///
/// let mut config = RepairConfig::default();
/// config.provenance = Some(Origin::new(
///     ProvenanceScope::Altered,
///     "http://source.example.org/oai",
///     "2026-01-02T03:04:05Z",
/// ));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The records that get provenance.
    pub scope: ProvenanceScope,
    /// The base URL of the source.
    pub base_url: String,
    /// The time of the request to the source, `YYYY-MM-DDThh:mm:ssZ`. It is the harvestDate of a response
    /// without a readable responseDate.
    pub harvest_date: String,
}

impl Origin {
    /// Describes a source for the records in `scope`. `harvest_date` is the time of the request.
    pub fn new(scope: ProvenanceScope, base_url: impl Into<String>, harvest_date: impl Into<String>) -> Self {
        Self { scope, base_url: base_url.into(), harvest_date: harvest_date.into() }
    }
}

named_enum! {
    /// The records that get provenance. Deleted records never do, because they have no payload.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProvenanceScope {
        /// Records whose payload was changed by a repair of [`Effect::Content`](crate::catalog::Effect).
        Altered = "altered",
        /// All records.
        All = "all",
    }
}
