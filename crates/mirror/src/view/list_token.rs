//! The resumptionTokens of the views: the list and the position in it, and no session.

use super::part::Part;
use oaimend_oai::{ErrorCode, UnixSecs, Verb};
use oaimend_store::{StoredRecord, TokenKey, TokenUse};
use serde::{Deserialize, Serialize};

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TokenContent {
    /// A list of records or of headers.
    #[serde(rename = "r")]
    Records(RecordList),
    /// A list of sets.
    #[serde(rename = "s")]
    Sets(SetList),
}

/// A list of records or of headers, and the position of its next page.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RecordList {
    /// The name of the view.
    pub(super) view: String,
    /// Whether the list contains records; otherwise headers.
    pub(super) with_metadata: bool,
    pub(super) prefix: String,
    /// The set of the request.
    pub(super) set: Option<String>,
    /// The lowest stamp, in seconds since 1970.
    pub(super) from: Option<UnixSecs>,
    /// The highest stamp: that of the request, or the last one at the start of the list.
    pub(super) until: UnixSecs,
    /// The latest change of the view at the start of the list, in seconds since 1970. Later changes do not move its
    /// records after its end.
    pub(super) since: Option<UnixSecs>,
    /// The responseDate of all pages.
    pub(super) date: UnixSecs,
    /// The number of records on the pages before.
    pub(super) count: u64,
    /// The number of records in the list when it began; `None` if unknown.
    pub(super) size: Option<u64>,
    /// The last record of the page before.
    pub(super) after: Option<Place>,
}

/// A position in the order (datestamp, repository, sequence). The stamp is not part of the order: in one repository the
/// sequence has the same order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Place {
    /// The datestamp of the record in the list, in seconds since 1970.
    pub(super) secs: UnixSecs,
    /// The name of the repository.
    pub(super) id: String,
    /// The sequence number in the collection.
    pub(super) sequence: u64,
    /// The stamp of the record, in seconds since 1970.
    pub(super) stamp: UnixSecs,
}

impl Place {
    /// The position of a record of a repository.
    pub(super) fn of(part: &Part<'_>, record: &StoredRecord) -> Self {
        Self {
            secs: part.datestamp_secs(record),
            id: part.member.id.clone(),
            sequence: record.sequence,
            stamp: record.stamp_secs,
        }
    }
}

/// Where a page ends.
#[derive(Clone, Debug)]
pub(super) struct PageEnd {
    /// The position after which the next page begins.
    pub(super) last: Option<Place>,
    pub(super) has_more: bool,
}

/// A list of sets, and the position of its next page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetList {
    /// The name of the view.
    pub(super) view: String,
    /// The responseDate of all pages.
    pub(super) date: UnixSecs,
    /// The number of sets on the pages before.
    pub(super) count: u64,
    /// The last setSpec of the page before.
    pub(super) after: Option<String>,
}

impl RecordList {
    /// The verb of the list.
    pub(super) const fn verb(&self) -> Verb {
        if self.with_metadata { Verb::ListRecords } else { Verb::ListIdentifiers }
    }
}

impl TokenContent {
    fn verb(&self) -> Verb {
        match self {
            Self::Records(list) => list.verb(),
            Self::Sets(_) => Verb::ListSets,
        }
    }

    fn view(&self) -> &str {
        match self {
            Self::Records(list) => &list.view,
            Self::Sets(list) => &list.view,
        }
    }

    /// Writes a token; `None` if it would be too long.
    pub(super) fn write(&self, key: &TokenKey) -> Option<String> {
        key.seal(TokenUse::MirrorList, self)
    }

    /// Reads the token of a request.
    ///
    /// # Errors
    ///
    /// The text of a `badResumptionToken`: the token is not one of this view and this verb.
    pub(super) fn read(
        token: &str,
        key: &TokenKey,
        view: &str,
        verb: Verb,
    ) -> Result<Self, (ErrorCode, String)> {
        let refused = |text: String| (ErrorCode::BadResumptionToken, text);
        let content: Self = key.unseal(TokenUse::MirrorList, token).ok_or_else(|| {
            refused("this repository did not issue this resumptionToken; begin the list again".to_owned())
        })?;
        if content.view() != view {
            return Err(refused("another repository issued this resumptionToken".to_owned()));
        }
        if content.verb() != verb {
            let (issued, wanted) = (content.verb().name(), verb.name());
            return Err(refused(format!("this resumptionToken belongs to {issued}, not to {wanted}")));
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> RecordList {
        RecordList {
            view: "x".into(),
            with_metadata: true,
            prefix: "oai_dc".into(),
            set: Some("a:b".into()),
            from: Some(UnixSecs(-1)),
            until: UnixSecs::MAX,
            since: Some(UnixSecs(3)),
            date: UnixSecs(1_700_000_000),
            count: 100,
            size: Some(u64::MAX),
            after: Some(Place { secs: UnixSecs(5), id: "x".into(), sequence: 7, stamp: UnixSecs(2) }),
        }
    }

    #[test]
    fn a_token_is_valid_for_its_view_and_its_verb() {
        let key = TokenKey::new([1; 32]);
        let content = TokenContent::Records(list());
        let token = content.write(&key).expect("short enough");
        assert_eq!(TokenContent::read(&token, &key, "x", Verb::ListRecords), Ok(content));
        for (view, verb) in [("y", Verb::ListRecords), ("x", Verb::ListIdentifiers), ("x", Verb::ListSets)] {
            let refused = TokenContent::read(&token, &key, view, verb);
            assert!(matches!(refused, Err((ErrorCode::BadResumptionToken, _))), "{view} {verb:?}");
        }
        let other = TokenContent::read(&token, &TokenKey::new([2; 32]), "x", Verb::ListRecords);
        assert!(matches!(other, Err((ErrorCode::BadResumptionToken, _))));
        let sets = SetList { view: "x".into(), date: UnixSecs(0), count: 500, after: Some("a".into()) };
        let token = TokenContent::Sets(sets.clone()).write(&key).expect("short enough");
        assert_eq!(TokenContent::read(&token, &key, "x", Verb::ListSets), Ok(TokenContent::Sets(sets)));
    }
}
