//! The search index follows the mirror, whatever happens to the process, the disk and the index.

use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Source, fetch, post};
use oaimend::config::{Config, Mapping};
use oaimend_base::clock::uptime;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// How long the index may take for something that happens in the background.
const INDEXED_WITHIN: Duration = Duration::from_secs(60);

/// The number of records that a query finds; `None` while the index is built.
#[track_caller]
fn count(address: SocketAddr, query: &str) -> Option<u64> {
    let got = fetch(address, &format!("/_search.json?q={query}"));
    if got.status == 503 {
        assert!(!got.header("retry-after").is_empty(), "{}", got.text());
        return None;
    }
    assert_eq!(got.status, 200, "{}", got.text());
    serde_json::from_slice::<Value>(&got.body).expect("JSON")["total"].as_u64()
}

/// Waits until a query finds so many records.
#[track_caller]
fn wait_for_count(address: SocketAddr, query: &str, expected: u64) {
    let began = uptime();
    loop {
        let found = count(address, query);
        if found == Some(expected) {
            return;
        }
        assert!(uptime() - began < INDEXED_WITHIN, "{query}: {found:?} of {expected}");
        std::thread::yield_now();
    }
}

fn state(admin: SocketAddr) -> Value {
    serde_json::from_slice(&fetch(admin, "/-/search").body).expect("JSON")
}

/// Waits until the index contains so many records and everything that the mirror has.
#[track_caller]
fn wait_for_records(admin: SocketAddr, records: usize) -> Value {
    let began = uptime();
    loop {
        let state = state(admin);
        if state["records"] == records && state["changes_behind"] == 0 && state["is_building"] == false {
            return state;
        }
        assert!(uptime() - began < INDEXED_WITHIN, "{records}: {state}");
        std::thread::yield_now();
    }
}

/// The identifiers of all records that a query finds.
#[track_caller]
fn identifiers(address: SocketAddr, query: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for page in 1.. {
        let got = fetch(address, &format!("/_search.json?q={query}&page={page}"));
        assert_eq!(got.status, 200, "{}", got.text());
        let results: Value = serde_json::from_slice(&got.body).expect("JSON");
        let items = results["items"].as_array().expect("a list");
        found.extend(items.iter().filter_map(|item| Some(item["identifier"].as_str()?.to_owned())));
        if results["next"].is_null() {
            break;
        }
    }
    found
}

