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
use oaimend_mirror::view::{ChosenSet, QuerySets, SelectedList, SelectedRecord, Selection};
use oaimend_oai::{UnixSecs, set_spec};
use oaimend_repository::{Failure, Reason};
use oaimend_search::query::{QueryLanguage, parse};
use oaimend_search::{ListHits, ListedHits, ListedRepository, Query, Searches};
use oaimend_store::Position;
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
        let checked = query.clone();
        // The index alone knows the fields of the records.
        Ok(Some(match run(&self.searches, move |index| index.check(&checked)).await? {
            Answered::Found(()) => Ok(Arc::new(QuerySelection { searches: self.searches.clone(), query })),
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
struct QuerySelection {
    searches: Searches,
    query: Query,
}

impl QuerySelection {
    async fn hits(&self, list: &SelectedList, count_max: usize) -> Result<ListedHits, Failure> {
        let request = list_hits(self.query.clone(), list, count_max);
        let listed = run(&self.searches, move |index| index.list(&request)).await?.found()?;
        whole(listed, list)
    }
}

/// The request for the records of a query in a list.
pub(crate) fn list_hits(query: Query, list: &SelectedList, count_max: usize) -> ListHits {
    let listed = list.repositories.iter();
    let listed =
        listed.map(|(name, lowest_secs)| ListedRepository { name: name.clone(), lowest_secs: *lowest_secs });
    ListHits {
        query,
        repositories: Some(listed.collect()),
        prefix: list.prefix.clone(),
        from_secs: list.from_secs,
        until_secs: list.until_secs,
        after: list.after.clone(),
        count_max,
    }
}

/// The hits of a list that began when the index contained all its records.
///
/// # Errors
///
/// It does not contain all of them now: it reads a collection again. The page would lack its records.
pub(crate) fn whole(listed: ListedHits, list: &SelectedList) -> Result<ListedHits, Failure> {
    if list.until_secs > listed.complete_until_secs { Err(incomplete()) } else { Ok(listed) }
}

/// The records of a list.
pub(crate) fn selected(listed: ListedHits) -> Vec<SelectedRecord> {
    let selected = listed.hits.into_iter().map(|hit| SelectedRecord {
        repository: hit.repository,
        identifier: hit.identifier,
        position: Position { secs: hit.stamp_secs, sequence: hit.sequence },
    });
    selected.collect()
}

/// The last second up to which the index knows all commits.
///
/// # Errors
///
/// It does not know all of them up to any second.
pub(crate) async fn complete_until_secs(searches: &Searches) -> Result<UnixSecs, Failure> {
    run(searches, |index| index.complete_until_secs()).await?.found()?.ok_or_else(incomplete)
}

fn incomplete() -> Failure {
    Failure::new(Reason::SearchBusy, "the search index does not contain the whole mirror yet; wait")
}

#[async_trait]
impl Selection for QuerySelection {
    async fn list(&self, list: &SelectedList, count_max: usize) -> Result<Vec<SelectedRecord>, Failure> {
        Ok(selected(self.hits(list, count_max).await?))
    }

    async fn count(&self, list: &SelectedList) -> Result<u64, Failure> {
        Ok(self.hits(list, 1).await?.total)
    }

    async fn complete_until_secs(&self) -> Result<UnixSecs, Failure> {
        complete_until_secs(&self.searches).await
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
