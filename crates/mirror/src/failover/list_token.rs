//! The resumptionTokens of lists that the mirror continues: the list and the position in it, and no session.

use oaimend_oai::UnixSecs;
use oaimend_repository::lists::DeliveredPages;
use oaimend_store::{Position, TokenKey, TokenUse};
use serde::{Deserialize, Serialize};

/// The rest of a list of records or of headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SourceList {
    pub(super) repository: String,
    /// Whether the list contains records; otherwise headers.
    pub(super) with_metadata: bool,
    pub(super) prefix: String,
    pub(super) set: Option<String>,
    /// The lowest datestamp, in seconds since 1970.
    pub(super) from: Option<UnixSecs>,
    /// The highest datestamp, in seconds since 1970.
    pub(super) until: Option<UnixSecs>,
    /// The state that the list shows, which is the responseDate of its pages.
    pub(super) state: UnixSecs,
    /// The number of records on the pages of the mirror before.
    pub(super) count: u64,
    /// The number of records in the list when it began; `None` if unknown.
    pub(super) size: Option<u64>,
    /// The position of the next page.
    #[serde(with = "position")]
    pub(super) after: Option<Position>,
    /// The pages of the source before.
    pub(super) delivered: Option<DeliveredPages>,
}

impl SourceList {
    /// Writes a token; `None` if it would be too long.
    pub(super) fn to_token(&self, key: &TokenKey) -> Option<String> {
        key.seal(TokenUse::Failover, self)
    }

    /// Reads a token; `None` if it is not one of a list that the mirror continues.
    pub(super) fn read(token: &str, key: &TokenKey) -> Option<Self> {
        key.unseal(TokenUse::Failover, token)
    }
}

/// How a position is written: as its two numbers.
mod position {
    use oaimend_oai::UnixSecs;
    use oaimend_store::Position;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(position: &Option<Position>, to: S) -> Result<S::Ok, S::Error> {
        position.map(|position| (position.secs, position.sequence)).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Position>, D::Error> {
        let numbers = Option::<(UnixSecs, u64)>::deserialize(from)?;
        Ok(numbers.map(|(secs, sequence)| Position { secs, sequence }))
    }
}
