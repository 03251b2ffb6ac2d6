//! The keys of records, as types: neither of them, nor the id of a repository, can take the place of another one.

/// A metadataPrefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix<'a>(pub &'a str);

/// The identifier of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identifier<'a>(pub &'a str);
