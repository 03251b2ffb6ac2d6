use super::*;

fn read(text: &str) -> Vec<String> {
    shown(ContentIdentifier::read(text))
}

fn requested(text: &str) -> Vec<String> {
    shown(ContentIdentifier::read_request(text))
}

fn shown(found: Vec<ContentIdentifier>) -> Vec<String> {
    found.into_iter().map(|found| format!("{} {}", found.kind.name(), found.value)).collect()
}

#[test]
fn all_spellings_of_a_doi_are_one() {
    for text in [
        "10.1000/Ab-C(1)",
        " 10.1000/ab-c(1)\n",
        "doi:10.1000/AB-C(1)",
        "DOI: 10.1000/ab-c(1)",
        "doi 10.1000/ab-c(1)",
        "DOI=10.1000/ab-c(1)",
        "https://doi.org/10.1000/ab-c(1)",
        "http://dx.doi.org/10.1000/ab-c%281%29",
        "HTTPS://WWW.DOI.ORG/10.1000/ab-c(1)",
        "doi.org/10.1000/ab-c(1)",
        "doi:https://doi.org/10.1000/ab-c(1)",
        "info:doi/10.1000/ab-c(1)",
        "urn:doi:10.1000/ab-c(1)",
        "info:eu-repo/semantics/altIdentifier/doi/10.1000/AB-C(1)",
        "hdl:10.1000/ab-c(1)",
        "https://hdl.handle.net/10.1000/ab-c(1)",
    ] {
        assert_eq!(read(text), ["doi 10.1000/ab-c(1)"], "{text}");
        assert_eq!(requested(text), ["doi 10.1000/ab-c(1)"], "{text}");
    }
    assert_eq!(read("10.1000/a?b#c%20"), ["doi 10.1000/a?b#c%20"]);
    assert_eq!(
        read("https://doi.org/10.1000/%C3%89"),
        ["doi 10.1000/É"],
        "only ASCII letters have a lower case"
    );
    for text in
        ["10.100/abc", "10.1000/", "doi:", "doing 10.1000/a", "11.1000/a", "10.1000/a b", "10.1000/../a"]
    {
        assert_eq!(read(text), [""; 0], "{text}");
    }
}

#[test]
fn handles_are_read_with_their_scheme_and_requests_without() {
    for text in [
        "hdl:1765/ABC",
        "Handle: 1765/abc",
        "info:hdl/1765/abc",
        "https://hdl.handle.net/1765/abc",
        "hdl.handle.net/1765/abc",
        "info:eu-repo/semantics/altIdentifier/hdl/1765/abc",
    ] {
        assert_eq!(read(text), ["handle 1765/abc"], "{text}");
    }
    assert_eq!(
        (read("20.500.12345/6").len(), requested("20.500.12345/6")),
        (0, vec!["handle 20.500.12345/6".into()])
    );
}

