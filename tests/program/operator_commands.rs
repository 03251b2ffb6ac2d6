//! The common rules of all commands for operators: which state they use, and what they leave in the data folder.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

use crate::fixtures::collection::Collection;
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::Source;

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with the mirrored repository `c`, without data.
fn folder_of(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!("base_url = \"{}\"\n[mirror]\nprefixes = [\"oai_dc\"]\n", source.base_url());
    std::fs::write(folder.path().join("mappings/c.toml"), mapping).expect("a writable folder");
    folder
}

/// All commands that only read, with their exit code and a part of their output for an empty state.
const READS: [(&[&str], i32, &str); 11] = [
    (&["mirror", "status"], 0, "the mirror is empty"),
    (&["mirror", "cat", "c"], 1, "was never harvested"),
    (&["mirror", "verify"], 0, ""),
    (&["mirror", "verify", "c", "--against-source"], 1, "never harvested"),
    (&["mirror", "compact"], 0, ""),
    (&["mirror", "forget", "c"], 64, "c"),
    (&["quarantine", "ls"], 0, "no quarantined records"),
    (&["quarantine", "show", "c", "00"], 1, "00"),
    (&["quarantine", "rm", "c", "--all"], 0, "0 records removed"),
    (&["report", "c"], 0, "nothing to report"),
    (&["mirror", "plan"], 0, "c"),
];

#[test]
fn reads_create_no_data_folder() {
    let (source, _collection) = Collection::of(3).start();
    let folder = folder_of(&source);
    for (command, code, expected) in READS {
        let output = oaimend(folder.path(), command);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{command:?}: {said}");
        assert!(said.contains(expected), "{command:?}: {said}");
        assert!(said.contains("there is no data of oaimend in the folder data"), "{command:?}: {said}");
        let output = oaimend(folder.path(), &[command, &["--data", "elsewhere"]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(74), "{command:?}: {said}");
        assert!(said.contains("in the folder elsewhere; name its folder with --data"), "{command:?}: {said}");
    }
    let mut files: Vec<_> = std::fs::read_dir(folder.path()).expect("readable").flatten().collect();
    files.retain(|file| file.file_name() != "mappings");
    assert!(files.is_empty(), "{files:?}");
    assert_eq!(oaimend(folder.path(), &["mirror", "sync"]).status.code(), Some(0));
    assert!(folder.path().join("data/lock").exists(), "a command that writes creates it");
}

#[test]
fn admin_flag_names_the_server_whatever_the_data_folder_contains() {
    let (source, _collection) = Collection::of(3).start();
    let folder = folder_of(&source);
    let mut program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    program.line("harvest of the mirror");
    let admin = program.admin().to_string();
    let without_data = folder_of(&source);
    let with_data = folder_of(&source);
    assert_eq!(oaimend(with_data.path(), &["mirror", "sync"]).status.code(), Some(0));
    assert_eq!(oaimend(with_data.path(), &["mirror", "forget", "c"]).status.code(), Some(0));
    for place in [&without_data, &with_data] {
        let run = |command: &[&str]| oaimend(place.path(), &[command, &["--admin", &admin]].concat());
        let output = run(&["mirror", "cat", "c", "--format", "ids"]);
        assert_eq!(text(&output.stdout).lines().count(), 3, "{output:?}");
        assert!(text(&run(&["mirror", "status"]).stdout).contains("oai_dc"), "of the server");
        for (command, ..) in READS.iter().filter(|(command, ..)| !command.contains(&"forget")) {
            let mut unreachable = command.to_vec();
            unreachable.extend(["--admin", "127.0.0.1:1"]);
            let output = oaimend(place.path(), &unreachable);
            assert_eq!(output.status.code(), Some(74), "{command:?}: {output:?}");
            assert!(text(&output.stderr).contains("the admin listener at 127.0.0.1:1"), "{output:?}");
        }
    }
    assert!(!without_data.path().join("data").exists());
}

#[test]
fn data_folder_of_another_user_is_refused_by_name() {
    let (source, _collection) = Collection::of(3).start();
    let folder = folder_of(&source);
    assert_eq!(oaimend(folder.path(), &["mirror", "sync"]).status.code(), Some(0));
    let data = folder.path().join("data");
    let user = std::fs::metadata(&data).expect("it is there").uid();
    // Root gives the folder away. Others find one of root.
    let (data, owner) = match user {
        0 => {
            chown(&data, Some(1), None).expect("root may");
            (data, "daemon")
        }
        _ => ("/".into(), "root"),
    };
    let named = data.to_str().expect("UTF-8");
    let count = || std::fs::read_dir(&data).expect("readable").count();
    let files = count();
    let check = ["check", "c", "--time-max-secs", "1"];
    for command in READS.iter().map(|(command, ..)| *command).chain([&["mirror", "sync"][..], &check]) {
        let output = oaimend(folder.path(), &[command, &["--data", named]].concat());
        let said = text(&output.stderr);
        assert!(said.contains(&format!("belongs to {owner}, and")), "{command:?}: {said}");
        assert!(said.contains(&format!("run: sudo -u {owner} oaimend")), "{command:?}: {said}");
        // The check prints its result.
        assert_eq!(output.status.code() == Some(74), command[0] != "check", "{command:?}: {said}");
    }
    assert_eq!(count(), files, "nothing was written");
}

#[test]
fn check_saves_private_files() {
    // Nothing listens at this address, which is a finding.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = "base_url = \"http://127.0.0.1:1/oai\"\n";
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    let script = format!("umask 022; exec {} check x", env!("CARGO_BIN_EXE_oaimend"));
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &script]).current_dir(folder.path()).output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for (path, mode) in [("data", 0o700), ("data/checks", 0o700), ("data/checks/x.json", 0o600)] {
        let about = std::fs::metadata(folder.path().join(path)).expect("it is there");
        assert_eq!(about.permissions().mode() & 0o777, mode, "{path}");
    }
}
