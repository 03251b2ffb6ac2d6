//! The languages of queries, as a table: a further one is one file and one row.

use super::{Query, QueryError};
use oaimend_oai::named_enum;

named_enum! {
    /// A language of queries.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum QueryLanguage {
        /// `( '+' | '-' )? ( field ':' )? ( term | '"' phrase '"' )`, separated by spaces (Suleman and Fox, ODL-Search).
        Odl = "odlsearch1",
        /// The words of jOAI: all of them must match.
        Dlese = "dleseodlsearch",
    }
}

/// Parses a query.
///
/// # Errors
///
/// The query is no legal one of its language.
pub fn parse(_language: QueryLanguage, _text: &str) -> Result<Query, QueryError> {
    unimplemented!()
}
