//! `oaimend backup` and `oaimend restore`, with and without a server.

use crate::fixtures::program::{NO_DUMP_RESERVE, Program, serve};
use crate::fixtures::provider::Fault::Nothing;
use crate::fixtures::provider::Provider;
use crate::fixtures::provider::When::Always;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The records of the mirror in this data folder.
fn records(folder: &Path, data: &str) -> String {
    let output = oaimend(folder, &["mirror", "cat", "x", "--format", "jsonl", "--data", data]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_backup_of_a_running_server_is_restored() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    fs::create_dir(folder.join("mappings")).expect("writable");
    let mapping = format!("base_url = \"{}\"\n[mirror]\nprefixes = [\"oai_dc\"]\n", source.base_url());
    fs::write(folder.join("mappings/x.toml"), mapping).expect("writable");
    fs::write(folder.join("oaimend.toml"), NO_DUMP_RESERVE).expect("writable");
    let synced = oaimend(folder, &["mirror", "sync"]);
    assert!(synced.status.success(), "{}", text(&synced.stderr));
    let before = records(folder, "data");
    let without = oaimend(folder, &["backup", "without.backup"]);
    assert!(without.status.success(), "{}", text(&without.stderr));
    let dumped = oaimend(folder, &["mirror", "export", "x", "-o", "x.jsonl"]);
    assert!(dumped.status.success(), "{}", text(&dumped.stderr));
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("x.jsonl.manifest.json")).expect("a manifest"))
            .expect("JSON");
    let position = manifest["position"].as_str().expect("a text");
    let server = Program::run(serve(folder).args(["--admin", "127.0.0.1:0"]));
    let admin = server.admin().to_string();
    let with = oaimend(folder, &["backup", "with.backup", "--admin", &admin]);
    assert!(with.status.success(), "{}", text(&with.stderr));
    let again = oaimend(folder, &["backup", "with.backup", "--admin", &admin]);
    assert_eq!(again.status.code(), Some(64), "an existing file stays: {}", text(&again.stderr));
    let refused = oaimend(folder, &["restore", "with.backup"]);
    assert_eq!(refused.status.code(), Some(74));
    assert!(text(&refused.stderr).contains("data exists and is not empty"), "{}", text(&refused.stderr));
    drop(server);
    for file in ["without.backup", "with.backup"] {
        let data = format!("{file}.data");
        let restored = oaimend(folder, &["restore", file, "--data", &data]);
        assert!(restored.status.success(), "{}", text(&restored.stderr));
        assert_eq!(records(folder, &data), before, "{file}");
        let [key, copy] =
            ["data", data.as_str()].map(|data| fs::read(folder.join(data).join("token.key")).expect("a key"));
        assert_eq!(key, copy, "tokens stay valid");
        assert!(!folder.join(&data).join("cache").exists());
        // Changes after the backup are lost, so no client can continue after them.
        let stale = oaimend(folder, &["mirror", "export", "x", "--since", position, "--data", &data]);
        assert!(text(&stale.stderr).contains("a backup was restored"), "{}", text(&stale.stderr));
    }
    let left = fs::read_dir(folder).expect("readable").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".part") && !name.starts_with("restore-")), "{left:?}");
}

#[test]
fn commands_find_the_server_of_their_data_folder() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let server = Program::run(serve(folder.path()).args([
        "--admin",
        "127.0.0.1:0",
        "--map",
        "x=http://127.0.0.1:9/oai",
    ]));
    let stranger = Program::run(serve(other.path()).args(["--admin", "127.0.0.1:0"]));
    // The configuration leads to another server.
    let settings = format!("[admin]\nlisten = \"{}\"\n", stranger.admin());
    fs::write(folder.path().join("oaimend.toml"), settings).expect("writable");
    let listed = oaimend(folder.path(), &["quarantine", "ls", "x"]);
    assert_eq!(text(&listed.stdout), "no quarantined records\n", "{}", text(&listed.stderr));
    let unknown = oaimend(other.path(), &["quarantine", "ls", "x"]);
    assert_eq!(unknown.status.code(), Some(64), "{}", text(&unknown.stdout));
    drop(server);
    let without = oaimend(folder.path(), &["quarantine", "ls", "x"]);
    assert_eq!(without.status.code(), Some(64), "nobody serves x: {}", text(&without.stdout));
}

#[test]
fn a_backup_without_space_is_refused_before_a_file_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let map = ["--map", "x=http://127.0.0.1:9/oai"];
    let server = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]).args(map));
    let disk = rustix::fs::statvfs(folder.path()).expect("a disk with a size");
    let large = fs::File::create(folder.path().join("data/records")).expect("writable");
    // It has a hole, and needs no space itself.
    large.set_len(disk.f_bavail * disk.f_frsize + (1 << 30)).expect("a file system with holes");
    let refused = || {
        let output = oaimend(folder.path(), &["backup", "x.backup"]);
        assert_eq!(output.status.code(), Some(74));
        assert!(text(&output.stderr).contains("of them are missing"), "{}", text(&output.stderr));
    };
    refused();
    drop(server);
    refused();
    let names = fs::read_dir(folder.path()).expect("readable").flatten().map(|entry| entry.file_name());
    let names: Vec<_> = names.filter(|name| name != "data" && name != "mappings").collect();
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn a_folder_without_data_has_no_backup() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = oaimend(folder.path(), &["backup", "x.backup"]);
    assert_eq!(output.status.code(), Some(74));
    assert!(text(&output.stderr).contains("there is no data of oaimend"), "{}", text(&output.stderr));
    assert!(!folder.path().join("x.backup").exists());
}