fn mirrored(id: &str, source: &Source) -> Mapping {
    let mut mapping = Mapping::new(id, &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.mirror = Some(MirrorSettings::default());
    mapping
}

fn configure(config: &mut Config, source: &Source) {
    config.repositories.add_fixed(mirrored("x", source));
}

fn sync(proxy: &Proxy, harvests: u64) {
    assert_eq!(post(proxy.admin(), "/-/mirror/x/sync", "").status, 202);
    proxy.wait_for_harvests("x", harvests);
}

/// Gives records another title, as of the next day.
fn retitle(collection: &Mutex<Collection>, numbers: std::ops::Range<usize>, title: &str) {
    let mut collection = collection.lock().expect("no test panics while it holds this");
    collection.now_secs += DAY_SECS;
    let datestamp_secs = collection.now_secs;
    for number in numbers {
        let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
        (entry.title, entry.datestamp_secs) = (title.to_owned(), datestamp_secs);
    }
}

/// A folder for the real program, with the mirrored repository `x`.
fn folder_with(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!("base_url = \"{}\"\nallow_private = true\n[mirror]\n", source.base_url());
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    folder
}

fn start(folder: &Path) -> Program {
    Program::run(serve(folder).args(["--admin", "127.0.0.1:0"]))
}

#[test]
fn a_record_is_found_after_its_commit_and_no_longer_by_its_old_text() {
    let (source, collection) = Collection::of(30).start();
    let proxy = Proxy::with(|config| configure(config, &source));
    proxy.wait_for_harvests("x", 1);
    wait_for_count(proxy.address(), "title:title", 30);
    retitle(&collection, 3..4, "Lighthouse");
    sync(&proxy, 2);
    wait_for_count(proxy.address(), "lighthouse", 1);
    assert_eq!(count(proxy.address(), "title:title"), Some(29));
    collection.lock().expect("no panic").entries.get_mut(&identifier(3)).expect("it exists").deleted = true;
    retitle(&collection, 3..4, "");
    sync(&proxy, 3);
    wait_for_count(proxy.address(), "lighthouse", 0);
}

#[test]
fn without_a_mirror_there_is_no_index() {
    let (source, _collection) = Collection::of(3).start();
    let proxy = Proxy::of(&source);
    let state = state(proxy.admin());
    assert_eq!((&state["records"], &state["is_building"]), (&0.into(), &false.into()), "{state}");
    assert_eq!(proxy.get("/_search").status, 404);
    assert!(!proxy.data().join("search").exists());
}

#[test]
fn a_killed_process_loses_nothing_of_the_index() {
    let mut collection = Collection::of(3_000);
    collection.page_len = 100;
    let (source, collection) = collection.start();
    let folder = folder_with(&source);
    for round in 0..6_u64 {
        let program = start(folder.path());
        let (began, killer) = (uptime(), program.killer());
        // A little later in each round, while the harvest and the index grow.
        while state(program.admin())["records"].as_u64() < Some(round * 500) {
            assert!(uptime() - began < INDEXED_WITHIN, "round {round}");
            std::thread::yield_now();
        }
        killer.kill();
        program.ended();
    }
    retitle(&collection, 0..150, "Lighthouse");
    let program = start(folder.path());
    assert_eq!(post(program.admin(), "/-/mirror/x/sync", "").status / 100, 2);
    wait_for_records(program.admin(), 3_000);
    wait_for_count(program.address(), "lighthouse", 150);
    assert_eq!(identifiers(program.address(), "lighthouse"), (0..150).map(identifier).collect());
    assert_eq!(count(program.address(), "title:title"), Some(2_850));
}

/// The files of the index, without those that only say who writes to it.
fn index_files(data: &Path) -> BTreeSet<(String, u64)> {
    let files = std::fs::read_dir(data.join("search")).expect("an index");
    let files = files.flatten().map(|file| {
        (file.file_name().to_string_lossy().into_owned(), file.metadata().expect("readable").len())
    });
    files.filter(|(name, _)| !name.ends_with(".lock")).collect()
}

#[test]
fn a_restart_indexes_nothing_again() {
    let (source, _collection) = Collection::of(200).start();
    let proxy = Proxy::with(|config| configure(config, &source));
    proxy.wait_for_harvests("x", 1);
    wait_for_records(proxy.admin(), 200);
    let before = index_files(proxy.data());
    let proxy = proxy.restarted(|config| configure(config, &source));
    wait_for_records(proxy.admin(), 200);
    wait_for_count(proxy.address(), "title:title", 200);
    assert_eq!(index_files(proxy.data()), before);
}

#[test]
fn a_damaged_index_is_built_again() {
    let (source, _collection) = Collection::of(200).start();
    let mut proxy = Proxy::with(|config| configure(config, &source));
    proxy.wait_for_harvests("x", 1);
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 3] = [
        ("another format", |search| write(&search.join("meta.json"), b"{\"version\": 0}")),
        ("no files but the list of them", |search| {
            for (file, bytes) in files_of(search).into_iter().filter(|(file, _)| !file.ends_with("json")) {
                write(&search.join(file), &bytes[..bytes.len() / 2]);
            }
        }),
        ("other bytes", |search| {
            for (file, mut bytes) in files_of(search).into_iter().filter(|(file, _)| !file.ends_with("json"))
            {
                bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
                write(&search.join(file), &bytes);
            }
        }),
    ];
    for (name, damage) in damages {
        println!("{name}");
        wait_for_count(proxy.address(), "title:title", 200);
        let search = proxy.data().join("search");
        proxy = proxy.restarted(|config| {
            damage(&search);
            configure(config, &source);
        });
        assert_eq!(proxy.get("/-/readyz").status, 200, "{name}");
    }
    wait_for_count(proxy.address(), "title:title", 200);
}

/// The files of a folder with their bytes, without those that only say who writes to it.
fn files_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).expect("an index").flatten().map(|file| {
        (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path()).expect("readable"))
    });
    files.filter(|(name, _)| !name.ends_with(".lock")).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a writable folder");
}

/// Limits the length of the files of a program: 0 makes each write fail, as on a full disk.
fn limit_files(program: &Program, limit: Option<u64>) {
    let id = Pid::from_raw(program.id().cast_signed()).expect("a running program");
    let maximum = getrlimit(Resource::Fsize).maximum;
    prlimit(Some(id), Resource::Fsize, Rlimit { current: limit.or(maximum), maximum })
        .expect("our own child");
}

