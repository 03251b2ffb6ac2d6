//! Local repositories: records that people and programs write, in place of a source that is harvested.
//!
//! A local repository is a repository of the mirror without a source, so its lists, tokens, stamps and deletions are those
//! of the mirror, and so are search, views and pages. [`LocalRepository`] writes its records: each change has a stamp after
//! the responseDate of every list without it, and is on disk before the writer gets its response.
//!
//! Nothing that a writer sends is repaired. [`Deposit`] accepts what the repair engine leaves unchanged, and [`BadXml`] names
//! the first place that it would change. The interface follows PutRecord of XOAI (Suleman and Fox, "Beyond Harvesting:
//! Digital Library Components as OAI Extensions", and `docs/how-to/local-repositories.md`).

mod bad_xml;
mod deposit;
mod dublin_core;
mod error;
mod files;
mod folder;
mod local_repository;
mod metadata_check;
mod settings;
mod write_terms;
mod written_list;

pub use bad_xml::BadXml;
pub use deposit::{Deposit, Payload};
pub use error::DepositError;
pub use files::{FileKind, FileNaming, FileRecord, identifier_start, read_file};
pub use folder::{
    CollectionMark, CollectionMarks, EmptyFolder, EndedPublication, FileStamp, FolderFile, FolderListing,
    FolderPlace, FolderState, FolderWork, Publication, PublishedNames, RecordName,
};
pub use local_repository::{LocalRepository, Stored};
pub use metadata_check::{MetadataCheck, Violation};
pub use settings::{FormatSettings, LocalSettings};
pub use write_terms::{Condition, EntityTag, MayWrite, WriteTerms};
pub use written_list::{LIST_RECORDS_MAX, read_list, write_list};
