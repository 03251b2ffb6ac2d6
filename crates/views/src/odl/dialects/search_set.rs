//! What the set of a search says, in any dialect.

use oaimend_mirror::view::CountPlace;
use oaimend_search::query::QueryLanguage;

/// Maximum number of records of a request.
pub(crate) const RECORDS_MAX: u64 = 1_000;
/// The lowest rank that a request can name. An index ranks all records above it in memory.
const RANK_MAX: u64 = 10_000;

/// A search, as its set describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchSet {
    pub(crate) language: QueryLanguage,
    /// The query as written, with the escapes of the dialect resolved.
    pub(crate) query: String,
    /// The repository whose records are searched; `None`: all.
    pub(crate) repository: Option<String>,
    pub(crate) range: RankRange,
    /// Where the response says how many records match.
    pub(crate) count_place: CountPlace,
}

/// A range of ranked records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RankRange {
    /// The number of records before the first one.
    pub(crate) offset: u64,
    /// Maximum number of records, from 1 to [`RECORDS_MAX`].
    pub(crate) count: u64,
}

/// A form of sets.
pub(super) struct Dialect {
    /// The names before the first slash.
    pub(super) names: &'static [&'static str],
    /// The form, and an example.
    pub(super) form: &'static str,
    /// Reads what follows the name. The error says what is wrong.
    pub(super) read: fn(&str) -> Result<SearchSet, String>,
}

impl RankRange {
    /// A range of `count` records after the first `offset` ones.
    ///
    /// # Errors
    ///
    /// The range is empty, too long, or too far from the first record.
    pub(super) fn new(offset: u64, count: u64) -> Result<Self, String> {
        let last = offset.saturating_add(count);
        if count == 0 {
            Err("no record is requested".to_owned())
        } else if count > RECORDS_MAX {
            Err(format!("{count} records are requested, but a request returns at most {RECORDS_MAX}"))
        } else if last > RANK_MAX {
            Err(format!(
                "the record of rank {last} is requested, but only the first {RANK_MAX} are ranked: a query set of \
                 /_all lists all records of a query"
            ))
        } else {
            Ok(Self { offset, count })
        }
    }
}

/// Reads a number.
///
/// # Errors
///
/// The text of `name` is no number, or one that does not fit 64 bits.
pub(crate) fn read_number(name: &str, text: &str) -> Result<u64, String> {
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| format!("{name} is no number of records"))
}
