//! Finds the mirrored records that have an identifier, or name it in their metadata.
//!
//! [`Resolver::links`] finds the works that a record cites, the records that cite it, and its duplicates in other
//! repositories.
//!
//! [`ContentIdentifier`] normalises DOIs, Handles, URNs, identifiers of arXiv and PubMed, ISBNs and URLs, so that all
//! spellings are one key. `record_identifiers` reads those of a record, `follower` keeps the table of identifiers at the
//! last commit of the mirror, and [`Resolver`] answers queries.
//!
//! - A query first follows the commits that the table does not know, and fails if they are too many. So its result is that
//!   of the mirror at this time, also after the process was killed.
//! - The table contains hashes. A found record is read, and is a result only if it has the identifier.

mod content_identifier;
mod follower;
mod full_texts;
mod link_query;
mod links;
mod record_identifiers;
mod resolved;
mod resolver;
mod sources;

pub use content_identifier::{ContentIdentifier, IdentifierKind, repaired_request};
pub use links::{Citation, Duplicate, ItemLinks, LinkCursor, LinkedItem, LinksRequest, SameBy};
pub use record_identifiers::{NamedIn, RecordNames};
pub use resolved::{Resolved, ResolvedFormat, ResolvedItem};
pub use resolver::{PlacesMax, Resolver};
pub use sources::{ResolvedSource, ResolvedSources};
