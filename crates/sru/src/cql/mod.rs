//! CQL, the Contextual Query Language: the syntax of a query, without its meaning.
//!
//! The grammar of CQL 1.2 also reads the queries of CQL 1.1, which has no `sortBy`, and those of CQL 2.0, where only the
//! meaning of some names differs.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

pub(crate) use parser::parse;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CqlQuery {
    pub(crate) root: Node,
    /// The keys after `sortBy`.
    pub(crate) sort_keys: Vec<Named>,
}

/// A part of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Clause(Clause),
    Boolean {
        operator: BooleanOperator,
        modifiers: Vec<Modifier>,
        left: Box<Self>,
        right: Box<Self>,
    },
    /// Names of context sets, and the part of the query in which they hold.
    Scoped {
        prefixes: Vec<PrefixAssignment>,
        query: Box<Self>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BooleanOperator {
    And,
    Or,
    Not,
    Prox,
}

/// A term, and where it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clause {
    /// The index and its relation, as written; `None`: the choice of the server.
    pub(crate) place: Option<(String, Named)>,
    /// The term without its quotes, with its backslashes.
    pub(crate) term: String,
}

/// A name with modifiers: a relation or a sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) modifiers: Vec<Modifier>,
}

/// Such as `/stem` or `/distance<3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Modifier {
    pub(crate) name: String,
    /// The comparison symbol and the value.
    pub(crate) value: Option<(&'static str, String)>,
}

/// Such as `> dc = "info:srw/cql-context-set/1/dc-v1.1"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrefixAssignment {
    /// `None`: the set of indexes without a prefix.
    pub(crate) prefix: Option<String>,
    pub(crate) uri: String,
}
