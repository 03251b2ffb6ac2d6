//! A folder whose files are the records of a local repository. Pure: what to do follows from its listings.
//!
//! Invariants: a file is read only after two looks have found the same version of it, a record is deleted only after two
//! looks have not found its file, and a folder that may be a wrong one deletes nothing.

mod listing;
mod publication;
mod state;

pub use listing::{EmptyFolder, FolderListing, FolderWork};
pub use publication::{EndedPublication, Publication};
pub use state::{
    CollectionMark, CollectionMarks, FileStamp, FolderFile, FolderPlace, FolderState, PublishedNames,
    RecordName,
};
