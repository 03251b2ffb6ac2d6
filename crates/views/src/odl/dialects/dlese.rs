//! `dleseodlsearch/QUERY/SET/OFFSET/LENGTH`, the dialect of jOAI ("ODL Search Specification" in its documentation), the
//! only one that is still in use.

use super::search_set::{Dialect, RankRange, SearchSet, read_number};
use oaimend_mirror::view::CountPlace;
use oaimend_search::query::QueryLanguage;

pub(super) const DIALECT: Dialect = Dialect {
    names: &["dleseodlsearch"],
    form: "dleseodlsearch/QUERY/SET/OFFSET/LENGTH, such as dleseodlsearch/ocean weather/null/0/10",
    read,
};

/// The set of all records.
const ALL: &str = "null";

/// Reads `QUERY/SET/OFFSET/LENGTH`. Clients write `+` for a blank and `%2F` for a slash in the query, and some of them
/// encode both once more for the URL.
fn read(rest: &str) -> Result<SearchSet, String> {
    let mut parts = rest.rsplitn(4, '/');
    let (Some(length), Some(offset), Some(set), Some(query)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("set, offset and length are missing".to_owned());
    };
    if set.is_empty() {
        return Err("the set is empty".to_owned());
    }
    Ok(SearchSet {
        language: QueryLanguage::Dlese,
        query: query.replace('+', " ").replace("%2F", "/").replace("%2f", "/"),
        repository: (set != ALL).then(|| set.to_owned()),
        range: RankRange::new(read_number("offset", offset)?, read_number("length", length)?)?,
        count_place: CountPlace::ResumptionToken,
    })
}
