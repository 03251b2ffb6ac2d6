//! The names of context sets in a part of a query.

use super::indexes::{CONTEXT_SETS, Index, find};
use crate::cql::PrefixAssignment;
use crate::{Diagnostic, DiagnosticCode};

/// The assigned prefixes, and the set of names without a prefix.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// In lower case, the innermost last.
    prefixes: Vec<(String, &'static str)>,
    default: Option<&'static str>,
}

impl Scope {
    /// The scope inside prefix assignments.
    pub(super) fn with(&self, assignments: &[PrefixAssignment]) -> Result<Self, Diagnostic> {
        let mut scope = self.clone();
        for PrefixAssignment { prefix, uri } in assignments {
            let set = CONTEXT_SETS.iter().find(|set| set.uris.contains(&uri.as_str()));
            let set = set.ok_or_else(|| Diagnostic::new(DiagnosticCode::UnsupportedContextSet, uri))?;
            match prefix {
                Some(prefix) => scope.prefixes.push((prefix.to_ascii_lowercase(), set.name)),
                None => scope.default = Some(set.name),
            }
        }
        Ok(scope)
    }

    /// The index with this name. A name without a prefix is one of Dublin Core, else one of CQL, unless the query assigns
    /// another set.
    pub(super) fn index(&self, name: &str) -> Result<Index, Diagnostic> {
        let found = match name.split_once('.') {
            Some((prefix, base_name)) => find(self.set(prefix)?, base_name),
            None => match self.default {
                Some(set) => find(set, name),
                None => find("dc", name).or_else(|| find("cql", name)),
            },
        };
        found.ok_or_else(|| Diagnostic::new(DiagnosticCode::UnsupportedIndex, name))
    }

    /// The name of a relation or a modifier without the prefix of its set, in lower case, if it is one of this set.
    pub(super) fn name_in(&self, set: &str, name: &str) -> Result<Option<String>, Diagnostic> {
        Ok(match name.split_once('.') {
            Some((prefix, base_name)) => (self.set(prefix)? == set).then(|| base_name.to_ascii_lowercase()),
            None => Some(name.to_ascii_lowercase()),
        })
    }

    /// The set that a prefix names.
    fn set(&self, prefix: &str) -> Result<&'static str, Diagnostic> {
        let lower = prefix.to_ascii_lowercase();
        let assigned = self.prefixes.iter().rev().find(|(assigned, _)| *assigned == lower);
        let known = || CONTEXT_SETS.iter().find(|set| set.name == lower).map(|set| set.name);
        let set = assigned.map(|(_, set)| *set).or_else(known);
        set.ok_or_else(|| Diagnostic::new(DiagnosticCode::UnsupportedContextSet, prefix))
    }
}
