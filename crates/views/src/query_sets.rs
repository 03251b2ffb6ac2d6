//! Query sets: the records that match a query, as a set of `/_all` or of one mirror.
//!
//! The set is `q:` and the query in base64url, as DataCite writes it. Its lists are in the order of the commits and take
//! `from`, `until` and tokens, as those of any set. A record that stops matching is not reported: it still exists, and a
//! harvester of two sets would delete it.

use crate::index_requests::{Answered, run};
use async_trait::async_trait;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use oaimend_mirror::view::{ChosenSet, QuerySets, SelectedRecord, Selection};
use oaimend_oai::{UnixSecs, set_spec};
use oaimend_repository::{Failure, Reason};
use oaimend_search::query::{QueryLanguage, parse};
use oaimend_search::{ListHits, ListedHits, Query, Searches};
use oaimend_store::{ListFilter, Position};
use std::sync::Arc;

/// The start of the sets.
const QUERY_SET: &str = "q:";

/// base64url, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The query sets over the index of the mirror.
#[derive(Clone, Debug)]
pub struct IndexQuerySets {
    /// The searches of the program.
    pub searches: Searches,
}

#[async_trait]
impl QuerySets for IndexQuerySets {
    fn protocol(&self) -> (&'static str, &'static str) {
        ("oaimend-query-sets", "1.0")
    }

    async fn find(&self, set: &str) -> Result<Option<ChosenSet>, Failure> {
        // The schema allows no padding in a setSpec, and no colon at its end.
        let set = set_spec::unescape(set).unwrap_or_else(|| set.to_owned());
        let Some(encoded) = set.strip_prefix(QUERY_SET) else { return Ok(None) };
        let query = match read(encoded) {
            Ok(query) => query,
            Err(text) => return Ok(Some(Err(text))),
        };
        let selection = QuerySelection { searches: self.searches.clone(), query };
        // The index alone knows the fields of the records.
        let filter = ListFilter::default();
        Ok(Some(match selection.hits(&filter, None, 1).await? {
            Answered::Found(_) => Ok(Arc::new(selection)),
            Answered::Refused(text) => Err(text),
        }))
    }
}

/// The query of a set, which is the text after `q:`.
///
/// # Errors
///
/// The text of a `badArgument`.
fn read(encoded: &str) -> Result<Query, String> {
    let form = "write q: and the query in base64url, such as q:Y2xpbWF0ZQ for climate";
    let bytes =
        BASE64.decode(encoded).map_err(|error| format!("the query is not base64url: {error}; {form}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("the query is not UTF-8; {form}"))?;
    parse(QueryLanguage::Odl, &text).map_err(|error| error.to_string())
}

/// The records that match a query.
#[derive(Debug)]
pub(crate) struct QuerySelection {
    pub(crate) searches: Searches,
    pub(crate) query: Query,
}

impl QuerySelection {
    async fn hits(
        &self,
        filter: &ListFilter,
        after: Option<Position>,
        count_max: usize,
    ) -> Result<Answered<ListedHits>, Failure> {
        let request = list_hits(self.query.clone(), filter, after, count_max);
        run(&self.searches, move |index| index.list(&request)).await
    }
}

/// The request for the records of a query in a repository.
pub(crate) fn list_hits(
    query: Query,
    filter: &ListFilter,
    after: Option<Position>,
    count_max: usize,
) -> ListHits {
    ListHits {
        query,
        repositories: Some(vec![filter.repository.clone()]),
        prefix: filter.prefix.clone(),
        from_secs: filter.from_secs,
        until_secs: filter.until_secs,
        after: after.map(|after| (after.secs, filter.repository.clone(), after.sequence)),
        count_max,
    }
}

/// The records of a list.
pub(crate) fn selected(listed: ListedHits) -> Vec<SelectedRecord> {
    let selected = listed.hits.into_iter().map(|hit| SelectedRecord {
        identifier: hit.identifier,
        position: Position { secs: hit.stamp_secs, sequence: hit.sequence },
        has_left: false,
    });
    selected.collect()
}

/// The last second up to which an index knows all commits.
///
/// # Errors
///
/// It never knew all of them.
pub(crate) fn complete_until(listed: &ListedHits) -> Result<UnixSecs, Failure> {
    listed.complete_until_secs.ok_or_else(|| {
        Failure::new(Reason::SearchBusy, "the search index does not contain the whole mirror yet; wait")
    })
}

#[async_trait]
impl Selection for QuerySelection {
    async fn list(
        &self,
        filter: &ListFilter,
        after: Option<Position>,
        count_max: usize,
    ) -> Result<Vec<SelectedRecord>, Failure> {
        Ok(selected(self.hits(filter, after, count_max).await?.found()?))
    }

    async fn count(&self, filter: &ListFilter) -> Result<u64, Failure> {
        Ok(self.hits(filter, None, 1).await?.found()?.total)
    }

    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure> {
        complete_until(&self.hits(&ListFilter::default(), None, 1).await?.found()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_queries_are_refused() {
        for (encoded, expected) in [
            ("Y2xp$", "not base64url"),
            ("Y", "not base64url"),
            ("a+/b", "not base64url"),
            ("Y2xpbWF0ZQ===", "not base64url"),
            ("_w", "not UTF-8"),
        ] {
            let text = read(encoded).expect_err(encoded);
            assert!(text.contains(expected), "{encoded}: {text}");
        }
    }

    #[test]
    fn padding_is_optional() {
        let climate = read("Y2xpbWF0ZQ").expect("a legal query");
        assert_eq!(read("Y2xpbWF0ZQ=="), Ok(climate));
    }
}
