//! What a folder publishes, beside a model of it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use oaimend_deposit::{
    CollectionMark, CollectionMarks, EmptyFolder, FileStamp, FolderFile, FolderListing, FolderPlace,
    FolderState, Publication, RecordName,
};
use oaimend_test_support::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const PLACE: FolderPlace = FolderPlace { device: 1, inode: 2 };

/// A folder: the version of each file, and its records; and the store: the file and its version for each record.
#[derive(Default)]
struct Model {
    files: BTreeMap<String, (u64, Vec<u8>)>,
    state: FolderState,
    before: Option<FolderListing>,
    store: BTreeMap<RecordName, (String, u64)>,
}

fn stamp(version: u64) -> FileStamp {
    FileStamp { bytes: version, ..FileStamp::default() }
}

fn name(record: u8) -> RecordName {
    RecordName { prefix: "oai_dc".to_owned(), identifier: format!("oai:x:{record}") }
}

impl Model {
    fn write(&mut self, path: &str, version: u64, records: &[u8]) {
        self.files.insert(path.to_owned(), (version, records.to_vec()));
    }

    fn listing(&self) -> FolderListing {
        let files = self.files.iter().map(|(path, (version, _))| (path.clone(), stamp(*version)));
        FolderListing {
            place: PLACE,
            files: files.collect(),
            unread: Vec::new(),
            left_out: BTreeMap::new(),
            mounts: BTreeSet::new(),
        }
    }

    /// Looks once, and returns whether nothing is left.
    fn look(&mut self, listing: FolderListing) -> Result<bool, EmptyFolder> {
        let work = listing.work(&self.state, self.before.as_ref())?;
        self.before = Some(listing);
        let mut publication = Publication::begin(&self.state, &work);
        for path in &work.read {
            let (version, records) = self.files[path].clone();
            let names: Vec<RecordName> = records.iter().map(|record| name(*record)).collect();
            let others = publication.accept(path, stamp(version), names.clone());
            for name in names {
                if others.iter().all(|(other, _)| *other != name) {
                    self.store.insert(name, (path.clone(), version));
                }
            }
        }
        let ended = publication.end();
        for name in &ended.deleted {
            self.store.remove(name).expect("only published records are deleted");
        }
        self.state = ended.state;
        Ok(work.is_settled && !ended.reads_again)
    }

    fn look_at_all(&mut self) -> Result<bool, EmptyFolder> {
        self.look(self.listing())
    }

    /// What the folder should publish: each record of the first file that has it.
    fn expected(&self) -> BTreeMap<RecordName, (String, u64)> {
        let mut expected = BTreeMap::new();
        for (path, (version, records)) in &self.files {
            for record in records {
                expected.entry(name(*record)).or_insert_with(|| (path.clone(), *version));
            }
        }
        expected
    }
}

#[test]
fn random_folders_are_published_as_their_model() {
    let seed = 0x41f;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for round in 0..300 {
        let mut model = Model::default();
        let mut version = 0;
        for _ in 0..20 {
            for _ in 0..random.below(4) {
                let path = format!("{}.xml", random.below(6));
                version += 1;
                match random.below(4) {
                    0 => drop(model.files.remove(&path)),
                    1 => {
                        // A renamed file keeps its version.
                        if let Some((version, records)) = model.files.remove(&path) {
                            model.write(&format!("{}.xml", random.below(6)), version, &records);
                        }
                    }
                    _ => {
                        let mut records: Vec<u8> = (0..random.below(3))
                            .map(|_| u8::try_from(random.below(5)).expect("small"))
                            .collect();
                        records.dedup();
                        model.write(&path, version, &records);
                    }
                }
            }
            if random.chance(30) {
                let _ = model.look_at_all();
                continue;
            }
            if model.files.is_empty() {
                continue;
            }
            let looks = (0..6).find(|_| model.look_at_all() == Ok(true));
            assert!(looks.is_some(), "round {round}: the looks do not end");
            assert_eq!(model.store, model.expected(), "round {round}");
        }
    }
}

#[test]
fn a_file_is_read_after_two_looks_at_one_version() {
    let mut model = Model::default();
    for version in 1..4 {
        model.write("a.xml", version, &[1]);
        assert_eq!(model.look_at_all(), Ok(false), "it is being written");
        assert!(model.store.is_empty());
    }
    assert_eq!(model.look_at_all(), Ok(true));
    assert_eq!(model.store, model.expected());
}

#[test]
fn folders_that_may_be_wrong_delete_nothing() {
    let mut model = Model::default();
    for path in ["a.xml", "s/b.xml", "sb.xml"] {
        model.write(path, 1, &[path.as_bytes()[0]]);
    }
    for _ in 0..2 {
        model.look_at_all().expect("files");
    }
    let published = model.store.clone();
    let files = std::mem::take(&mut model.files);
    for _ in 0..3 {
        assert_eq!(model.look_at_all(), Err(EmptyFolder));
    }
    assert_eq!(model.store, published, "an empty folder");
    // A subfolder that cannot be read.
    model.files = files;
    model.files.remove("s/b.xml");
    for _ in 0..3 {
        let unread = vec!["s".to_owned()];
        model.look(FolderListing { unread, ..model.listing() }).expect("files");
    }
    assert_eq!(model.store, published, "an unreadable subfolder");
    model.look_at_all().expect("files");
    // Another folder at the path is looked at twice too.
    let other = FolderPlace { device: 9, inode: 9 };
    model.look(FolderListing { place: other, ..model.listing() }).expect("files");
    assert_eq!(model.store, published, "one look");
    model.look(FolderListing { place: other, ..model.listing() }).expect("files");
    assert_eq!(model.store.len(), 2);
}

