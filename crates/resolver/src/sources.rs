//! The repositories whose records are found.

/// The repositories whose records are found, in the order of results: the highest priority first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedSources(Vec<ResolvedSource>);

/// A mirrored repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedSource {
    /// The repository id.
    pub id: String,
    /// The formats that the mirror serves; empty: all.
    pub prefixes: Vec<String>,
    /// A record of a repository with a higher priority is the better one.
    pub priority: u64,
    /// Whether its records are left out of what people see. They can be located nevertheless.
    pub is_hidden: bool,
    /// Whether what the full texts of its records name is a link of them.
    pub has_full_texts: bool,
}

impl ResolvedSources {
    /// These repositories.
    pub fn new(mut sources: Vec<ResolvedSource>) -> Self {
        sources.sort_by(|one, other| other.priority.cmp(&one.priority).then_with(|| one.id.cmp(&other.id)));
        Self(sources)
    }

    /// Whether the records of a repository are left out of what people see.
    pub(crate) fn is_hidden(&self, id: &str) -> bool {
        self.0.iter().any(|source| source.id == id && source.is_hidden)
    }

    /// Whether what the full texts of a repository name is a link of its records.
    pub(crate) fn has_full_texts(&self, id: &str) -> bool {
        self.0.iter().any(|source| source.id == id && source.has_full_texts)
    }

    /// All repositories in the order of results.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ResolvedSource> {
        self.0.iter()
    }
}
