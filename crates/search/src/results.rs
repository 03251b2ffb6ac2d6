//! Requests to the index, and its results.

use crate::query::{FieldName, Query};
use oaimend_oai::UnixSecs;
use std::collections::BTreeMap;

/// The records that a request considers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordFilter {
    /// The repositories; `None`: all.
    pub repositories: Option<Vec<String>>,
    /// The metadataPrefix. `None`: one record for each item, in the format that describes it best.
    pub prefix: Option<String>,
}

/// The formats that the index contains of repositories: by repository, the metadataPrefixes. Of others it contains all.
pub type IndexedFormats = BTreeMap<String, Vec<String>>;

/// A request for the best or the newest records of a query: pages for people, ODL-Search, SRU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHits {
    /// The query.
    pub query: Query,
    /// The records that are considered.
    pub filter: RecordFilter,
    /// The order.
    pub ranking: Ranking,
    /// The number of hits before the first one.
    pub offset: usize,
    /// Maximum number of hits.
    pub count_max: usize,
    /// Whether facets are counted.
    pub with_facets: bool,
}

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ranking {
    /// The most relevant first (BM25). Equal ones are in a fixed order.
    #[default]
    Relevance,
    /// The latest publication first; records without a year last.
    Newest,
    /// The earliest publication first; records without a year last.
    Oldest,
    /// The last commit to the mirror first.
    Recent,
}

/// A found record. Its bytes are in the mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The repository.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// The identifier.
    pub identifier: String,
    /// The time of the commit of its version, in seconds since 1970.
    pub stamp_secs: UnixSecs,
    /// The place of this version among the changes of its collection. The record has changed if the mirror has another one.
    pub sequence: u64,
    /// The score; 0 where the order is not by relevance.
    pub score: f32,
}

/// The number of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCount {
    /// The number.
    pub records: u64,
    /// Whether it is estimated.
    pub is_estimate: bool,
}

/// The hits of a [`SearchHits`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankedHits {
    /// The hits in order.
    pub hits: Vec<Hit>,
    /// The number of all hits.
    pub total: HitCount,
    /// The facets, if requested.
    pub facets: Option<Facets>,
}

/// How many hits have which value, the most frequent values first, at most 50 for each facet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// By repository.
    pub repositories: Vec<FacetCount>,
    /// By type (`WorkType`).
    pub types: Vec<FacetCount>,
    /// By year of publication.
    pub years: Vec<FacetCount>,
    /// By language tag.
    pub languages: Vec<FacetCount>,
    /// By access: `open` and `other`.
    pub access: Vec<FacetCount>,
    /// Whether the counts are estimates, because there are too many hits to count all.
    pub is_estimate: bool,
}

/// A value of a facet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetCount {
    /// The value.
    pub value: String,
    /// The number of hits that have it.
    pub records: u64,
}

/// A request for records of a query in the order of their datestamps: query sets. The datestamp of a record is its stamp,
/// or the lowest datestamp of its repository if that is later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListHits {
    /// The query.
    pub query: Query,
    /// The repositories; `None`: all, with their stamps as datestamps.
    pub repositories: Option<Vec<ListedRepository>>,
    /// The metadataPrefix.
    pub prefix: String,
    /// The first datestamp, in seconds since 1970; `None`: no bound.
    pub from_secs: Option<UnixSecs>,
    /// The last datestamp, in seconds since 1970; `None`: no bound.
    pub until_secs: Option<UnixSecs>,
    /// The place (datestamp, repository, sequence) after which the list continues; `None`: at its start.
    pub after: Option<(UnixSecs, String, u64)>,
    /// Maximum number of hits, at most [`HITS_MAX`](crate::HITS_MAX).
    pub count_max: usize,
}

/// A repository of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedRepository {
    /// Its name.
    pub name: String,
    /// The lowest datestamp of its records, in seconds since 1970; `None`: no bound.
    pub lowest_secs: Option<UnixSecs>,
}

/// The hits of a [`ListHits`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedHits {
    /// The hits in the order (datestamp, repository, sequence).
    pub hits: Vec<Hit>,
    /// The number of hits of the whole list, without `after` and `count_max`.
    pub total: u64,
    /// The index contains all commits with stamps up to this one, in seconds since 1970. A list must not end later.
    pub complete_until_secs: Option<UnixSecs>,
}

/// A request for the values of a field in the order of their folded text: browsing, scan, suggestions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The field.
    pub field: FieldName,
    /// The records that are considered.
    pub filter: RecordFilter,
    /// Only values that begin so, folded.
    pub start: String,
    /// Only values after this one, folded; `None`: from the first one.
    pub after: Option<String>,
    /// Maximum number of values.
    pub count_max: usize,
}

/// What answers a [`Values`] request.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundValues {
    /// The values in order.
    Values(Vec<ValueCount>),
    /// The records of the filter. They are so few that reading them costs less than reading all terms of the index between
    /// their values; [`ValueCounts`](crate::ValueCounts) lists these.
    Records(Vec<Hit>),
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueCount {
    /// The folded text, by which values are ordered.
    pub folded: String,
    /// The text as the first record has it.
    pub value: String,
    /// The number of records that have it.
    pub records: u64,
}
