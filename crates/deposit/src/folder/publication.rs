//! One change of what a folder has published: which file publishes a record, and which records are deleted.

use super::listing::FolderWork;
use super::state::{FileStamp, FolderFile, FolderState, RecordName};
use std::collections::{HashMap, HashSet};

/// One change of what a folder has published. Files are reported to it in the order of their paths.
///
/// Invariant: a record that is in several files is that of the first one by its path.
#[derive(Debug)]
pub struct Publication {
    state: FolderState,
    /// The files that published the records before.
    before: HashMap<RecordName, String>,
    /// The files that publish them now.
    owners: HashMap<RecordName, String>,
    /// The files whose records are stored by this change.
    accepted: HashSet<String>,
}

/// The end of a [`Publication`].
#[derive(Debug)]
pub struct EndedPublication {
    /// What the folder has published now.
    pub state: FolderState,
    /// The records that are in no file any more.
    pub deleted: Vec<RecordName>,
    /// Whether the next look reads files again, because their records were those of other files before, or may need those of
    /// other files.
    pub reads_again: bool,
}

impl Publication {
    /// Begins with what was published before, and forgets the files that are gone.
    pub fn begin(state: &FolderState, work: &FolderWork) -> Self {
        let mut next = state.clone();
        for path in &work.gone {
            next.files.remove(path);
        }
        let read: HashSet<&str> = work.read.iter().map(String::as_str).collect();
        let mut publication =
            Self { state: next, before: HashMap::new(), owners: HashMap::new(), accepted: HashSet::new() };
        for (path, file) in &state.files {
            for name in &file.records {
                publication.before.entry(name.clone()).or_insert_with(|| path.clone());
            }
        }
        let kept = publication.state.files.iter().filter(|(path, _)| !read.contains(path.as_str()));
        for (path, file) in kept {
            for name in &file.records {
                publication.owners.entry(name.clone()).or_insert_with(|| path.clone());
            }
        }
        publication
    }

    /// Notes the records of a file. Returns the ones that another file publishes, with the path of that file.
    pub fn accept(
        &mut self,
        path: &str,
        stamp: FileStamp,
        records: Vec<RecordName>,
    ) -> Vec<(RecordName, String)> {
        let others =
            records.iter().filter_map(|name| Some((name.clone(), self.claim(path, name)?))).collect();
        let file = FolderFile { stamp: Some(stamp), records, ..FolderFile::default() };
        self.state.files.insert(path.to_owned(), file);
        self.accepted.insert(path.to_owned());
        others
    }

    /// Keeps the records that a file had before. `stamp` is the version that cannot be read; `None`: it must be read again.
    pub fn keep(&mut self, path: &str, stamp: Option<FileStamp>, problem: Option<String>) {
        let known = self.state.files.get(path).map(|file| file.records.clone());
        let is_known = known.is_some();
        let records = known.unwrap_or_default();
        for name in &records {
            self.claim(path, name);
        }
        if is_known || stamp.is_some() {
            let file = FolderFile { stamp, records, problem, ..FolderFile::default() };
            self.state.files.insert(path.to_owned(), file);
        }
    }

    /// Notes why a file that was accepted is not published as a whole.
    pub fn note_problem(&mut self, path: &str, problem: String) {
        if let Some(file) = self.state.files.get_mut(path) {
            file.problem.get_or_insert(problem);
        }
    }

    /// Notes why the repository has refused a record of a file that was accepted. It is read again after another file was
    /// published, because the record may need it.
    pub fn note_refusal(&mut self, path: &str, problem: String) {
        self.note_problem(path, problem);
        if let Some(file) = self.state.files.get_mut(path) {
            file.is_refused = true;
        }
    }

    /// Gives a record to a file, unless an earlier one has it, whose path is returned.
    fn claim(&mut self, path: &str, name: &RecordName) -> Option<String> {
        match self.owners.get(name) {
            Some(owner) if owner.as_str() < path => Some(owner.clone()),
            _ => {
                self.owners.insert(name.clone(), path.to_owned());
                None
            }
        }
    }

    /// Ends it after all files were reported.
    pub fn end(self) -> EndedPublication {
        let Self { mut state, before, owners, accepted } = self;
        let mut reads_again = false;
        for (name, owner) in &owners {
            let is_new_owner = before.get(name) != Some(owner);
            if is_new_owner
                && !accepted.contains(owner)
                && let Some(file) = state.files.get_mut(owner)
                && file.stamp.is_some()
            {
                // Its version of the record was never stored.
                file.stamp = None;
                reads_again = true;
            }
        }
        let is_published = |path: &String| state.files.get(path).is_some_and(|file| !file.is_refused);
        if accepted.iter().any(is_published) {
            for file in state.files.values_mut().filter(|file| file.is_refused) {
                file.stamp = None;
                reads_again = true;
            }
        }
        let mut deleted: Vec<RecordName> =
            before.into_keys().filter(|name| !owners.contains_key(name)).collect();
        deleted.sort_unstable();
        EndedPublication { state, deleted, reads_again }
    }
}
