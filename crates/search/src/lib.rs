//! Search over the mirror: the query language, the index, and its results.
//!
//! [`Searches`] runs searches on threads of their own, a few at once. [`query`] is what a query means, whatever language it was written in. [`SearchIndex`] answers queries from an index of
//! tantivy, and `RecordTexts` answers whether one record matches, for views. Both use the same analysis of texts, so
//! they never disagree.

mod index;
pub mod query;
mod results;
mod searches;

pub use index::{IndexError, IndexSettings, IndexStatus, SearchIndex};
pub use query::{FieldName, Query, QueryError};
pub use results::{
    FacetCount, Facets, Hit, HitCount, ListHits, ListedHits, RankedHits, Ranking, RecordFilter, SearchHits,
    ValueCount, Values,
};
pub use searches::Searches;
