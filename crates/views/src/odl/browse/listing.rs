//! The sets of ODL-Browse in order: by category, and by value in it.

use super::category::BrowseCategory;
use super::odl_browse::OdlBrowse;
use super::set::BrowseSet;
use super::values::{query_of, years};
use oaimend_mirror::view::{ComponentSet, ComponentSets};
use oaimend_oai::set_spec;
use oaimend_search::query::FieldName;
use oaimend_search::{IndexError, Query, Ranking, RecordFilter, SearchHits, SearchIndex, Values};
use std::ops::Bound;
use std::sync::Arc;

/// A list of sets that is being filled.
pub(super) struct Listing<'b> {
    browse: &'b OdlBrowse,
    index: &'b SearchIndex,
    count_max: usize,
    sets: Vec<ComponentSet>,
    next: Option<String>,
}

impl<'b> Listing<'b> {
    /// The next sets after a position.
    ///
    /// # Errors
    ///
    /// The index does not answer.
    pub(super) fn read(
        browse: &'b OdlBrowse,
        index: &'b SearchIndex,
        after: Option<&str>,
        count_max: usize,
    ) -> Result<ComponentSets, IndexError> {
        let (first, mut after) = match after {
            None => (None, None),
            Some(position) => {
                position.split_once(':').map_or((None, None), |(name, at)| (Some(name), Some(at)))
            }
        };
        let mut listing = Self { browse, index, count_max, sets: Vec::new(), next: None };
        let is_before = |category: &&Arc<BrowseCategory>| first.is_some_and(|first| category.name != first);
        for category in browse.categories.iter().skip_while(is_before) {
            match listing.add(category, after.take()) {
                // Other categories can be browsed although this one has too many values.
                Ok(()) | Err(IndexError::Query(_)) => {}
                Err(error) => return Err(error),
            }
            if listing.next.is_some() {
                break;
            }
        }
        Ok(ComponentSets { sets: listing.sets, next: listing.next })
    }

    fn add(&mut self, category: &Arc<BrowseCategory>, after: Option<&str>) -> Result<(), IndexError> {
        if category.is_direct() { self.add_texts(category, after) } else { self.add_values(category, after) }
    }

    /// Adds the texts of a field. The position after one is its folded text.
    fn add_texts(&mut self, category: &Arc<BrowseCategory>, after: Option<&str>) -> Result<(), IndexError> {
        let room = self.count_max - self.sets.len();
        let request = Values {
            field: FieldName(category.field.clone()),
            filter: self.filter(),
            start: String::new(),
            after: after.map(str::to_owned),
            count_max: room + 1,
        };
        let mut last = after.map(str::to_owned).unwrap_or_default();
        for found in self.index.values(&request)? {
            if self.is_full(category, &last) {
                break;
            }
            last = found.folded;
            let path = category.path_of(&found.value).into_iter().flatten().collect::<Vec<_>>();
            // Values of other repositories have no record here.
            if !path.is_empty() && found.records > 0 {
                self.push(category, path, found.records);
            }
        }
        Ok(())
    }

    /// Adds the values of a category. The position after one is its path, as sets write it.
    fn add_values(&mut self, category: &Arc<BrowseCategory>, after: Option<&str>) -> Result<(), IndexError> {
        let until_secs = self.index.complete_until_secs()?;
        let texts = self.browse.values.texts(self.index, category, None, until_secs)?;
        let after: Option<Vec<String>> =
            after.map(|after| after.split(':').filter_map(set_spec::unescape_part).collect());
        let start = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let field = FieldName(category.field.clone());
        let mut last = String::new();
        for (path, texts) in texts.range::<Vec<String>, _>((start, Bound::Unbounded)) {
            if self.is_full(category, &last) {
                break;
            }
            let levels: Vec<String> = path.iter().map(|level| set_spec::escape_part(level)).collect();
            last = levels.join(":");
            let query = if category.is_year() { years(path) } else { query_of(&field, texts) };
            let records = self.count(query)?;
            // Values of other repositories have no record here.
            if records > 0 {
                self.push(category, path.clone(), records);
            }
        }
        Ok(())
    }

    /// Whether there is no room for a further set. The next list begins after `last` in this category.
    fn is_full(&mut self, category: &BrowseCategory, last: &str) -> bool {
        let is_full = self.sets.len() >= self.count_max;
        if is_full {
            self.next = Some(format!("{}:{last}", category.name));
        }
        is_full
    }

    fn push(&mut self, category: &Arc<BrowseCategory>, path: Vec<String>, records: u64) {
        let name = format!("{}: {}", category.name, path.join(" / "));
        let set = BrowseSet { category: Arc::clone(category), path };
        self.sets.push(ComponentSet { set_spec: set.set_spec(), name, records });
    }

    fn count(&self, query: Query) -> Result<u64, IndexError> {
        let request = SearchHits {
            query,
            filter: self.filter(),
            ranking: Ranking::Recent,
            offset: 0,
            count_max: 1,
            with_facets: false,
        };
        Ok(self.index.search(&request)?.total.records)
    }

    /// One record for each item: a set has records in several formats.
    fn filter(&self) -> RecordFilter {
        RecordFilter { repositories: Some(self.browse.repositories.to_vec()), prefix: None }
    }
}
