//! ODL-Search 1: the records that match a query, ranked, as a set.

use super::dialects::{self, SearchSet};
use crate::index_requests::{Answered, run};
use async_trait::async_trait;
use oaimend_mirror::view::{Component, ComponentSets, RankedList, RankedRecords};
use oaimend_repository::Failure;
use oaimend_search::query::parse;
use oaimend_search::{Ranking, RecordFilter, SearchHits, Searches};

/// ODL-Search over the index of the mirror.
#[derive(Debug)]
pub struct OdlSearch {
    /// The searches of the program.
    pub searches: Searches,
    /// The names of the searched repositories.
    pub repositories: Vec<String>,
}

#[async_trait]
impl Component for OdlSearch {
    fn name(&self) -> &'static str {
        "_search"
    }

    fn protocol(&self) -> (&'static str, &'static str) {
        ("ODL-Search", "1.0")
    }

    async fn sets(&self, _after: Option<&str>, _count_max: usize) -> Result<Option<ComponentSets>, Failure> {
        Ok(None)
    }

    async fn ranked(&self, set: &str, prefix: &str) -> Result<Option<RankedList>, Failure> {
        let search = match self.read(set, prefix) {
            Ok(search) => search,
            Err(text) => return Ok(Some(RankedList::Refused(text))),
        };
        let (SearchSet { range, count_place, .. }, request) = search;
        let found = match run(&self.searches, move |index| index.search(&request)).await? {
            Answered::Found(found) => found,
            Answered::Refused(text) => return Ok(Some(RankedList::Refused(text))),
        };
        Ok(Some(RankedList::Records(RankedRecords {
            records: found.hits.into_iter().map(|hit| (hit.repository, hit.identifier)).collect(),
            offset: range.offset,
            hits: found.total.records,
            count_place,
        })))
    }
}

impl OdlSearch {
    /// The search of a set.
    ///
    /// # Errors
    ///
    /// The text of a `badArgument`.
    fn read(&self, set: &str, prefix: &str) -> Result<(SearchSet, SearchHits), String> {
        let search = dialects::read(set)?;
        let query = parse(search.language, &search.query).map_err(|error| error.to_string())?;
        let repositories = match &search.repository {
            None => self.repositories.clone(),
            Some(name) if self.repositories.contains(name) => vec![name.clone()],
            Some(name) => {
                return Err(format!(
                    "there is no repository \"{name}\" to search in; write null for all of them"
                ));
            }
        };
        let request = SearchHits {
            query,
            filter: RecordFilter { repositories: Some(repositories), prefix: Some(prefix.to_owned()) },
            ranking: Ranking::Relevance,
            offset: usize::try_from(search.range.offset).unwrap_or(usize::MAX),
            count_max: usize::try_from(search.range.count).unwrap_or(usize::MAX),
            with_facets: false,
        };
        Ok((search, request))
    }
}
