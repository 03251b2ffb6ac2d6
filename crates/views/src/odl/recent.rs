//! ODL-Recent: the records that changed last, as a set.
//!
//! No grammar of the component survives, so this one is oaimend's own: `odlrecent1/N`.

use super::dialects::{RECORDS_MAX, read_number};
use crate::index_requests::{Answered, run};
use async_trait::async_trait;
use oaimend_mirror::view::{Component, ComponentSets, CountPlace, RankedList, RankedRecords};
use oaimend_repository::Failure;
use oaimend_search::{Query, Ranking, RecordFilter, SearchHits, Searches};

/// ODL-Recent over the index of the mirror.
#[derive(Debug)]
pub struct OdlRecent {
    /// The searches of the program.
    pub searches: Searches,
    /// The names of the repositories whose records are listed.
    pub repositories: Vec<String>,
}

#[async_trait]
impl Component for OdlRecent {
    fn name(&self) -> &'static str {
        "_recent"
    }

    fn protocol(&self) -> (&'static str, &'static str) {
        ("ODL-Recent", "1.0")
    }

    async fn sets(&self, _after: Option<&str>, _count_max: usize) -> Result<Option<ComponentSets>, Failure> {
        Ok(None)
    }

    async fn ranked(&self, set: &str, prefix: &str) -> Result<Option<RankedList>, Failure> {
        let count_max = match read(set) {
            Ok(count_max) => count_max,
            Err(text) => return Ok(Some(RankedList::Refused(text))),
        };
        let filter =
            RecordFilter { repositories: Some(self.repositories.clone()), prefix: Some(prefix.to_owned()) };
        let request = SearchHits {
            query: Query::All,
            filter,
            ranking: Ranking::Recent,
            offset: 0,
            count_max,
            with_facets: false,
        };
        Ok(Some(match run(&self.searches, move |index| index.search(&request)).await? {
            Answered::Found(found) => RankedList::Records(RankedRecords {
                records: found.hits.into_iter().map(|hit| (hit.repository, hit.identifier)).collect(),
                offset: 0,
                hits: found.total.records,
                count_place: CountPlace::Nowhere,
            }),
            Answered::Refused(text) => RankedList::Refused(text),
        }))
    }
}

/// Reads the set `odlrecent1/N`.
///
/// # Errors
///
/// The text of a `badArgument`.
fn read(set: &str) -> Result<usize, String> {
    const FORM: &str = "write odlrecent1/N, such as odlrecent1/20 for the 20 records that changed last";
    let Some(count) = set.strip_prefix("odlrecent1/") else {
        return Err(format!("this set is no list of recent records; {FORM}"));
    };
    match read_number("N", count).map_err(|problem| format!("{problem}; {FORM}"))? {
        0 => Err(format!("no record is requested; {FORM}")),
        count if count > RECORDS_MAX => {
            Err(format!("{count} records are requested, but a request returns at most {RECORDS_MAX}; {FORM}"))
        }
        count => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_set_names_the_number_of_records() {
        assert_eq!(read("odlrecent1/1"), Ok(1));
        assert_eq!(read("odlrecent1/1000"), Ok(1000));
        for (set, expected) in [
            ("odlrecent1/0", "no record is requested"),
            ("odlrecent1/1001", "at most 1000"),
            ("odlrecent1/", "no number"),
            ("odlrecent1/-1", "no number"),
            ("odlrecent1/1/2", "no number"),
            ("odlrecent1/99999999999999999999", "no number"),
            ("odlrecent1", "this set is no list"),
            ("x", "this set is no list"),
        ] {
            let text = read(set).expect_err(set);
            assert!(text.contains(expected) && text.contains("write odlrecent1/N"), "{set}: {text}");
        }
    }
}
