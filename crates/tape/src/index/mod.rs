//! The index beside a tape: the place of each record by its identifier, and in the order of the datestamps.
//!
//! All tables have rows of one length and are searched on the disk, so a server starts at once with a tape of any size.
//! The index is bound to its tape by the length of the file and a hash of its beginning and its end, and each record by a
//! checksum. docs/reference/tapes.md describes the file.

mod blocks;
mod index_file;
mod rebuild;
mod rows;

pub use index_file::{Catalog, CatalogFormat, CatalogSet, ReadError, index_path};
pub(crate) use index_file::{Entry, Index, id_hash};
pub use rebuild::{RebuiltIndex, known_prefix, rebuild_index};
pub(crate) use rebuild::{fill_rows, find_duplicate};
pub(crate) use rows::IndexRows;
