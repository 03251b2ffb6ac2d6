//! SIGKILL at random moments of commits and compactions, and a full disk: no page is stored in part or twice.
//!
//! The child process is this test binary again, which runs the same test with [`CHILD`] set.
//! `OAIMEND_KILLS=200 cargo test -p oaimend-store-local kill` kills this number of times.

use crate::record_log::Folder;
use oaimend_oai::UnixSecs;
use oaimend_store::{HarvestProgress, MirrorError, MirrorStore, NewRecord, OpenList, PageCommit};
use oaimend_store_contract::mirror::fixtures::{
    MirrorBackend, PREFIX, REPOSITORY, all_pages, deleted, everything, record, whole,
};
use oaimend_store_local::RecordLog;
use oaimend_test_support::random::Random;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The data folder of the child process.
pub(crate) const CHILD: &str = "OAIMEND_MIRROR_CHILD";
/// Few identifiers, so that records are replaced often, and compactions run often.
pub(crate) const FEW: usize = 900;
/// Many identifiers, so that the store grows.
const MANY: usize = 1_000_000_000;
const PAGE_RECORDS: usize = 80;

/// The records of a page, which depend on its number and on the number of identifiers alone.
fn page(number: u64, identifiers: usize) -> Vec<NewRecord> {
    let mut random = Random::new(number);
    let one = |_| {
        let identifier = format!("oai:x:{}", random.below(identifiers));
        if random.chance(10) {
            deleted(&identifier, number as i64, &["s"])
        } else {
            let text = format!("page {number} {}", random.next()).repeat(1 + random.below(60));
            record(&identifier, number as i64, &["s"], &text)
        }
    };
    (0..PAGE_RECORDS).map(one).collect()
}

/// The number of pages in a store.
fn cursor(progress: &HarvestProgress) -> u64 {
    progress.open_list.as_ref().map_or(0, |list| list.cursor)
}

async fn commit_page(store: &dyn MirrorStore, number: u64, identifiers: usize) -> Result<(), MirrorError> {
    let progress = store.progress(REPOSITORY, PREFIX).await?;
    let open_list = Some(OpenList { cursor: number + 1, ..OpenList::default() });
    let page = PageCommit {
        repository: REPOSITORY.0.to_owned(),
        prefix: PREFIX.0.to_owned(),
        stamp_secs: UnixSecs(1000 + number as i64),
        records: page(number, identifiers),
        progress: HarvestProgress { open_list, ..progress },
        ..PageCommit::default()
    };
    store.commit(page).await.map(drop)
}

/// Checks that the store contains its first pages, and nothing else. Returns their number.
pub(crate) async fn check(store: &dyn MirrorStore, identifiers: usize) -> u64 {
    let pages = cursor(&store.progress(REPOSITORY, PREFIX).await.expect("readable"));
    let mut expected: BTreeMap<String, (NewRecord, i64)> = BTreeMap::new();
    for number in 0..pages {
        let versions =
            page(number, identifiers).into_iter().map(|record| (record.identifier.clone(), record));
        for (identifier, record) in versions.collect::<BTreeMap<_, _>>() {
            let known = expected.get(&identifier).map(|(known, _)| known.content_hash);
            if known != Some(record.content_hash) {
                expected.insert(identifier, (record, 1000 + number as i64));
            }
        }
    }
    let (listed, damaged) = all_pages(store, whole(everything())).await;
    assert_eq!((listed.len(), damaged), (expected.len(), 0), "after {pages} pages");
    for stored in listed {
        let (record, stamp_secs) = &expected[&stored.identifier];
        assert_eq!((&stored.bytes, stored.status), (&record.bytes, record.status), "after {pages} pages");
        assert_eq!(stored.stamp_secs, UnixSecs(*stamp_secs), "after {pages} pages");
    }
    let verification = store.verify(REPOSITORY).await.expect("readable");
    assert_eq!((verification.records, verification.damaged), (expected.len() as u64, 0));
    pages
}

/// This test binary, which runs one test as the child.
pub(crate) fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", test, "--nocapture"]).env(CHILD, folder);
    command.stdout(Stdio::piped());
    command
}

/// Commits pages until a commit fails, and prints the number of each page.
pub(crate) async fn commit_pages(store: &dyn MirrorStore, identifiers: usize) -> MirrorError {
    let mut number = cursor(&store.progress(REPOSITORY, PREFIX).await.expect("readable"));
    loop {
        if let Err(error) = commit_page(store, number, identifiers).await {
            return error;
        }
        number += 1;
        println!("page {number}");
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("threads")
}

#[test]
fn a_killed_process_stores_no_page_in_part_or_twice() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let store = RecordLog::open(Path::new(&folder)).expect("readable");
        panic!("a commit failed: {}", runtime().block_on(commit_pages(&store, FEW)));
    }
    let kills = std::env::var("OAIMEND_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let seed = 20_261_123;
    println!("seed {seed}, {kills} kills");
    let (mut random, folder) = (Random::new(seed), Folder::new());
    let mut pages = 0;
    for kill in 0..kills {
        let test = "kill::a_killed_process_stores_no_page_in_part_or_twice";
        let mut process = child(test, folder.0.path()).spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let numbers = output.lines().map_while(Result::ok);
        let mut numbers = numbers.filter_map(|line| line.strip_prefix("page ")?.parse::<u64>().ok());
        let committed = numbers.nth(random.below(60)).expect("the child commits");
        for _ in 0..random.below(4000) {
            std::thread::yield_now();
        }
        process.kill().expect("it runs");
        process.wait().expect("it was killed");
        let store = folder.open();
        let stored = runtime().block_on(check(&*store, FEW));
        store.close();
        assert!(stored >= committed && stored > pages, "kill {kill}: {stored} of {committed} pages");
        pages = stored;
    }
    let files = std::fs::read_dir(folder.0.path().join("mirror")).expect("readable").count();
    assert!(files < 30, "{files} files: no compaction has removed a segment");
}

#[test]
fn a_full_disk_stops_commits_and_not_reads() {
    let test = "kill::a_full_disk_stops_commits_and_not_reads";
    if let Some(folder) = std::env::var_os(CHILD) {
        let store = RecordLog::open(Path::new(&folder)).expect("readable");
        runtime().block_on(async {
            let error = commit_pages(&store, MANY).await;
            assert!(matches!(error, MirrorError::Io { .. } | MirrorError::Database(_)), "{error}");
            assert!(error.to_string().contains("check space and rights of the data folder"), "{error}");
            println!("the disk is full: {error}");
            for _ in 0..3 {
                let pages = check(&store, MANY).await;
                println!("{pages} pages are readable");
                commit_page(&store, pages, MANY).await.expect_err("the disk is still full");
            }
        });
        return;
    }
    // The limits are in units of 512 bytes or of 1 KiB, by the shell. The index fails with some, a segment with others.
    for limit in [3200, 4500, 9000] {
        let folder = Folder::new();
        let inner = child(test, folder.0.path());
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"")]);
        limited.arg(inner.get_program()).args(inner.get_args()).env(CHILD, folder.0.path());
        let output = limited.output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "limit {limit}: {text}{errors}");
        assert!(text.contains("the disk is full") && text.contains("page 3\n"), "limit {limit}: {text}");
        let store = folder.open();
        runtime().block_on(async {
            let pages = check(&*store, MANY).await;
            assert!(pages > 3, "limit {limit}: {pages}");
            commit_page(&*store, pages, MANY).await.expect("the disk has space again");
            assert_eq!(check(&*store, MANY).await, pages + 1);
        });
    }
}
