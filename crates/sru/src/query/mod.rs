//! What a CQL query means for the search index.

mod clause;
mod indexes;
mod scope;
mod sort;
mod term;
#[cfg(test)]
mod tests;

pub(crate) use indexes::{CONTEXT_SETS, Index, described_indexes};
pub(crate) use sort::SORT_INDEX;

use crate::cql::{self, BooleanOperator, Clause, Node};
use crate::{Diagnostic, DiagnosticCode};
use oaimend_search::{FieldName, Query, Ranking};
use scope::Scope;

/// A query, and the order of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The query.
    pub query: Query,
    /// The order.
    pub ranking: Ranking,
}

impl Search {
    /// Reads a CQL query. The keys of `sortKeys`, the parameter, hold if the query has no `sortBy`.
    ///
    /// # Errors
    ///
    /// The query is no CQL, exceeds a limit, or uses what is not supported.
    pub(crate) fn parse(cql: &str, sort_keys: Option<&str>) -> Result<Self, Diagnostic> {
        let parsed = cql::parse(cql)?;
        let scope = Scope::default();
        let ranking = match (parsed.sort_keys.as_slice(), sort_keys) {
            ([], Some(keys)) => sort::of_parameter(keys)?,
            (keys, _) => sort::of_query(keys, &scope_of_root(&parsed.root, scope.clone())?)?,
        };
        Ok(Self { query: meaning(parsed.root, &scope)?, ranking })
    }
}

/// The values of a field from a term on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The field.
    pub field: FieldName,
    /// The term, without escapes; empty for the first value.
    pub term: String,
}

impl Scan {
    /// Reads a `scanClause`: one clause of CQL. Its relation has no effect.
    ///
    /// # Errors
    ///
    /// It is not one clause, or its index has no list of values.
    pub(crate) fn parse(cql: &str) -> Result<Self, Diagnostic> {
        let parsed = cql::parse(cql)?;
        let mut scope = Scope::default();
        let mut node = parsed.root;
        while let Node::Scoped { prefixes, query } = node {
            scope = scope.with(&prefixes)?;
            node = *query;
        }
        let Node::Clause(Clause { place, term }) = node else {
            return Err(Diagnostic::new(DiagnosticCode::QuerySyntaxError, "a scan needs a single clause"));
        };
        let name = place.map_or_else(|| "cql.serverChoice".to_owned(), |(index, _)| index);
        let Index::Field(field) = scope.index(&name)? else {
            return Err(Diagnostic::new(DiagnosticCode::UnsupportedIndex, name));
        };
        Ok(Self { field: FieldName(field.to_owned()), term: term::literal(&term)? })
    }
}

/// The scope at the end of a query: that of the prefix assignments before all of it.
fn scope_of_root(root: &Node, scope: Scope) -> Result<Scope, Diagnostic> {
    match root {
        Node::Scoped { prefixes, query } => scope_of_root(query, scope.with(prefixes)?),
        _ => Ok(scope),
    }
}

fn meaning(node: Node, scope: &Scope) -> Result<Query, Diagnostic> {
    match node {
        Node::Clause(clause) => clause::meaning(clause, scope),
        Node::Scoped { prefixes, query } => meaning(*query, &scope.with(&prefixes)?),
        Node::Boolean { operator, modifiers, left, right } => {
            if operator == BooleanOperator::Prox {
                return Err(Diagnostic::new(DiagnosticCode::ProximityNotSupported, ""));
            }
            if let Some(modifier) = modifiers.into_iter().next() {
                return Err(Diagnostic::new(DiagnosticCode::UnsupportedBooleanModifier, modifier.name));
            }
            Ok(joined(operator, meaning(*left, scope)?, meaning(*right, scope)?))
        }
    }
}

/// Two operands as one query. A chain of one operator is one level deep.
fn joined(operator: BooleanOperator, left: Query, right: Query) -> Query {
    let (mut required, mut optional, mut excluded) = match left {
        Query::Boolean { required, optional, excluded }
            if optional.is_empty() && operator != BooleanOperator::Or =>
        {
            (required, optional, excluded)
        }
        Query::Boolean { required, optional, excluded }
            if required.is_empty() && excluded.is_empty() && operator == BooleanOperator::Or =>
        {
            (required, optional, excluded)
        }
        left if operator == BooleanOperator::Or => (Vec::new(), vec![left], Vec::new()),
        left => (vec![left], Vec::new(), Vec::new()),
    };
    match operator {
        BooleanOperator::Or => optional.push(right),
        BooleanOperator::Not => excluded.push(right),
        BooleanOperator::And | BooleanOperator::Prox => required.push(right),
    }
    Query::Boolean { required, optional, excluded }
}
