//! What a folder has published.

use crate::dublin_core::DUBLIN_CORE;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What a folder has published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderState {
    /// The folder; `None` before the first look.
    pub place: Option<FolderPlace>,
    /// The start of the identifiers that come from the names of files.
    pub identifier_start: String,
    /// The files by their paths below the folder.
    pub files: BTreeMap<String, FolderFile>,
    /// The subfolders that are on other devices than the folder, or at which something was mounted.
    pub mounts: BTreeSet<String>,
    /// The records of the repository after the last change by the folder.
    pub stored: CollectionMarks,
    /// The records of the repository when the folder began, or when others had changed it last. Those of them that no file
    /// has are no records of the folder, and stay.
    pub others: CollectionMarks,
    /// Whether the repository was compared with the files since then.
    pub is_compared: bool,
}

/// The collections of a repository at one time, by their metadataPrefixes. Empty ones are left out.
pub type CollectionMarks = BTreeMap<String, CollectionMark>;

/// The changes of a collection up to one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionMark {
    /// The number of the collection.
    pub number: u64,
    /// The sequence of its next change.
    pub next_sequence: u64,
}

/// Identifies a folder on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderPlace {
    /// The number of its device.
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
}

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// The time of its last change, in seconds since 1970.
    pub modified_secs: i64,
    /// The nanoseconds of this time.
    pub modified_nanos: i64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Its number on the device.
    pub inode: u64,
}

/// A file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderFile {
    /// The version that was read; `None` if it must be read again.
    pub stamp: Option<FileStamp>,
    /// Its records. If this version cannot be read, those of the version before.
    pub records: Vec<RecordName>,
    /// Why it is not published, or not as a whole.
    pub problem: Option<String>,
    /// Whether the repository has refused a record, which it may accept after other records.
    pub is_refused: bool,
}

/// Names a record in one format.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordName {
    /// The metadataPrefix.
    pub prefix: String,
    /// The identifier.
    pub identifier: String,
}

impl FolderState {
    /// The number of files that are not published, or not as a whole.
    pub fn problems(&self) -> usize {
        self.files.values().filter(|file| file.problem.is_some()).count()
    }

    /// The files of which the repository has refused a record, with the reason.
    pub fn refused(&self) -> impl Iterator<Item = (&String, &str)> {
        let refused = self.files.iter().filter(|(_, file)| file.is_refused);
        refused.map(|(path, file)| (path, file.problem.as_deref().unwrap_or_default()))
    }

    /// Whether the records of all files are known. A file that was never read has unknown ones.
    pub fn is_known(&self) -> bool {
        self.files.values().all(|file| file.problem.is_none() || !file.records.is_empty())
    }

    /// Notes that others may have changed the repository. Returns whether they have: it is not as the folder has left it, so
    /// all files are read again and compared with it.
    pub fn note_marks(&mut self, marks: CollectionMarks) -> bool {
        let is_changed = marks != self.stored;
        if is_changed {
            self.forget_versions(|_| true);
            self.others.clone_from(&marks);
            self.stored = marks;
            self.is_compared = false;
        }
        is_changed
    }

    /// Whether a record of this collection with this sequence is older than the folder, or that of others.
    pub fn is_of_others(&self, prefix: &str, collection: u64, sequence: u64) -> bool {
        let mark = self.others.get(prefix);
        mark.is_some_and(|mark| mark.number == collection && sequence < mark.next_sequence)
    }

    /// Lets the next look read the files again. Their records stay.
    pub fn forget_versions(&mut self, is_chosen: impl Fn(&FolderFile) -> bool) {
        for file in self.files.values_mut().filter(|file| is_chosen(file)) {
            file.stamp = None;
        }
    }

    /// The names of all records of the files.
    pub fn names(&self) -> PublishedNames<'_> {
        let records = || self.files.values().flat_map(|file| &file.records);
        PublishedNames {
            records: records().collect(),
            items: records().map(|name| name.identifier.as_str()).collect(),
        }
    }
}

/// The names of the records in files.
#[derive(Debug)]
pub struct PublishedNames<'a> {
    records: HashSet<&'a RecordName>,
    items: HashSet<&'a str>,
}

impl PublishedNames<'_> {
    /// Whether a file has this item in any format.
    pub fn has_item(&self, identifier: &str) -> bool {
        self.items.contains(identifier)
    }

    /// Whether a file has this record, or it can be the `oai_dc` that was made of another format of its item.
    pub fn has(&self, name: &RecordName) -> bool {
        self.records.contains(name) || (name.prefix == DUBLIN_CORE && self.has_item(&name.identifier))
    }
}