#[test]
fn mounted_subfolders_without_their_files_delete_nothing() {
    let mut model = Model::default();
    for path in ["a.xml", "disk/b.xml", "disk/c.xml", "diskette.xml"] {
        let record = u8::try_from(path.len()).expect("short") + path.as_bytes()[path.len() - 5];
        model.write(path, 1, &[record]);
    }
    let mounts = BTreeSet::from(["disk".to_owned()]);
    for _ in 0..2 {
        model.look(FolderListing { mounts: mounts.clone(), ..model.listing() }).expect("files");
    }
    model.state.mounts = mounts.clone();
    let published = model.store.clone();
    let disk: Vec<_> =
        ["disk/b.xml", "disk/c.xml"].map(|path| model.files.remove(path).expect("a file")).into();
    for is_mounted in [false, true, true] {
        // The folder without its disk, and an empty disk.
        let of_look = if is_mounted { mounts.clone() } else { BTreeSet::new() };
        let mut listing = FolderListing { mounts: of_look, ..model.listing() };
        listing.keep_emptied_mounts(&model.state);
        assert!(listing.left_out.contains_key("disk") && listing.mounts == mounts);
        model.look(listing).expect("files");
    }
    assert_eq!(model.store, published);
    // With a file in it the subfolder is the right one.
    let (version, records) = disk[0].clone();
    model.write("disk/b.xml", version, &records);
    for _ in 0..2 {
        let mut listing = FolderListing { mounts: mounts.clone(), ..model.listing() };
        listing.keep_emptied_mounts(&model.state);
        assert!(listing.left_out.is_empty());
        model.look(listing).expect("files");
    }
    assert_eq!(model.store.len(), published.len() - 1);
}

#[test]
fn records_that_were_refused_are_read_again_after_others() {
    let mut model = Model::default();
    model.write("a.xml", 1, &[1]);
    model.write("b.xml", 1, &[2]);
    let listing = model.listing();
    let look = |state: &FolderState, refused: &[&str]| {
        let work = listing.work(state, Some(&listing)).expect("files");
        let mut publication = Publication::begin(state, &work);
        for path in &work.read {
            publication.accept(path, stamp(1), vec![name(path.as_bytes()[0])]);
        }
        for path in refused.iter().filter(|path| work.read.iter().any(|read| read == *path)) {
            publication.note_refusal(path, "it has no oai_dc".to_owned());
        }
        (work.read, publication.end())
    };
    let (read, ended) = look(&model.state, &["a.xml"]);
    assert!(read.len() == 2 && ended.reads_again, "b.xml may be what a.xml needs");
    let (read, again) = look(&ended.state, &["a.xml"]);
    assert!(read == ["a.xml"] && !again.reads_again, "it is refused once more");
    assert!(look(&again.state, &[]).0.is_empty(), "until something changes");
    let (_, accepted) = look(&ended.state, &[]);
    assert!(accepted.state.problems() == 0 && !accepted.reads_again);
}

#[test]
fn records_of_others_are_known_by_their_sequences() {
    let mark = |number, next_sequence| CollectionMark { number, next_sequence };
    let marks =
        |number, next_sequence| CollectionMarks::from([("oai_dc".to_owned(), mark(number, next_sequence))]);
    let file = FolderFile { stamp: Some(stamp(1)), ..FolderFile::default() };
    let files = BTreeMap::from([("a.xml".to_owned(), file)]);
    let mut state = FolderState { files, stored: marks(1, 7), is_compared: true, ..FolderState::default() };
    assert!(!state.note_marks(marks(1, 7)), "nobody else has changed it");
    assert!(state.is_compared && state.files["a.xml"].stamp.is_some());
    // Others have written; or the repository was forgotten and has another number.
    for changed in [marks(1, 9), marks(2, 7), CollectionMarks::new()] {
        state.is_compared = true;
        state.forget_versions(|_| false);
        assert!(state.note_marks(changed.clone()));
        assert!(!state.is_compared && state.files["a.xml"].stamp.is_none() && state.stored == changed);
    }
    state.note_marks(marks(1, 9));
    assert!(state.is_of_others("oai_dc", 1, 8));
    assert!(!state.is_of_others("oai_dc", 1, 9) && !state.is_of_others("oai_dc", 2, 8));
    assert!(!state.is_of_others("mods", 1, 8));
}

#[test]
fn a_version_that_cannot_be_read_keeps_the_records() {
    let mut model = Model::default();
    model.write("a.xml", 1, &[1]);
    for _ in 0..2 {
        model.look_at_all().expect("files");
    }
    model.write("a.xml", 2, &[]);
    let before = model.listing();
    let work = before.work(&model.state, Some(&before)).expect("files");
    let mut publication = Publication::begin(&model.state, &work);
    publication.keep("a.xml", Some(stamp(2)), Some("no XML".to_owned()));
    let ended = publication.end();
    assert!(ended.deleted.is_empty() && ended.state.problems() == 1 && ended.state.is_known());
    let work = before.work(&ended.state, Some(&before)).expect("files");
    assert!(work.read.is_empty(), "it is reported once");
}
