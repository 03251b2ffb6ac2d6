//! `odlsearch1/QUERY/START/STOP`, as Suleman and Fox describe it. Their grammar is called `odsearch1` and their examples
//! say `odlsearch1`, so both are accepted.

use super::search_set::{Dialect, RankRange, SearchSet, read_number};
use oaimend_mirror::view::CountPlace;
use oaimend_search::query::QueryLanguage;

pub(super) const DIALECT: Dialect = Dialect {
    names: &["odlsearch1", "odsearch1"],
    form: "odlsearch1/QUERY/START/STOP, such as odlsearch1/computer science/1/10 for the ten best records",
    read,
};

/// Reads `QUERY/START/STOP` from the right, because the query may contain slashes.
fn read(rest: &str) -> Result<SearchSet, String> {
    let mut parts = rest.rsplitn(3, '/');
    let (Some(stop), Some(start), Some(query)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("start and stop are missing".to_owned());
    };
    let (start, stop) = (read_number("start", start)?, read_number("stop", stop)?);
    let Some(offset) = start.checked_sub(1) else {
        return Err("the first record has number 1".to_owned());
    };
    let Some(count) = stop.checked_sub(offset).filter(|count| *count > 0) else {
        return Err(format!("start {start} is after stop {stop}"));
    };
    Ok(SearchSet {
        language: QueryLanguage::Odl,
        query: query.to_owned(),
        repository: None,
        range: RankRange::new(offset, count)?,
        count_place: CountPlace::ResponseContainer,
    })
}
