//! Identifiers of works, in the forms in which the resolver knows them.

/// Prefixes of identifiers, compared without regard to case, with those of the form that the resolver knows.
const FORMS: &[(&str, &str)] = &[
    ("info:doi/", "doi:"),
    ("urn:doi:", "doi:"),
    ("https://doi.org/", "doi:"),
    ("http://doi.org/", "doi:"),
    ("https://dx.doi.org/", "doi:"),
    ("http://dx.doi.org/", "doi:"),
    ("doi:", "doi:"),
    ("info:hdl/", "hdl:"),
    ("https://hdl.handle.net/", "hdl:"),
    ("http://hdl.handle.net/", "hdl:"),
    ("hdl:", "hdl:"),
    ("info:pmid/", "pmid:"),
    ("pmid:", "pmid:"),
    ("info:arxiv/", "arXiv:"),
    ("https://arxiv.org/abs/", "arXiv:"),
    ("http://arxiv.org/abs/", "arXiv:"),
    ("arxiv:", "arXiv:"),
    ("info:bibcode/", "bibcode:"),
    ("bibcode:", "bibcode:"),
    ("info:oai/oai:", "oai:"),
    ("info:oai/", "oai:"),
];

/// The form of an identifier that the resolver knows: `doi:`, `hdl:`, `pmid:`, `arXiv:`, `bibcode:`, `oai:`, `urn:isbn:` or
/// `urn:issn:`. `None` if it has another form, such as a URL or an identifier of aDORe, which is compared as it is.
pub(crate) fn canonical(identifier: &str) -> Option<String> {
    if let Some((form, rest)) =
        FORMS.iter().find_map(|(prefix, form)| Some((form, without_prefix(identifier, prefix)?)))
    {
        let rest = rest.trim();
        return if rest.is_empty() { None } else { Some(format!("{form}{rest}")) };
    }
    let number = |labels: [&str; 2]| labels.iter().find_map(|label| without_prefix(identifier, label));
    if let Some(number) = number(["urn:isbn:", "isbn:"]) {
        return read_isbn(number).map(|isbn| format!("urn:isbn:{isbn}"));
    }
    if let Some(number) = number(["urn:issn:", "issn:"]) {
        return read_issn(number).map(|issn| format!("urn:issn:{issn}"));
    }
    let is_doi = identifier.starts_with("10.") && identifier.contains('/');
    if is_doi { Some(format!("doi:{identifier}")) } else { None }
}

fn without_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    if start.eq_ignore_ascii_case(prefix) { Some(rest) } else { None }
}

/// The digits of an ISBN, 10 or 13, with its hyphens or without.
pub(crate) fn read_isbn(text: &str) -> Option<String> {
    let digits = digits_of(text)?;
    if matches!(digits.len(), 10 | 13) { Some(digits) } else { None }
}

/// An ISSN with its hyphen, such as `1082-9873`, from a text with it or without.
pub(crate) fn read_issn(text: &str) -> Option<String> {
    let digits = digits_of(text)?;
    let (first, last) = digits.split_at_checked(4)?;
    if digits.len() == 8 { Some(format!("{first}-{last}")) } else { None }
}

/// The digits of a number, whose last one may be `X`. `None` for other texts.
fn digits_of(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ' | '\u{2010}')).collect();
    let digits = digits.to_ascii_uppercase();
    let (last, before) = digits.as_bytes().split_last()?;
    let is_number = before.iter().all(u8::is_ascii_digit) && (last.is_ascii_digit() || *last == b'X');
    if is_number { Some(digits) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_get_the_form_of_the_resolver() {
        for (identifier, expected) in [
            ("info:doi/10.1045/july99-caplan", "doi:10.1045/july99-caplan"),
            ("INFO:DOI/10.1000/1", "doi:10.1000/1"),
            ("doi:10.1000/1", "doi:10.1000/1"),
            ("https://doi.org/10.1000/1", "doi:10.1000/1"),
            ("10.1000/a(b)", "doi:10.1000/a(b)"),
            ("info:hdl/2027.42/1", "hdl:2027.42/1"),
            ("info:pmid/12376099", "pmid:12376099"),
            ("info:arxiv/hep-th/9901001", "arXiv:hep-th/9901001"),
            ("http://arxiv.org/abs/2101.00001", "arXiv:2101.00001"),
            ("info:bibcode/1999DLib....5....C", "bibcode:1999DLib....5....C"),
            ("info:oai/oai:example.org:1", "oai:example.org:1"),
            ("info:oai/example.org:1", "oai:example.org:1"),
            ("urn:ISBN:0-262-51087-1", "urn:isbn:0262510871"),
            ("urn:ISSN:1082-9873", "urn:issn:1082-9873"),
            ("issn:10829873", "urn:issn:1082-9873"),
        ] {
            assert_eq!(canonical(identifier).as_deref(), Some(expected), "{identifier}");
        }
        for identifier in [
            "",
            "doi:",
            "info:doi/ ",
            "oai:example.org:1",
            "info:lanl-repo/i/d78d9758-bddf-11d9-9de5-c11b6cd85594",
            "https://example.org/10.1000/1",
            "urn:ISBN:12",
            "issn:é0829873",
            "10.1000",
        ] {
            assert_eq!(canonical(identifier), None, "{identifier}");
        }
    }

    #[test]
    fn numbers_have_their_usual_form() {
        assert_eq!(read_issn("13334395").as_deref(), Some("1333-4395"));
        assert_eq!(read_issn("2434-561x").as_deref(), Some("2434-561X"));
        assert_eq!(read_isbn("978-3-16-148410-0").as_deref(), Some("9783161484100"));
        for text in ["", "1333-439", "X333-4395", "1333-43é5", "1333-43955"] {
            assert_eq!(read_issn(text), None, "{text}");
        }
    }
}
