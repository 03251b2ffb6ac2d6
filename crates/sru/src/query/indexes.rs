//! The indexes, and their context sets.

/// A context set: its short name, and the URIs by which queries may name it.
pub(crate) struct ContextSet {
    pub(crate) name: &'static str,
    /// The first one is the current one.
    pub(crate) uris: &'static [&'static str],
}

/// The known context sets.
pub(crate) const CONTEXT_SETS: [ContextSet; 4] = [
    ContextSet {
        name: "cql",
        uris: &[
            "info:srw/cql-context-set/1/cql-v1.2",
            "info:srw/cql-context-set/1/cql-v1.1",
            "http://docs.oasis-open.org/ns/search-ws/cql",
        ],
    },
    ContextSet {
        name: "dc",
        uris: &["info:srw/cql-context-set/1/dc-v1.1", "http://purl.org/dc/elements/1.1/"],
    },
    ContextSet { name: "oai", uris: &["http://www.openarchives.org/OAI/2.0/"] },
    ContextSet { name: "sort", uris: &["info:srw/cql-context-set/1/sort-v1.0"] },
];

/// Where a term is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// A field of the search index.
    Field(&'static str),
    /// All fields.
    AnyField,
    /// Every record, whatever the term is.
    AllRecords,
    /// The identifier in the header of the record.
    ItemIdentifier,
    /// The records of an earlier search.
    ResultSet,
}

/// The indexes: context set, name, title for people, and meaning.
const INDEXES: [(&str, &str, &str, Index); 23] = [
    ("cql", "serverChoice", "Any field", Index::AnyField),
    ("cql", "anywhere", "Any field", Index::AnyField),
    ("cql", "anyIndexes", "Any field", Index::AnyField),
    ("cql", "allIndexes", "Any field", Index::AnyField),
    ("cql", "keywords", "Any field", Index::AnyField),
    ("cql", "allRecords", "All records", Index::AllRecords),
    ("cql", "resultSetId", "Result set", Index::ResultSet),
    ("dc", "title", "Title", Index::Field("title")),
    ("dc", "creator", "Creator", Index::Field("creator")),
    ("dc", "subject", "Subject", Index::Field("subject")),
    ("dc", "description", "Description", Index::Field("description")),
    ("dc", "publisher", "Publisher", Index::Field("publisher")),
    ("dc", "contributor", "Contributor", Index::Field("contributor")),
    ("dc", "date", "Date", Index::Field("date")),
    ("dc", "type", "Type", Index::Field("type")),
    ("dc", "format", "Format", Index::Field("format")),
    ("dc", "identifier", "Identifier", Index::Field("identifier")),
    ("dc", "source", "Source", Index::Field("source")),
    ("dc", "language", "Language", Index::Field("language")),
    ("dc", "relation", "Relation", Index::Field("relation")),
    ("dc", "coverage", "Coverage", Index::Field("coverage")),
    ("dc", "rights", "Rights", Index::Field("rights")),
    ("oai", "identifier", "Identifier of the OAI-PMH record", Index::ItemIdentifier),
];

/// The indexes that explain describes: context set, name, title, and meaning.
pub(crate) fn described_indexes() -> impl Iterator<Item = (&'static str, &'static str, &'static str, Index)> {
    INDEXES.into_iter().filter(|(.., index)| *index != Index::ResultSet)
}

/// The index of a context set, without regard to case.
pub(super) fn find(set: &str, name: &str) -> Option<Index> {
    let mut indexes = INDEXES.into_iter();
    indexes.find(|row| row.0 == set && row.1.eq_ignore_ascii_case(name)).map(|(.., index)| index)
}
