//! `oaimend token`: tokens are printed once, and created and revoked at once also for a running server.

use crate::fixtures::program::{Program, serve};
use oaimend_write_tokens::WriteTokens;
use serde_json::Value;
use std::fs;
use std::io::pipe;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.arg("token").args(arguments).current_dir(folder).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with the local repositories `x` and `y`, and `w` with a source, without data.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let (local, source) = ("kind = \"local\"\n", "base_url = \"http://127.0.0.1:9/oai\"\n");
    for (id, mapping) in [("x", local), ("y", local), ("w", source)] {
        fs::write(folder.path().join("mappings").join(id).with_extension("toml"), mapping).expect("writable");
    }
    folder
}

/// Creates a token; returns it.
#[track_caller]
fn create(folder: &Path, arguments: &[&str]) -> String {
    let output = oaimend(folder, &[&["create"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let token = printed.strip_suffix('\n').expect("a line").to_owned();
    assert!(token.starts_with("oaimend_") && !token.contains(char::is_whitespace), "{token}");
    assert!(!text(&output.stderr).contains(&token), "{}", text(&output.stderr));
    token
}

#[test]
fn tokens_are_created_listed_and_revoked_beside_a_running_server() {
    let folder = folder();
    let folder = folder.path();
    // It has locked the data folder, and has no admin listener.
    let _server = Program::run(serve(folder).args(["--admin", "off"]));
    let output = oaimend(folder, &["create", "--repository", "x"]);
    assert_eq!(
        text(&output.stderr),
        "oaimend: the token x-1 may write all records of x; it is not shown again, and oaimend token revoke x-1 revokes \
         it\n"
    );
    let first = text(&output.stdout).trim_end().to_owned();
    let third = oaimend(folder, &["create", "--repository", "x", "--set", "b"]);
    assert!(text(&third.stderr).contains(" x-2 may write records of x in the set b; "), "{third:?}");
    assert!(oaimend(folder, &["revoke", "x-2"]).status.success());
    let second = create(folder, &["--repository", "y", "--set", "maps:old", "--set", "a", "--name", "press"]);
    let tokens = WriteTokens::new(&folder.join("data"));
    let rights = |token: &str| tokens.rights(token).expect("a readable file");
    assert!(rights(&first).is_some_and(|rights| rights.may_write("x", &[])));
    let rights_of_press = rights(&second).expect("it exists");
    assert!(rights_of_press.may_write("y", &["maps:old:1900".to_owned()]));
    assert!(!rights_of_press.may_write("y", &["maps".to_owned()]));
    let listed = text(&oaimend(folder, &["list"]).stdout);
    let created = &listed.lines().nth(1).expect("a row")[19..39];
    let expected = format!(
        "name   repository  created               sets\n\
         x-1    x           {created}  all sets\n"
    );
    assert!(listed.starts_with(&expected), "{listed}");
    assert!(listed.lines().nth(2).is_some_and(|row| row.starts_with("press  y ")), "{listed}");
    assert!(listed.ends_with("  a, maps:old\n"), "{listed}");
    let json = text(&oaimend(folder, &["list", "--format", "json"]).stdout);
    let value: Value = serde_json::from_str(&json).expect("JSON");
    let press = &value["tokens"][1];
    assert_eq!((press["name"].as_str(), press["repository"].as_str()), (Some("press"), Some("y")));
    assert_eq!(press["sets"], serde_json::json!(["a", "maps:old"]));
    assert_eq!(value["tokens"][0]["created"], created);
    assert_eq!(press.as_object().map(|press| press.len()), Some(4), "no hash: {press}");
    let stored = fs::read_to_string(folder.join("data/write-tokens.json")).expect("it is there");
    for token in [&first, &second] {
        assert!(![&listed, &json, &stored].iter().any(|text| text.contains(&token[8..])), "{token}");
    }
    let revoked = oaimend(folder, &["revoke", "x-1"]);
    assert_eq!(text(&revoked.stdout), "x-1 revoked\n", "{}", text(&revoked.stderr));
    assert_eq!(rights(&first), None);
    assert!(rights(&second).is_some());
}

#[test]
fn refused_tokens_are_named_and_change_nothing() {
    let folder = folder();
    let folder = folder.path();
    let refused = |arguments: &[&str], code: i32, expected: &str| {
        let output = oaimend(folder, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    };
    refused(&["create"], 64, "--repository <ID>");
    refused(&["create", "--repository", "z"], 64, "\"z\" is not a repository id; expected x, y");
    refused(&["create", "--repository", "w"], 64, "\"w\" is not a local repository");
    refused(&["create", "--repository", "x", "--set", "a b"], 64, "\"a b\" is not a setSpec; expected");
    refused(&["create", "--repository", "x", "--name", "a/b"], 64, "\"a/b\" is not a name; expected");
    refused(&["revoke", "x-1"], 74, "there is no data of oaimend in the folder data; name its folder");
    refused(&["list", "--data", "elsewhere"], 74, "in the folder elsewhere; name its folder with --data");
    let empty = oaimend(folder, &["list"]);
    assert_eq!((empty.status.code(), text(&empty.stdout)), (Some(0), "no write tokens\n".to_owned()));
    assert!(text(&empty.stderr).contains("there is no data of oaimend in the folder data; --data names"));
    assert!(!folder.join("data").exists(), "nothing was written");
    let token = create(folder, &["--repository", "x"]);
    refused(&["create", "--repository", "x", "--name", "x-1"], 64, "there is a write token x-1 already");
    refused(&["revoke", "x-2"], 64, "there is no write token \"x-2\"; expected x-1");
    let file = folder.join("data/write-tokens.json");
    let stored = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, &stored[..stored.len() / 2]).expect("writable");
    for arguments in [&["list"][..], &["revoke", "x-1"], &["create", "--repository", "x"]] {
        refused(arguments, 74, "data/write-tokens.json: EOF while parsing");
    }
    fs::write(&file, stored).expect("writable");
    assert!(WriteTokens::new(&folder.join("data")).rights(&token).expect("readable").is_some());
}

#[test]
fn token_files_in_the_data_folder_are_private() {
    let folder = folder();
    let script = format!("umask 022; exec {} token create --repository x", env!("CARGO_BIN_EXE_oaimend"));
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &script]).current_dir(folder.path()).output().expect("a shell");
    assert!(output.status.success(), "{output:?}");
    for (path, mode) in
        [("data", 0o700), ("data/write-tokens.json", 0o600), ("data/write-tokens.lock", 0o600)]
    {
        let about = fs::metadata(folder.path().join(path)).expect("it is there");
        assert_eq!(about.permissions().mode() & 0o777, mode, "{path}");
    }
}

#[test]
fn tokens_in_a_data_folder_of_another_user_are_refused() {
    let folder = folder();
    create(folder.path(), &["--repository", "x"]);
    let data = folder.path().join("data");
    // Root gives the folder away. Others find one of root.
    let (data, owner) = match fs::metadata(&data).expect("it is there").uid() {
        0 => {
            chown(&data, Some(1), None).expect("root may");
            (data, "daemon")
        }
        _ => ("/".into(), "root"),
    };
    let named = data.to_str().expect("UTF-8");
    for command in [&["create", "--repository", "x"][..], &["list"], &["revoke", "x-1"]] {
        let output = oaimend(folder.path(), &[command, &["--data", named]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(74), "{command:?}: {said}");
        assert!(said.contains(&format!("run: sudo -u {owner} oaimend")), "{command:?}: {said}");
    }
}

#[test]
fn a_token_that_could_not_be_printed_is_revoked() {
    let folder = folder();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
    let create = |stdout: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.args(["token", "create", "--repository", "x"]).current_dir(folder.path());
        command.stdout(stdout).output().expect("the program runs")
    };
    let listed = || text(&oaimend(folder.path(), &["list"]).stdout);
    let output = create(full.into());
    assert_eq!(output.status.code(), Some(74), "{}", text(&output.stderr));
    assert_eq!(listed(), "no write tokens\n", "nobody knows it");
    // A reader that has gone may have read it.
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    assert_eq!(create(writer.into()).status.code(), Some(0));
    assert!(listed().contains("x-1"), "{}", listed());
}
