//! OpenURL 0.1 and 1.0: what a link of a library asks for.
//!
//! Databases and catalogues link from a citation to "the" library with an OpenURL: a query that describes the cited work.
//! [`ContextObject::parse`] reads it in both versions, as Key/Encoded-Value (ANSI/NISO Z39.88-2004, part 2, and the
//! "OpenURL Syntax Description" 0.1f of 2000). [`Referent::candidates`] are the identifiers to be resolved, in order. For a
//! citation without one, [`Referent::search`] is a query for [`oaimend_search`]. [`RequestedService`] is what the client
//! wants of the record, by the names that aDORe uses.
//!
//! Pure: no I/O, no clock. All values are text of a client, and nothing in them is fetched.
//!
//! # Which value counts
//!
//! Each value of the referent has a list of keys, those of version 1.0 before those of 0.1. The first key with a value
//! counts, and of a repeated key its first value. So a hybrid OpenURL is read by its keys of 1.0, and one that mixes both
//! versions by accident is understood too. Identifiers, authors, ISSNs and ISBNs are lists, in the order of the query.
//!
//! # For the route
//!
//! Pass the query string or the form, and answer a [`Refusal`] with its [`Refusal::status`]. Resolve the candidates one
//! after the other, and redirect (303) to the first that exists. Else run [`MetadataSearch::query`]: redirect to the record
//! if it is the only one, show a search for [`MetadataSearch::text`] if there are several, and answer 404 for none.

mod context_object;
mod identifiers;
mod parameters;
mod search;
mod service;
#[cfg(test)]
mod tests;

pub use context_object::{ContextObject, Referent};
pub use parameters::{PARAMETERS_BYTES_MAX, Refusal};
pub use search::MetadataSearch;
pub use service::{RequestedService, Service};
