//! ResourceSync 1.1 (ANSI/NISO Z39.99-2017) over the records of a mirror.
//!
//! `src/serve/resourcesync/` serves it. `address` names the documents, `document` writes their XML, and `package` the ZIP
//! files of dumps. `collection` divides the records of a format into parts, and `part_stream` writes one of these, batch by
//! batch.
//!
//! What must stay true: a destination that applies a resource list and then the change lists from its `at` on has exactly
//! the records of the mirror, however many of them change meanwhile. Each list is of one *position*: the responseDate of
//! the [`StampClock`](../oaimend_rules/struct.StampClock.html). All parts contain the records whose last change was until
//! then. A record that changes later leaves the part, gets a later stamp, and is in every later change list.

mod address;
mod collection;
mod document;
mod kind;
mod list_document;
mod package;
mod part_stream;
mod part_writer;
mod partition;
mod resources;

pub use address::{FormatAddress, SOURCE_DESCRIPTION_PATH, SyncTarget};
pub use collection::{Limits, SyncError, SyncedCollection};
pub use document::{capability_list, source_description};
pub use kind::ListKind;
pub use list_document::ListDocument;
pub use part_stream::PartStream;
pub use partition::Part;
pub use resources::{ListUrls, Resources};
