//! The sets of ODL-Search: a query, its language, and the range of the ranked records that a request wants.
//!
//! Suleman and Fox write `language/query/start/stop`. Each dialect is a row of [`DIALECTS`] and a file: what its sets
//! look like, and the language of its queries. Pure: no I/O.

mod dlese;
mod odlsearch1;
mod search_set;

pub(crate) use search_set::{RECORDS_MAX, SearchSet, read_number};

use search_set::Dialect;

const DIALECTS: &[Dialect] = &[odlsearch1::DIALECT, dlese::DIALECT];

/// Reads a set.
///
/// # Errors
///
/// The text of a `badArgument`: what is wrong, and how a search is written.
pub(crate) fn read(set: &str) -> Result<SearchSet, String> {
    let (name, rest) = set.split_once('/').unwrap_or((set, ""));
    let dialect = DIALECTS.iter().find(|dialect| dialect.names.contains(&name));
    let Some(dialect) = dialect else {
        let forms: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.form).collect();
        return Err(format!("this set is no search; write {}", forms.join(", or ")));
    };
    (dialect.read)(rest).map_err(|problem| format!("{problem}; write {}", dialect.form))
}

#[cfg(test)]
mod tests {
    use super::search_set::RankRange;
    use super::*;
    use oaimend_mirror::view::CountPlace;
    use oaimend_search::query::QueryLanguage;

    #[track_caller]
    fn refused(set: &str, expected: &str) {
        let text = read(set).expect_err(set);
        assert!(text.contains(expected), "{set}: {text}");
        assert!(text.contains("; write "), "{set}: {text}");
    }

    #[test]
    fn odlsearch1_counts_from_one_and_includes_both_ends() {
        let search = |query: &str, offset, count| SearchSet {
            language: QueryLanguage::Odl,
            query: query.to_owned(),
            repository: None,
            range: RankRange { offset, count },
            count_place: CountPlace::ResponseContainer,
        };
        for (set, expected) in [
            ("odlsearch1/computer science/1/10", search("computer science", 0, 10)),
            ("odsearch1/+language:ger/11/20", search("+language:ger", 10, 10)),
            ("odlsearch1/a/b//c/1/1/7/7", search("a/b//c/1/1", 6, 1)),
            ("odlsearch1//1/1000", search("", 0, 1_000)),
            ("odlsearch1/x/9001/10000", search("x", 9_000, 1_000)),
        ] {
            assert_eq!(read(set), Ok(expected), "{set}");
        }
    }

    #[test]
    fn jo_ai_counts_from_zero_and_names_a_repository() {
        let search = |query: &str, repository: Option<&str>, offset, count| SearchSet {
            language: QueryLanguage::Dlese,
            query: query.to_owned(),
            repository: repository.map(str::to_owned),
            range: RankRange { offset, count },
            count_place: CountPlace::ResumptionToken,
        };
        for (set, expected) in [
            ("dleseodlsearch/ocean/null/0/10", search("ocean", None, 0, 10)),
            ("dleseodlsearch/ocean weather/dcc/10/10", search("ocean weather", Some("dcc"), 10, 10)),
            ("dleseodlsearch/ocean+OR+weather/null/0/10", search("ocean OR weather", None, 0, 10)),
            ("dleseodlsearch/tides%2Fwaves%2f/null/0/1", search("tides/waves/", None, 0, 1)),
            ("dleseodlsearch/a/b/null/0/1", search("a/b", None, 0, 1)),
        ] {
            assert_eq!(read(set), Ok(expected), "{set}");
        }
    }

    #[test]
    fn a_wrong_set_is_refused_with_the_right_form() {
        for set in ["", "/", "odlsearch", "x:a", "ODLSEARCH1/a/1/2", "odlsearch2/a/1/2", " odlsearch1/a/1/2"]
        {
            refused(set, "this set is no search");
        }
        for (set, expected) in [
            ("odlsearch1", "start and stop are missing"),
            ("odlsearch1/", "start and stop are missing"),
            ("odlsearch1/a", "start and stop are missing"),
            ("odlsearch1/a/1", "start and stop are missing"),
            ("odlsearch1/a/1/", "stop is no number"),
            ("odlsearch1/a/x/2", "start is no number"),
            ("odlsearch1/a/-1/2", "start is no number"),
            ("odlsearch1/a/+1/2", "start is no number"),
            ("odlsearch1/a/1.0/2", "start is no number"),
            ("odlsearch1/a/１/2", "start is no number"),
            ("odlsearch1/a/1/99999999999999999999999", "stop is no number"),
            ("odlsearch1/a/0/10", "the first record has number 1"),
            ("odlsearch1/a/0/0", "the first record has number 1"),
            ("odlsearch1/a/10/9", "start 10 is after stop 9"),
            ("odlsearch1/a/1/1001", "at most 1000"),
            ("odlsearch1/a/1/18446744073709551615", "at most 1000"),
            ("odlsearch1/a/10000/10001", "the first 10000"),
            ("odlsearch1/a/18446744073709551615/18446744073709551615", "the first 10000"),
            ("dleseodlsearch/a/0/10", "set, offset and length are missing"),
            ("dleseodlsearch/a/null/0/0", "no record is requested"),
            ("dleseodlsearch/a/null/0/1001", "at most 1000"),
            ("dleseodlsearch/a/null/-1/10", "offset is no number"),
            ("dleseodlsearch/a/null/18446744073709551615/10", "the first 10000"),
            ("dleseodlsearch/a//0/10", "the set is empty"),
        ] {
            refused(set, expected);
        }
    }

    #[test]
    fn a_long_set_is_read_in_linear_time() {
        let terms = "a/".repeat(500_000);
        assert_eq!(read(&format!("odlsearch1/{terms}x/1/2")).map(|search| search.query.len()), Ok(1_000_001));
        let text = read(&format!("odlsearch1/{terms}")).expect_err("no numbers at its end");
        assert!(text.starts_with("start is no number") && text.len() < 200);
    }
}
