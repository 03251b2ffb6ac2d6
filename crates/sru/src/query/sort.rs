//! The order of records: `sortBy` in a query, and the parameter `sortKeys`.

use super::indexes::Index;
use super::scope::Scope;
use crate::cql::Named;
use crate::{Diagnostic, DiagnosticCode};
use oaimend_search::Ranking;

/// The index by which records can be sorted, with its context set. Without a key they are in the order of relevance.
pub(crate) const SORT_INDEX: (&str, &str) = ("dc", "date");

/// The order of the keys after `sortBy`.
pub(super) fn of_query(keys: &[Named], scope: &Scope) -> Result<Ranking, Diagnostic> {
    let key = match keys {
        [] => return Ok(Ranking::Relevance),
        [key] => key,
        _ => return Err(Diagnostic::new(DiagnosticCode::TooManySortKeys, "1")),
    };
    if scope.index(&key.name)? != Index::Field(SORT_INDEX.1) {
        return Err(Diagnostic::new(DiagnosticCode::UnsupportedPathForSort, key.name.as_str()));
    }
    let mut ranking = Ranking::Oldest;
    for modifier in &key.modifiers {
        let name = scope.name_in("sort", &modifier.name)?;
        ranking = match (name.as_deref(), &modifier.value) {
            (Some("ascending"), None) => Ranking::Oldest,
            (Some("descending"), None) => Ranking::Newest,
            _ => {
                return Err(Diagnostic::new(DiagnosticCode::UnsupportedSortSequence, modifier.name.as_str()));
            }
        };
    }
    Ok(ranking)
}

/// The order of `sortKeys`: keys `path,schema,ascending,caseSensitive,missingValue` with spaces between them.
pub(super) fn of_parameter(keys: &str) -> Result<Ranking, Diagnostic> {
    let keys: Vec<&str> = keys.split_whitespace().collect();
    let key = match keys.as_slice() {
        [] => return Ok(Ranking::Relevance),
        [key] => *key,
        _ => return Err(Diagnostic::new(DiagnosticCode::TooManySortKeys, "1")),
    };
    let mut parts = key.split(',');
    let mut next = || parts.next().unwrap_or_default();
    let (path, schema, ascending, _case, missing) = (next(), next(), next(), next(), next());
    let (set, name) = SORT_INDEX;
    if path.strip_prefix(set).and_then(|path| path.strip_prefix('.')).unwrap_or(path) != name {
        return Err(Diagnostic::new(DiagnosticCode::UnsupportedPathForSort, path));
    }
    if !schema.is_empty() && crate::RecordSchema::find(schema) != Some(crate::RecordSchema::DublinCore) {
        return Err(Diagnostic::new(DiagnosticCode::UnsupportedSchemaForSort, schema));
    }
    let (ranking, last) = match ascending {
        "" | "1" | "true" => (Ranking::Oldest, "highValue"),
        "0" | "false" => (Ranking::Newest, "lowValue"),
        _ => return Err(Diagnostic::new(DiagnosticCode::UnsupportedSortSequence, key)),
    };
    if missing.is_empty() || missing == last {
        return Ok(ranking);
    }
    Err(Diagnostic::new(DiagnosticCode::UnsupportedMissingValueAction, missing))
}
