//! The keys of records, as types: none of them can take the place of another one.

/// The id of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RepositoryId<'a>(pub &'a str);

/// A metadataPrefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix<'a>(pub &'a str);

/// The identifier of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identifier<'a>(pub &'a str);
