//! The languages of queries, as a table: a further one is one file and one row.

use super::odl::{self, Unmarked};
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

/// Parses a query. Whether its fields exist is known where it is used: the index refuses unknown ones.
///
/// # Errors
///
/// The query is no legal one of its language, or it is too long.
pub fn parse(language: QueryLanguage, text: &str) -> Result<Query, QueryError> {
    match language {
        QueryLanguage::Odl => odl::parse(text, Unmarked::Optional),
        QueryLanguage::Dlese => odl::parse(text, Unmarked::Required),
    }
}

impl QueryLanguage {
    /// The language with this name. The paper writes `odlsearch1` and `odsearch1`.
    pub fn named(name: &str) -> Option<Self> {
        if name == "odsearch1" { Some(Self::Odl) } else { Self::from_name(name) }
    }
}
