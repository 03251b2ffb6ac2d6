//! The meaning of CQL queries.

use super::*;

fn word(field: Option<&str>, word: &str) -> Query {
    Query::Word { field: field.map(name), word: word.to_owned() }
}

fn name(field: &str) -> FieldName {
    FieldName(field.to_owned())
}

fn phrase(field: &str, words: &str) -> Query {
    Query::Phrase { field: Some(name(field)), words: words.to_owned() }
}

fn value(field: &str, value: &str) -> Query {
    Query::Value { field: name(field), value: value.to_owned() }
}

fn boolean<const R: usize, const O: usize, const E: usize>(
    required: [Query; R],
    optional: [Query; O],
    excluded: [Query; E],
) -> Query {
    Query::Boolean { required: required.into(), optional: optional.into(), excluded: excluded.into() }
}

fn years(from: Option<u16>, until: Option<u16>) -> Query {
    Query::Years { from, until }
}

#[test]
fn a_clause_becomes_a_query() {
    let prefix = |start: &str| Query::Prefix { field: Some(name("title")), start: start.to_owned() };
    let identifier = |identifier: &str| Query::Identifier(identifier.to_owned());
    for (cql, expected) in [
        ("fish", word(None, "fish")),
        ("cql.serverChoice = fish", word(None, "fish")),
        ("CQL.Anywhere scr fish", word(None, "fish")),
        ("dc.title = fish", word(Some("title"), "fish")),
        ("title = \"big fish\"", phrase("title", "big fish")),
        ("dc.title adj \" big  fish \"", phrase("title", "big fish")),
        ("dc.title all \"big fish\"", {
            boolean([word(Some("title"), "big"), word(Some("title"), "fish")], [], [])
        }),
        ("dc.title any \"big fish*\"", boolean([], [word(Some("title"), "big"), prefix("fish")], [])),
        ("dc.title = fi*", prefix("fi")),
        ("dc.title = \"fish\\*\"", word(Some("title"), "fish*")),
        ("dc.title =/unmasked \"fish*\"", word(Some("title"), "fish*")),
        ("dc.title =/cql.word/ignoreCase/relevant fish", word(Some("title"), "fish")),
        ("dc.title == \"Big \\\"Fish\\\"\"", value("title", "Big \"Fish\"")),
        ("dc.title exact fish", value("title", "fish")),
        ("dc.title <> fish", boolean([Query::All], [], [value("title", "fish")])),
        ("cql.allRecords = 1", Query::All),
        ("oai.identifier = oai:a:1", identifier("oai:a:1")),
        ("oai.identifier any \"oai:a:1 oai:a:2\"", {
            boolean([], [identifier("oai:a:1"), identifier("oai:a:2")], [])
        }),
        ("oai.identifier <> oai:a:1", boolean([Query::All], [], [identifier("oai:a:1")])),
        ("dc.date = 2001", years(Some(2001), Some(2001))),
        ("dc.date = 2001-05", word(Some("date"), "2001-05")),
        ("dc.date < 2001", years(None, Some(2000))),
        ("dc.date <= 2001", years(None, Some(2001))),
        ("dc.date > 2001", years(Some(2002), None)),
        ("dc.date >= 2001", years(Some(2001), None)),
        ("dc.date within \"2001 2003\"", years(Some(2001), Some(2003))),
        ("dc.date <> 2001", boolean([Query::All], [], [years(Some(2001), Some(2001))])),
        ("> x = \"http://purl.org/dc/elements/1.1/\" X.title = fish", word(Some("title"), "fish")),
        (
            "> x = \"http://purl.org/dc/elements/1.1/\" (> x = \"info:srw/cql-context-set/1/cql-v1.2\" x.anywhere = fish)",
            { word(None, "fish") },
        ),
        ("> \"info:srw/cql-context-set/1/cql-v1.2\" anywhere = fish", word(None, "fish")),
    ] {
        let parsed = Search::parse(cql, None).unwrap_or_else(|refused| panic!("{cql}: {refused:?}"));
        assert_eq!(parsed, Search { query: expected, ranking: Ranking::Relevance }, "{cql}");
    }
}

#[test]
fn operators_group_from_the_left() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| word(None, text));
    for (cql, expected) in [
        ("a and b and c", boolean([a.clone(), b.clone(), c.clone()], [], [])),
        ("a or b or c", boolean([], [a.clone(), b.clone(), c.clone()], [])),
        ("a not b and c not d", { boolean([a.clone(), c.clone()], [], [b.clone(), d.clone()]) }),
        ("a and b or c", boolean([], [boolean([a.clone(), b.clone()], [], []), c.clone()], [])),
        ("a or b and c", boolean([boolean([], [a.clone(), b.clone()], []), c.clone()], [], [])),
        ("a or b not c", boolean([boolean([], [a.clone(), b.clone()], [])], [], [c.clone()])),
        ("a not b or c", boolean([], [boolean([a.clone()], [], [b.clone()]), c.clone()], [])),
        ("a and (b or c)", boolean([a, boolean([], [b, c], [])], [], [])),
    ] {
        assert_eq!(Search::parse(cql, None).expect(cql).query, expected, "{cql}");
    }
}