#[test]
fn urns_have_a_namespace_in_lower_case() {
    for (text, urn) in [
        ("URN:NBN:fi-fe2018", "urn urn:nbn:fi-fe2018"),
        ("https://urn.fi/URN:NBN:fi-fe2018", "urn urn:nbn:fi-fe2018"),
        ("http://nbn-resolving.de/urn:nbn:de:0070-pub-17", "urn urn:nbn:de:0070-pub-17"),
        ("https://urn.kb.se/resolve?urn=urn:nbn:se:uu:diva-1&x=1", "urn urn:nbn:se:uu:diva-1"),
        ("info:eu-repo/semantics/altIdentifier/urn/urn:nbn:de:1", "urn urn:nbn:de:1"),
        (
            "urn:UUID:F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6",
            "urn urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        ),
        ("urn:Lex:IT:Stato", "urn urn:lex:IT:Stato"),
        ("urn:lex:a?+r?=q#f", "urn urn:lex:a"),
    ] {
        assert_eq!(read(text), [urn], "{text}");
    }
    for text in ["urn:", "urn:x:a", "urn:nbn:", "urn:lex:a b", "urn:issn:0378-5955", "urn:l/x:a"] {
        assert_eq!(read(text), [""; 0], "{text}");
    }
}

#[test]
fn identifiers_of_arxiv_have_neither_version_nor_class() {
    for (text, number) in [
        ("arXiv:0704.0001v2", "0704.0001"),
        ("arXiv: 2301.01234 [cs.DL]", "2301.01234"),
        ("http://arxiv.org/abs/0704.0001", "0704.0001"),
        ("https://export.arxiv.org/pdf/2301.01234v1.pdf", "2301.01234"),
        ("arXiv:hep-th/9901001v3", "hep-th/9901001"),
        ("https://arxiv.org/abs/math.GT/0309136", "math/0309136"),
        ("oai:arXiv.org:math/0309136", "math/0309136"),
        ("info:eu-repo/semantics/altIdentifier/arxiv/0704.0001", "0704.0001"),
    ] {
        assert_eq!(read(text), [format!("arxiv {number}")], "{text}");
    }
    assert_eq!(
        read("https://doi.org/10.48550/arXiv.2301.01234"),
        ["doi 10.48550/arxiv.2301.01234", "arxiv 2301.01234"]
    );
    assert_eq!((read("0704.0001").len(), requested("0704.0001v1")), (0, vec!["arxiv 0704.0001".into()]));
    assert_eq!(requested("hep-th/9901001"), ["arxiv hep-th/9901001"]);
    for text in ["arXiv:0713.0001", "arXiv:0704.001", "arXiv:hep-th/9913001", "arXiv:", "arxivist"] {
        assert_eq!(requested(text), [""; 0], "{text}");
    }
    assert_eq!(read("https://arxiv.org.example/abs/0704.0001"), ["url arxiv.org.example/abs/0704.0001"]);
}

#[test]
fn numbers_of_pubmed_are_read() {
    for text in [
        "PMID: 12345678",
        "pmid:012345678",
        "info:pmid/12345678",
        "https://pubmed.ncbi.nlm.nih.gov/12345678/",
        "http://www.ncbi.nlm.nih.gov/pubmed/12345678",
    ] {
        assert_eq!(read(text), ["pmid 12345678"], "{text}");
    }
    for text in ["pmid:0", "pmid:x1", "pmid:1234567890", "12345678"] {
        assert_eq!(read(text), [""; 0], "{text}");
    }
}

#[test]
fn both_lengths_of_an_isbn_are_one() {
    for text in [
        "ISBN 978-3-16-148410-0",
        "9783161484100",
        "urn:isbn:3-16-148410-X",
        "ISBN-10: 316148410x",
        "info:eu-repo/semantics/altIdentifier/isbn/9783161484100",
    ] {
        assert_eq!(read(text), ["isbn 9783161484100"], "{text}");
    }
    for (ten, thirteen) in
        [("0306406152", "9780306406157"), ("0198526636", "9780198526636"), ("080442957X", "9780804429573")]
    {
        assert_eq!(read(&format!("isbn:{ten}")), [format!("isbn {thirteen}")]);
        assert_eq!((read(ten).len(), requested(ten)), (0, vec![format!("isbn {thirteen}")]));
    }
    for text in ["ISBN 978-3-16-148410-1", "isbn:0306406153", "isbn:", "979-0-2600-0043-9x"] {
        assert_eq!(requested(text), [""; 0], "{text}");
    }
}

#[test]
fn equal_urls_are_one() {
    for text in ["https://Example.org/a/%7Eb", "http://example.org:80/a/~b/", "HTTP://EXAMPLE.ORG/a/~b#c"] {
        assert_eq!(read(text), ["url example.org/a/~b"], "{text}");
    }
    assert_eq!(read("http://example.org:8080/"), ["url example.org:8080"]);
    assert_eq!(read("http://example.org/?a=%c3%a9"), ["url example.org/?a=%C3%A9"]);
    assert_ne!(read("http://example.org/a"), read("http://example.org/A"));
    for text in
        ["ftp://example.org/", "javascript:alert(1)", "http://user@example.org/", "//example.org", "text", ""]
    {
        assert_eq!(read(text), [""; 0], "{text}");
    }
    assert_eq!(read(&format!("http://example.org/{}", "x".repeat(TEXT_BYTES_MAX))), [""; 0]);
    assert_eq!(read("http://example.org/\u{0}"), [""; 0]);
}

#[test]
fn a_text_contains_identifiers_between_blanks() {
    let all = |text: &str| shown(ContentIdentifier::read_all(text));
    assert_eq!(
        all("Journal of X 12(3), 45-67 (2014). doi: 10.1000/a. See http://example.org/b; 1765/123."),
        ["doi 10.1000/a", "url example.org/b"]
    );
    assert_eq!(all("https://doi.org/10.1000/a"), ["doi 10.1000/a"]);
    assert_eq!(all("Two words"), [""; 0]);
}

#[test]
fn a_request_gets_its_second_slash_back() {
    for (text, repaired) in [
        ("https:/doi.org/10.1000/a", "https://doi.org/10.1000/a"),
        ("https://doi.org/10.1000/a", "https://doi.org/10.1000/a"),
        ("http:/x", "http://x"),
        ("oai:x:1", "oai:x:1"),
    ] {
        assert_eq!(repaired_request(text), repaired);
    }
}
