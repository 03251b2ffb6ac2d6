//! The values of categories whose values are not the texts of their field: which texts have which value.
//!
//! The index knows texts. A list of a value asks for all texts that have it, so the texts of the field are read first.
//! What was read is used again as long as the index has no later commit that a list contains.

use super::category::BrowseCategory;
use oaimend_oai::UnixSecs;
use oaimend_search::query::FieldName;
use oaimend_search::{IndexError, Query, RecordFilter, SearchIndex, Values};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of different texts of a field.
const TEXTS_MAX: usize = 100_000;
/// The texts that are read at once.
const TEXTS_READ: usize = 10_000;
/// Maximum number of tables in memory. Each has at most [`TEXTS_MAX`] texts.
const TABLES_MAX: usize = 16;

/// The texts of each value, by the levels of the value.
pub(super) type TextsByValue = BTreeMap<Vec<String>, Vec<String>>;

/// The values of the categories, kept in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct CategoryValues(Arc<Mutex<HashMap<TableKey, Table>>>);

/// The category, and the format whose records are considered.
type TableKey = (String, Option<String>);

#[derive(Clone, Debug)]
struct Table {
    /// It contains all commits up to this stamp.
    complete_until_secs: Option<UnixSecs>,
    texts: Arc<TextsByValue>,
}

impl CategoryValues {
    /// The query for the records that have a value or one below it.
    ///
    /// # Errors
    ///
    /// The index does not answer, or the field has more than [`TEXTS_MAX`] texts.
    pub(super) fn query(
        &self,
        index: &SearchIndex,
        (category, path): (&BrowseCategory, &[String]),
        prefix: Option<String>,
        until_secs: Option<UnixSecs>,
    ) -> Result<Query, IndexError> {
        let field = FieldName(category.field.clone());
        if category.is_direct() {
            return Ok(Query::Value { field, value: path.concat() });
        }
        if category.is_year() {
            return Ok(years(path));
        }
        let texts = self.texts(index, category, prefix, until_secs)?;
        Ok(query_of(&field, texts.get(path).map(Vec::as_slice).unwrap_or_default()))
    }

    /// The texts of each value, complete up to a stamp.
    ///
    /// # Errors
    ///
    /// As for [`CategoryValues::query`].
    pub(super) fn texts(
        &self,
        index: &SearchIndex,
        category: &BrowseCategory,
        prefix: Option<String>,
        until_secs: Option<UnixSecs>,
    ) -> Result<Arc<TextsByValue>, IndexError> {
        let key = (category.name.clone(), prefix.clone());
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(Table { texts, .. }) = known.filter(|known| known.complete_until_secs >= until_secs) {
            return Ok(texts);
        }
        // Read before the texts: commits after it may be missing from them.
        let complete_until_secs = index.complete_until_secs()?;
        let texts = Arc::new(read_texts(index, category, prefix)?);
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.len() >= TABLES_MAX {
            tables.clear();
        }
        tables.insert(key, Table { complete_until_secs, texts: Arc::clone(&texts) });
        Ok(texts)
    }
}

/// The query for the records that were published in a year.
pub(super) fn years(path: &[String]) -> Query {
    let year = path.concat().parse::<u16>().ok();
    // No record has this year.
    let year = Some(year.unwrap_or(u16::MAX));
    Query::Years { from: year, until: year }
}

/// The query for the records that have one of these texts in a field.
pub(super) fn query_of(field: &FieldName, texts: &[String]) -> Query {
    Query::AnyValue { field: field.clone(), values: texts.to_vec() }
}

fn read_texts(
    index: &SearchIndex,
    category: &BrowseCategory,
    prefix: Option<String>,
) -> Result<TextsByValue, IndexError> {
    let mut texts = TextsByValue::new();
    let mut request = Values {
        field: category.text_field(),
        // Those of repositories that are not mirrored any more find no record.
        filter: RecordFilter { repositories: None, prefix },
        start: String::new(),
        after: None,
        count_max: TEXTS_READ,
    };
    let mut count = 0;
    loop {
        let read = index.values(&request)?;
        count += read.len();
        if count > TEXTS_MAX {
            let (field, name) = (&category.field, &category.name);
            return Err(IndexError::Query(oaimend_search::QueryError::TooLarge(format!(
                "the field {field} has more than {TEXTS_MAX} texts, so the category {name} cannot be browsed"
            ))));
        }
        let is_last = read.len() < TEXTS_READ;
        request.after = read.last().map(|value| value.folded.clone());
        for found in read {
            let path = category.path_of(&found.value).unwrap_or_default();
            for levels in 1..=path.len() {
                let above = path.iter().take(levels).cloned().collect();
                texts.entry(above).or_default().push(found.value.clone());
            }
        }
        if is_last {
            return Ok(texts);
        }
    }
}
