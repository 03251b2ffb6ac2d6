//! Search as people and programs use it: the URLs of results, and results as a feed, as JSON, and for reference managers.
//!
//! [`SearchAddress`] is the state of a search as its URL has it. [`SearchResults`] are what the index and the mirror found;
//! [`atom_feed`] and [`json_results`] write them for programs, and [`SearchPage`](super::html::SearchPage) for people.
//! [`open_search_description`] and [`suggestions`] are for the search boxes of browsers. Pure: no I/O.

mod address;
mod atom;
mod coins;
mod form;
mod json;
mod open_search;
mod results;

pub use address::{
    FacetKind, PAGE_ITEMS, PAGES_MAX, ResultList, SUGGESTIONS_PATH, SearchAddress, SearchFault, SortOrder,
};
pub use atom::{AtomFeed, FeedPlace, atom_feed};
pub(crate) use coins::context_object;
pub use form::{SearchForm, SearchTarget};
pub use json::json_results;
pub use open_search::{open_search_description, suggestions};
pub use results::{Facet, FacetValue, MarkedText, SearchItem, SearchResults};
