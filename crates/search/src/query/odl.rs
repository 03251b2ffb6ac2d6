//! The language of ODL-Search (Suleman and Fox, Components as OAI extensions) with phrases:
//! `( '+' | '-' )? ( field ':' )? ( word | '"' phrase '"' )`, separated by blanks.

use super::{FieldName, QUERY_BYTES_MAX, Query, QueryError, TERMS_MAX};
use crate::text::QueryWords;

/// What a term without a sign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmarked {
    Optional,
    Required,
}

pub(super) fn parse(text: &str, unmarked: Unmarked) -> Result<Query, QueryError> {
    if text.len() > QUERY_BYTES_MAX {
        return Err(QueryError::TooLarge(format!("the query has more than {QUERY_BYTES_MAX} bytes")));
    }
    let (mut required, mut optional, mut excluded) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (sign, unsigned) = match rest.strip_prefix(['+', '-']) {
            Some(unsigned) => (rest.chars().next(), unsigned),
            None => (None, rest),
        };
        let (term, after) = read_term(unsigned)?;
        rest = after.trim_start();
        // Punctuation between words, such as "&" or a dash.
        let Some(term) = term else { continue };
        match (sign, unmarked) {
            (Some('-'), _) => excluded.push(term),
            (Some(_), _) | (None, Unmarked::Required) => required.push(term),
            (None, Unmarked::Optional) => optional.push(term),
        }
        if required.len() + optional.len() + excluded.len() > TERMS_MAX {
            return Err(QueryError::TooLarge(format!("the query has more than {TERMS_MAX} terms")));
        }
    }
    match (required.len(), optional.len(), excluded.len()) {
        (0, 0, 0) => Err(QueryError::Syntax("the query contains no word".to_owned())),
        (1, 0, 0) => Ok(required.remove(0)),
        (0, 1, 0) => Ok(optional.remove(0)),
        _ => Ok(Query::Boolean { required, optional, excluded }),
    }
}

/// The term at the start of a text, and the text after it. `None` for a term without words.
fn read_term(text: &str) -> Result<(Option<Query>, &str), QueryError> {
    let (field, value) = split_field(text);
    if let Some(quoted) = value.strip_prefix('"') {
        let Some((words, rest)) = quoted.split_once('"') else {
            return Err(QueryError::Syntax(format!("the quotation mark before \"{quoted}\" is not closed")));
        };
        let is_empty = QueryWords::of(words).is_empty();
        let query = if is_empty { None } else { Some(Query::Phrase { field, words: words.to_owned() }) };
        return Ok((query, rest));
    }
    let end = value.find(char::is_whitespace).unwrap_or(value.len());
    let (word, rest) = value.split_at(end);
    match (field, QueryWords::of(word).is_empty()) {
        (Some(field), true) => {
            Err(QueryError::Syntax(format!("a word must follow \"{}:\" without a space", field.0)))
        }
        (None, true) => Ok((None, rest)),
        (field, false) => Ok((Some(Query::Word { field, word: word.to_owned() }), rest)),
    }
}

/// The field before a term. What begins with a URL or a digit, as a DOI and a time do, names no field.
fn split_field(text: &str) -> (Option<FieldName>, &str) {
    let is_of_name = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let end = text.find(|character| !is_of_name(character)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match rest.strip_prefix(':') {
        Some(value)
            if name.starts_with(|first: char| first.is_ascii_alphabetic()) && !value.starts_with("//") =>
        {
            (Some(FieldName(name.to_owned())), value)
        }
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{QueryLanguage, parse};

    fn word(field: Option<&str>, word: &str) -> Query {
        Query::Word { field: field.map(|name| FieldName(name.to_owned())), word: word.to_owned() }
    }

    fn phrase(field: Option<&str>, words: &str) -> Query {
        Query::Phrase { field: field.map(|name| FieldName(name.to_owned())), words: words.to_owned() }
    }

    fn odl(text: &str) -> Result<Query, QueryError> {
        parse(QueryLanguage::Odl, text)
    }

    #[test]
    fn terms_have_signs_fields_and_phrases() {
        let query = odl(" +title:harbour -creator:\"A. Smith\"  songs \"of the sea\"/x ");
        let expected = Query::Boolean {
            required: vec![word(Some("title"), "harbour")],
            optional: vec![word(None, "songs"), phrase(None, "of the sea"), word(None, "/x")],
            excluded: vec![phrase(Some("creator"), "A. Smith")],
        };
        assert_eq!(query, Ok(expected));
    }

    #[test]
    fn a_single_term_is_no_boolean() {
        assert_eq!(odl("songs"), Ok(word(None, "songs")));
        assert_eq!(odl("+songs"), Ok(word(None, "songs")));
        let excluded =
            Query::Boolean { required: vec![], optional: vec![], excluded: vec![word(None, "songs")] };
        assert_eq!(odl("-songs"), Ok(excluded));
    }

    #[test]
    fn words_are_required_in_the_language_of_joai() {
        let required = vec![word(None, "sea"), word(None, "songs")];
        let query = Query::Boolean { required, optional: vec![], excluded: vec![word(None, "x")] };
        assert_eq!(parse(QueryLanguage::Dlese, "sea songs -x"), Ok(query));
    }

    #[test]
    fn urls_dois_and_punctuation_are_no_fields() {
        for (text, expected) in [
            ("http://x.org/a:b", word(None, "http://x.org/a:b")),
            ("10.5555/a:b", word(None, "10.5555/a:b")),
            ("12:30", word(None, "12:30")),
            ("& sea -", word(None, "sea")),
            ("C++", word(None, "C++")),
        ] {
            assert_eq!(odl(text), Ok(expected), "{text}");
        }
        assert_eq!(odl("oai:x:1"), Ok(word(Some("oai"), "x:1")));
    }

    #[test]
    fn broken_queries_are_one_clear_error() {
        for (text, expected) in [
            ("", "the query contains no word"),
            (" + \"\" ?", "the query contains no word"),
            ("title: harbour", "a word must follow \"title:\" without a space"),
            ("a \"b c", "the quotation mark before \"b c\" is not closed"),
        ] {
            assert_eq!(odl(text), Err(QueryError::Syntax(expected.to_owned())), "{text}");
        }
        let many = "a ".repeat(TERMS_MAX + 1);
        assert_eq!(odl(&many), Err(QueryError::TooLarge("the query has more than 64 terms".to_owned())));
        let long = "a ".repeat(100_000);
        assert_eq!(odl(&long), Err(QueryError::TooLarge("the query has more than 4096 bytes".to_owned())));
    }

    #[test]
    fn languages_are_known_by_their_names() {
        for (name, language) in [
            ("odlsearch1", Some(QueryLanguage::Odl)),
            ("odsearch1", Some(QueryLanguage::Odl)),
            ("dleseodlsearch", Some(QueryLanguage::Dlese)),
            ("cql", None),
        ] {
            assert_eq!(QueryLanguage::named(name), language);
        }
    }
}
