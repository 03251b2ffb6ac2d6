//! The grammar of CQL 1.2 (appendix A of the specification), by recursive descent.
//!
//! Boolean operators have the same precedence and group from the left.

use super::lexer::{Keyword, Token, TokenKind, tokens};
use super::{BooleanOperator, Clause, CqlQuery, Modifier, Named, Node, PrefixAssignment};
use crate::{Diagnostic, DiagnosticCode};
use std::iter::Peekable;
use std::vec::IntoIter;

/// Maximum number of parentheses around a term.
const NESTING_MAX: usize = 32;
/// Maximum number of boolean operators in a query.
const BOOLEANS_MAX: usize = 63;

/// Parses a query.
pub(crate) fn parse(query: &str) -> Result<CqlQuery, Diagnostic> {
    let tokens = tokens(query)?.into_iter().peekable();
    let mut parser = Parser { tokens, end: query.len(), nesting: 0, booleans: 0 };
    let root = parser.query()?;
    let sort_keys = parser.sort_keys()?;
    match parser.tokens.next() {
        None => Ok(CqlQuery { root, sort_keys }),
        Some(Token { kind: TokenKind::Close, start }) => Err(parentheses(start)),
        Some(token) => Err(syntax_error(token.start, "the query should end here")),
    }
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
    /// The length of the query, in bytes.
    end: usize,
    nesting: usize,
    booleans: usize,
}

impl Parser {
    /// Prefix assignments and the clauses in which they hold.
    fn query(&mut self) -> Result<Node, Diagnostic> {
        let mut prefixes = Vec::new();
        while self.take_symbol(&[">"]).is_some() {
            prefixes.push(self.prefix_assignment()?);
        }
        let clauses = self.clauses()?;
        if prefixes.is_empty() {
            return Ok(clauses);
        }
        Ok(Node::Scoped { prefixes, query: Box::new(clauses) })
    }

    fn prefix_assignment(&mut self) -> Result<PrefixAssignment, Diagnostic> {
        let first = self.term()?;
        if self.take_symbol(&["="]).is_none() {
            return Ok(PrefixAssignment { prefix: None, uri: first });
        }
        Ok(PrefixAssignment { prefix: Some(first), uri: self.term()? })
    }

    fn clauses(&mut self) -> Result<Node, Diagnostic> {
        let mut left = self.clause()?;
        while let Some(operator) = self.take_operator() {
            self.booleans += 1;
            if self.booleans > BOOLEANS_MAX {
                let details = BOOLEANS_MAX.to_string();
                return Err(Diagnostic::new(DiagnosticCode::TooManyBooleanOperators, details));
            }
            let modifiers = self.modifiers()?;
            let right = self.clause()?;
            left = Node::Boolean { operator, modifiers, left: Box::new(left), right: Box::new(right) };
        }
        Ok(left)
    }

    fn take_operator(&mut self) -> Option<BooleanOperator> {
        let operator = match self.tokens.peek()?.kind {
            TokenKind::Keyword(Keyword::And, _) => BooleanOperator::And,
            TokenKind::Keyword(Keyword::Or, _) => BooleanOperator::Or,
            TokenKind::Keyword(Keyword::Not, _) => BooleanOperator::Not,
            TokenKind::Keyword(Keyword::Prox, _) => BooleanOperator::Prox,
            _ => return None,
        };
        self.tokens.next();
        Some(operator)
    }

    /// A query in parentheses, a term, or an index with a relation and a term.
    fn clause(&mut self) -> Result<Node, Diagnostic> {
        if let Some(open) = self.tokens.next_if(|token| token.kind == TokenKind::Open) {
            return self.parenthesis(open.start);
        }
        let first = self.term()?;
        let Some(name) = self.take_relation() else {
            return Ok(Node::Clause(Clause { place: None, term: first }));
        };
        let modifiers = self.modifiers()?;
        let term = self.term()?;
        Ok(Node::Clause(Clause { place: Some((first, Named { name, modifiers })), term }))
    }

    fn parenthesis(&mut self, start: usize) -> Result<Node, Diagnostic> {
        if self.nesting == NESTING_MAX {
            return Err(parentheses(start));
        }
        self.nesting += 1;
        let query = self.query()?;
        self.nesting -= 1;
        match self.tokens.next() {
            Some(Token { kind: TokenKind::Close, .. }) => Ok(query),
            Some(token) => Err(syntax_error(token.start, "a boolean operator or \")\" is missing")),
            None => Err(parentheses(start)),
        }
    }

    /// A comparison symbol, or a name where no boolean operator is.
    fn take_relation(&mut self) -> Option<String> {
        let relation = match &mut self.tokens.peek_mut()?.kind {
            TokenKind::Symbol(symbol) => (*symbol).to_owned(),
            TokenKind::Text(text) => std::mem::take(text),
            _ => return None,
        };
        self.tokens.next();
        Some(relation)
    }

    fn modifiers(&mut self) -> Result<Vec<Modifier>, Diagnostic> {
        let mut modifiers = Vec::new();
        while self.tokens.next_if(|token| token.kind == TokenKind::Slash).is_some() {
            let name = self.term()?;
            let symbol = self.take_symbol(&["=", ">", "<", ">=", "<=", "<>", "=="]);
            let value = symbol.map(|symbol| Ok((symbol, self.term()?))).transpose()?;
            modifiers.push(Modifier { name, value });
        }
        Ok(modifiers)
    }

    fn take_symbol(&mut self, symbols: &[&str]) -> Option<&'static str> {
        let TokenKind::Symbol(symbol) = self.tokens.peek()?.kind else { return None };
        if !symbols.contains(&symbol) {
            return None;
        }
        self.tokens.next();
        Some(symbol)
    }

    /// A text, or a keyword where only a text can be.
    fn term(&mut self) -> Result<String, Diagnostic> {
        match self.tokens.next() {
            Some(Token { kind: TokenKind::Text(text) | TokenKind::Keyword(_, text), .. }) => Ok(text),
            Some(Token { kind: TokenKind::Close, start }) => Err(parentheses(start)),
            Some(token) => Err(syntax_error(token.start, "a term is missing")),
            None => Err(syntax_error(self.end, "a term is missing")),
        }
    }

    fn sort_keys(&mut self) -> Result<Vec<Named>, Diagnostic> {
        let is_sort_by = |token: &Token| matches!(token.kind, TokenKind::Keyword(Keyword::SortBy, _));
        let mut keys = Vec::new();
        if self.tokens.next_if(is_sort_by).is_none() {
            return Ok(keys);
        }
        while keys.is_empty() || self.tokens.peek().is_some() {
            let name = self.term()?;
            keys.push(Named { name, modifiers: self.modifiers()? });
        }
        Ok(keys)
    }
}

fn syntax_error(at: usize, problem: &str) -> Diagnostic {
    Diagnostic::new(DiagnosticCode::QuerySyntaxError, format!("{problem}, at byte {at}"))
}

fn parentheses(at: usize) -> Diagnostic {
    Diagnostic::new(DiagnosticCode::UnsupportedUseOfParentheses, at.to_string())
}
