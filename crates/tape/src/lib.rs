//! XMLtapes: many records in one XML file that any tool reads, and an index beside it.
//!
//! The format is that of the LANL Repository (Jerez, Liu, Hochstenbach and Van de Sompel, "The multi-faceted use of the
//! OAI-PMH in the LANL Repository", 2004, section 3; namespace of August 2005). docs/reference/tapes.md describes it.
//!
//! [`TapeBuild`] writes a tape and its index, [`rebuild_index`] makes the index again, [`verify`] checks both, and
//! [`Tape`] reads records by their identifiers and dates. The crate has no HTTP and no clock; all calls block on the
//! disk. Broken tapes are values: a [`Fault`] names the place.
//!
//! Invariants: a tape appears under its name only when it is complete. A record is read only if its bytes are those
//! that the index was made from, so an edited tape never gives wrong records or short lists.

mod build;
mod description;
mod fault;
mod files;
mod index;
mod limits;
mod members;
mod names;
mod namespaces;
mod record;
mod scan;
mod sort;
mod strict;
mod tape;
mod verify;
mod writer;

pub use build::{BuiltTape, OnDuplicate, TapeBuild};
pub use description::{TapeDescription, TapeFormat, TapeGap, TapeSet};
pub use fault::{Fault, Place, TapeError};
pub use index::{
    Catalog, CatalogFormat, CatalogSet, ReadError, RebuiltIndex, index_path, known_prefix, rebuild_index,
};
pub use names::{ADMIN_NAMESPACE, ADMIN_SCHEMA, NAMESPACE};
pub use record::TapeRecord;
pub use scan::{Scan, TapePart, open_scan};
pub use tape::{Selection, Tape};
pub use verify::{IndexState, Verification, verify};