#[test]
fn a_full_disk_gives_no_wrong_results_and_passes() {
    let (source, collection) = Collection::of(50).start();
    let folder = folder_with(&source);
    let script = format!(
        "trap '' XFSZ; exec {} serve --listen 127.0.0.1:0 --admin 127.0.0.1:0",
        env!("CARGO_BIN_EXE_oaimend")
    );
    let program = Program::run(Command::new("sh").args(["-c", &script]).current_dir(folder.path()));
    wait_for_count(program.address(), "title:title", 50);
    retitle(&collection, 0..10, "Lighthouse");
    limit_files(&program, Some(0));
    assert_eq!(post(program.admin(), "/-/mirror/x/sync", "").status, 202);
    // The records come from the mirror, whose database cannot be read until it can be written again.
    while count(program.address(), "title:title") == Some(50) {
        std::thread::yield_now();
    }
    assert_eq!(count(program.address(), "title:title"), None);
    assert_eq!(fetch(program.address(), "/-/livez").status, 200);
    limit_files(&program, None);
    while fetch(program.address(), "/-/readyz").status != 200 {
        std::thread::yield_now();
    }
    post(program.admin(), "/-/mirror/x/sync", "");
    wait_for_count(program.address(), "lighthouse", 10);
}

#[test]
fn an_index_that_cannot_be_written_stops_nothing_else() {
    let (source, _collection) = Collection::of(50).start();
    let proxy = Proxy::with(|config| {
        write(&config.data.join("search"), b"a file in place of the folder");
        configure(config, &source);
    });
    proxy.wait_for_harvests("x", 1);
    let began = uptime();
    while state(proxy.admin())["last_error"].is_null() {
        assert!(uptime() - began < INDEXED_WITHIN, "{}", state(proxy.admin()));
        std::thread::yield_now();
    }
    assert_eq!(count(proxy.address(), "title:title"), None);
    for path in ["/-/readyz", "/_mirror/x?verb=ListRecords&metadataPrefix=oai_dc"] {
        assert_eq!(proxy.get(path).status, 200, "{path}");
    }
    std::fs::remove_file(proxy.data().join("search")).expect("it is there");
    wait_for_count(proxy.address(), "title:title", 50);
    assert!(state(proxy.admin())["last_error"].is_null());
}

#[test]
fn a_forgotten_repository_leaves_the_index() {
    let (first, _) = Collection::of(20).start();
    let (second, _) = Collection::of(7).start();
    let proxy = Proxy::with(|config| {
        configure(config, &first);
        config.repositories.add_fixed(mirrored("y", &second));
    });
    proxy.wait_for_harvests("x", 1);
    proxy.wait_for_harvests("y", 1);
    wait_for_count(proxy.address(), "title:title", 27);
    let proxy = proxy.restarted(|config| {
        config.repositories.add_fixed(mirrored("y", &second));
    });
    wait_for_count(proxy.address(), "title:title", 7);
    assert_eq!(post(proxy.admin(), "/-/mirror/x/forget", "").status, 200);
    wait_for_records(proxy.admin(), 7);
    assert_eq!(count(proxy.address(), "title:title"), Some(7));
}

#[test]
fn a_new_process_takes_over_the_index() {
    let (source, collection) = Collection::of(40).start();
    let folder = folder_with(&source);
    let old = start(folder.path());
    wait_for_count(old.address(), "title:title", 40);
    let mut command = serve(folder.path());
    command.args(["--upgrade", "--admin", &old.admin().to_string()]);
    let mut new = Program::spawn(&mut command);
    new.line("waiting for the running oaimend");
    old.signal("-QUIT");
    let new = new.served();
    assert!(old.ended().success());
    wait_for_count(new.address(), "title:title", 40);
    retitle(&collection, 0..1, "Lighthouse");
    assert_eq!(post(new.admin(), "/-/mirror/x/sync", "").status, 202);
    wait_for_count(new.address(), "lighthouse", 1);
    drop(new);
}

#[test]
fn the_index_is_built_again_on_request() {
    let (source, _collection) = Collection::of(60).start();
    let folder = folder_with(&source);
    let program = start(folder.path());
    wait_for_records(program.admin(), 60);
    let oaimend = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        let arguments = [&["search", "index", "--format", "json"], arguments].concat();
        let output = command.args(arguments).current_dir(folder.path()).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let state: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (state["records"].clone(), state["changes_behind"].clone(), state["is_building"].clone())
    };
    let whole = (60.into(), 0.into(), false.into());
    for arguments in [["--status"], ["--rebuild"]] {
        assert_eq!(oaimend(&arguments), whole, "{arguments:?}");
    }
    wait_for_count(program.address(), "title:title", 60);
    program.killer().kill();
    program.ended();
    for arguments in [["--status"], ["--rebuild"], ["--status"]] {
        assert_eq!(oaimend(&arguments), whole, "without a server: {arguments:?}");
    }
}
