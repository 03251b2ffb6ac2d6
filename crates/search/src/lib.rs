//! Search over the mirror: the query language, the index, and its results.
//!
//! [`query`] is what a query means, whatever language it was written in. [`SearchIndex`] answers queries from an index of
//! tantivy, and [`RecordTexts`] answers whether one record matches, for views. Both use the same analysis of texts, so
//! they never disagree. [`Searches`] runs searches on threads of their own, a few at once.

mod index;
pub mod query;
mod record_texts;
mod results;
mod searches;
mod text;

pub use index::{HITS_MAX, IndexError, IndexSettings, IndexStatus, RANK_MAX, SearchIndex, ValueCounts};
pub use query::{FieldName, Query, QueryError};
pub use record_texts::{DUBLIN_CORE, RecordTexts};
pub use results::{
    FacetCount, Facets, FoundValues, Hit, HitCount, IndexedFormats, ListHits, ListedHits, ListedRepository,
    RankedHits, Ranking, RecordFilter, SearchHits, ValueCount, Values,
};
pub use searches::{SearchClient, Searches};
pub use text::{Highlighter, Snippet, fold_value};