#[test]
fn unsupported_parts_have_their_diagnostics() {
    for (cql, number, details) in [
        ("x.title = a", 15, "x"),
        ("> x = urn:x x.title = a", 15, "urn:x"),
        ("dc.name = a", 16, "dc.name"),
        ("bath.name = a", 15, "bath"),
        ("> \"info:srw/cql-context-set/1/cql-v1.1\" title = a", 16, "title"),
        ("dc.title encloses a", 19, "encloses"),
        ("dc.title dc.all a", 19, "dc.all"),
        ("dc.title =/fuzzy a", 20, "fuzzy"),
        ("dc.title =/word=1 a", 20, "word"),
        ("dc.title < a", 22, "< dc.title"),
        ("cql.anywhere == a", 22, "== cql.anywhere"),
        ("oai.identifier all a", 22, "all oai.identifier"),
        ("cql.allRecords any 1", 22, "any cql.allRecords"),
        ("\"a \\b\"", 26, "\\"),
        ("a\\", 26, "\\"),
        ("\"\"", 27, ""),
        ("dc.title = \" \"", 27, ""),
        ("a?", 28, "?"),
        ("dc.title == ab*", 28, "*"),
        ("oai.identifier = oai:*", 28, "*"),
        ("a*", 29, "2"),
        ("\"* ab\"", 29, "2"),
        ("^a", 31, "^"),
        ("\"ab a^\"", 31, "^"),
        ("\"big fis*\"", 33, ""),
        ("dc.date < may", 36, "a year of four digits"),
        ("dc.date < 0000", 36, "a year of four digits"),
        ("dc.date >= -1", 36, "a year of four digits"),
        ("dc.date within 2001", 36, "two years of four digits, the first one first"),
        ("dc.date within \"2003 2001\"", 36, "two years of four digits, the first one first"),
        ("a prox b", 39, ""),
        ("a and/x b", 46, "x"),
        ("a*b", 49, "*"),
        ("cql.resultSetId = a", 50, ""),
        ("a sortBy dc.date dc.title", 84, "1"),
        ("a sortBy dc.title", 88, "dc.title"),
        ("a sortBy dc.date/ignoreCase", 82, "ignoreCase"),
    ] {
        let refused = Search::parse(cql, None).expect_err(cql);
        assert_eq!((refused.code.number(), refused.details.as_str()), (number, details), "{cql}");
    }
    let long = Search::parse(&"a".repeat(1_025), None).expect_err("a long term");
    assert_eq!((long.code.number(), long.details.as_str()), (23, "1024"));
    let masks = Search::parse(&format!("a{}", "*".repeat(1_000)), None).expect_err("many masks");
    assert_eq!(masks.code.number(), 49);
}

#[test]
fn records_are_sorted_by_date() {
    for (cql, sort_keys, expected) in [
        ("a", None, Ranking::Relevance),
        ("a sortBy dc.date", None, Ranking::Oldest),
        ("a sortBy date/sort.descending", None, Ranking::Newest),
        ("> d = \"info:srw/cql-context-set/1/dc-v1.1\" a sortBy d.date/descending", None, Ranking::Newest),
        ("a", Some("date"), Ranking::Oldest),
        ("a", Some(" dc.date,dc,0 "), Ranking::Newest),
        ("a", Some("date,,1,0,highValue"), Ranking::Oldest),
        ("a sortBy dc.date", Some("date,,0"), Ranking::Oldest),
    ] {
        assert_eq!(Search::parse(cql, sort_keys).expect(cql).ranking, expected, "{cql} {sort_keys:?}");
    }
    for (sort_keys, number) in
        [("title", 88), ("date title", 84), ("date,mods", 87), ("date,,2", 82), ("date,,1,0,abort", 92)]
    {
        let refused = Search::parse("a", Some(sort_keys)).expect_err(sort_keys);
        assert_eq!(refused.code.number(), number, "{sort_keys}");
    }
}

#[test]
fn a_scan_has_one_clause() {
    let scan = Scan::parse("dc.title = \"big fish\"").expect("a clause");
    assert_eq!(scan, Scan { field: name("title"), term: "big fish".to_owned() });
    assert_eq!(
        Scan::parse("> \"http://purl.org/dc/elements/1.1/\" title = \"\"").expect("a clause").term,
        ""
    );
    for (cql, number) in [("fish", 16), ("a and b", 10), ("oai.identifier = a", 16), ("dc.x = a", 16)] {
        assert_eq!(Scan::parse(cql).expect_err(cql).code.number(), number, "{cql}");
    }
}
