//! Dumps of repositories of one position, and the feed of changes.
//!
//! A [`Position`] is a state of the stamps of a store: everything up to it is closed, so no later commit comes before it. A
//! dump is written by [`DumpWriter`] from the lists that [`ListReader`] reads of a repository, one after the other until
//! nothing has changed meanwhile. [`DumpFolder`] keeps the files of dumps, because the store forgets replaced records: the
//! bytes of an older position cannot be made again. [`DumpQuery`] reads the parameters of a request, and [`Manifest`]
//! describes a dump. [`read_changes`] is the feed: the headers of changed records, in the order of the commits.
//!
//! No HTTP and no clock. [`DumpWriter`] and [`DumpFolder`] block on the disk.

mod byte_range;
mod changes;
mod csv_rows;
mod dump_error;
mod dump_folder;
mod dump_form;
mod dump_query;
mod dump_writer;
mod kept_dumps;
mod list_reader;
mod list_rounds;
mod manifest;
mod position;
mod row_index;

pub use byte_range::ByteRange;
pub use changes::{Change, ChangesPage, FeedStart, read_changes};
pub use dump_error::DumpError;
pub use dump_folder::{DumpFolder, KeptDump};
pub use dump_form::DumpForm;
pub use dump_query::{DumpQuery, QueryFault, Selection};
pub use dump_writer::{DumpWriter, WrittenDump};
pub use list_reader::{DumpList, ListReader};
pub use list_rounds::{ListRounds, NextRound};
pub use manifest::{Gap, GapCause, Manifest};
pub use position::{Place, Position, StaleReason, StoreState};
pub use row_index::RecordKey;
