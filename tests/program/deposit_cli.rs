//! `oaimend put` and `oaimend publish`: files become the records of a local repository.

use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::fetch;
use oaimend_base::clock;
use oaimend_write_tokens::{NewWriteToken, WriteTokens};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A server with the local repository `theses`, and the folder of a writer.
struct World {
    folder: tempfile::TempDir,
    program: Program,
    token_file: PathBuf,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["mappings", "files"] {
            fs::create_dir(folder.path().join(name)).expect("a writable folder");
        }
        fs::write(folder.path().join("mappings/theses.toml"), "kind = \"local\"\n").expect("writable");
        let program = Program::run(serve(folder.path()).args(["--admin", "off", "--mappings", "mappings"]));
        let new = NewWriteToken { name: None, repository: "theses".to_owned(), sets: Vec::new() };
        let created = WriteTokens::new(&folder.path().join("data")).create(new, clock::now());
        let token_file = folder.path().join("token");
        fs::write(&token_file, created.expect("a token").token).expect("writable");
        set_mode(&token_file, 0o600);
        Self { folder, program, token_file }
    }

    fn url(&self) -> String {
        format!("http://{}/theses", self.program.address())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.args(arguments).arg("--token-file").arg(&self.token_file);
        command.current_dir(self.folder.path()).env_remove("OAIMEND_TOKEN");
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program runs")
    }

    fn publish(&self) -> Output {
        self.run(&["publish", "files", "--to", &self.url(), "--format", "json"])
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join("files").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        fs::write(path, text).expect("writable");
    }

    /// Each header of the format: whether the record is live, and its sets.
    fn records(&self, prefix: &str) -> BTreeMap<String, (bool, String)> {
        let listed =
            fetch(self.program.address(), &format!("/theses?verb=ListIdentifiers&metadataPrefix={prefix}"));
        let text = listed.text();
        let header = |part: &str| {
            let identifier = between(part, "<identifier>")?;
            Some((identifier, (!part.starts_with(" status"), between(part, "<setSpec>").unwrap_or_default())))
        };
        text.split("<header").skip(1).filter_map(header).collect()
    }
}

fn between(text: &str, start: &str) -> Option<String> {
    Some(text.split(start).nth(1)?.split('<').next()?.to_owned())
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("an own file");
}

#[track_caller]
fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const SEA: &str = "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
                   xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Sea</dc:title></oai_dc:dc>";
const MODS: &str = "<mods xmlns=\"http://www.loc.gov/mods/v3\" xsi:schemaLocation=\"http://www.loc.gov/mods/v3 \
                    http://www.loc.gov/standards/mods/v3/mods-3-8.xsd\"><titleInfo><title>Land</title></titleInfo></mods>";
const BIBLIOGRAPHY: &str =
    "@book{b1, title = {One}, author = {Doe, Jane}, year = 2001}\n@book{b2, title = {Two}}\n";
const TABLE: &str = "Key,Title,Author\nc1,Maps,\"Doe, Jane; Roe, John\"\n";

#[test]
fn files_of_all_kinds_are_written() {
    let world = World::new();
    for (name, text) in
        [("sea.xml", SEA), ("land.xml", MODS), ("books.bib", BIBLIOGRAPHY), ("maps.csv", TABLE)]
    {
        world.write(name, text);
    }
    let url = world.url();
    let files = ["files/sea.xml", "files/land.xml", "files/books.bib", "files/maps.csv"];
    let put = |more: &[&str]| {
        world.run(&[&["put", url.as_str()][..], &files, &["--format", "json"], more].concat())
    };
    let done = json(&put(&["--set", "letters"]));
    assert_eq!(
        (&done["records"], &done["changed"]),
        (&Value::from(5), &Value::from(6)),
        "MODS becomes oai_dc, too"
    );
    let expected =
        ["sea", "land", "b1", "b2", "c1"].map(|name| format!("oai:localhost.localdomain:theses/{name}"));
    let listed = world.records("oai_dc");
    assert!(listed.len() == 5 && expected.iter().all(|name| listed.contains_key(name)), "{listed:?}");
    assert!(listed.values().all(|(is_live, set)| *is_live && set == "letters"), "{listed:?}");
    assert_eq!(world.records("mods").len(), 1);
    assert_eq!(json(&put(&["--set", "letters"]))["changed"], 0);

    let text = world.run(&["put", &url, "files/sea.xml", "--identifier", "oai:x.example:1"]);
    assert_eq!(String::from_utf8_lossy(&text.stdout), "records sent: 1, new or changed: 1\n");
    let mut command = world.command(&["put", &url, "-", "--identifier", "oai:x.example:2"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
    child.stdin.take().expect("it is piped").write_all(SEA.as_bytes()).expect("the program reads");
    assert!(child.wait().expect("it ends").success());
    assert!(world.records("oai_dc").contains_key("oai:x.example:2"));
}

#[test]
fn nothing_is_written_if_a_file_is_not_correct() {
    let world = World::new();
    world.write("a.xml", SEA);
    world.write("b.xml", &SEA.replace("Sea<", "Sea & land<"));
    world.write("c.txt", "x");
    world.write("d.xml", "<a xmlns=\"urn:x\"/>");
    let url = world.url();
    let refused = |arguments: &[&str], code: i32, expected: &str| {
        let output = world.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{arguments:?}: {}", said(&output));
        assert!(world.records("oai_dc").is_empty());
    };
    refused(&["put", &url, "files/a.xml", "files/b.xml"], 2, "files/b.xml: line 1, column ");
    refused(&["put", &url, "files/c.txt"], 64, "expected a name with .xml, .bib or .csv");
    refused(&["put", &url, "files/d.xml"], 2, "name its metadataPrefix");
    refused(&["put", &url, "files/none.xml"], 74, "cannot read files/none.xml");
    refused(&["put", "nobody", "files/a.xml"], 64, "\"nobody\" is not a local repository");
    refused(&["put", &format!("{url}/none"), "files/a.xml"], 1, "status 404: it is not a local repository");
    refused(&["publish", "files", "--to", &url], 2, "files/b.xml: line 1, column ");
    set_mode(&world.token_file, 0o644);
    refused(&["put", &url, "files/a.xml"], 74, "token");
    set_mode(&world.token_file, 0o600);
    fs::write(&world.token_file, "oaimend_wrong").expect("writable");
    refused(&["put", &url, "files/a.xml"], 1, "status 401: this token is unknown or revoked");
    let output = Command::new(env!("CARGO_BIN_EXE_oaimend"))
        .args(["put", &url, "files/a.xml"])
        .current_dir(world.folder.path())
        .env_remove("OAIMEND_TOKEN")
        .output()
        .expect("the program runs");
    assert!(output.status.code() == Some(64) && said(&output).contains("--token-file"), "{}", said(&output));
}

#[test]
fn a_folder_is_published_with_its_changes() {
    let world = World::new();
    world.write("sea.xml", SEA);
    world.write("maps/old/land.xml", MODS);
    world.write("maps/table.csv", TABLE);
    world.write(".hidden.xml", "not correct");
    world.write("note.txt", "x");
    let name = |name: &str| format!("oai:localhost.localdomain:theses/{name}");
    let first = json(&world.publish());
    assert_eq!((&first["files"], &first["records"], &first["deleted"]), (&3.into(), &3.into(), &0.into()));
    let set_of = |name: &str| world.records("oai_dc").remove(name);
    assert_eq!(set_of(&name("sea")), Some((true, String::new())));
    assert_eq!(set_of(&name("maps/old/land")), Some((true, "maps:old".to_owned())));
    assert_eq!(set_of(&name("c1")), Some((true, "maps".to_owned())));
    let again = json(&world.publish());
    assert_eq!((&again["records"], &again["changed"]), (&0.into(), &0.into()));

    world.write("sea.xml", &SEA.replace("Sea", "Sea and land"));
    world.write("maps/table.csv", "Key,Title\nc2,Other\n");
    fs::remove_file(world.folder.path().join("files/maps/old/land.xml")).expect("it exists");
    let changed = json(&world.publish());
    assert_eq!((&changed["records"], &changed["changed"]), (&2.into(), &2.into()));
    let states: BTreeMap<String, bool> =
        world.records("oai_dc").into_iter().map(|(name, (is_live, _))| (name, is_live)).collect();
    let expected = [("sea", true), ("maps/old/land", false), ("c1", false), ("c2", true)];
    assert_eq!(states, expected.map(|(file, is_live)| (name(file), is_live)).into());
    assert!(world.records("mods").values().all(|(is_live, _)| !is_live));

    // A disk that is not mounted is an empty folder.
    let files = world.folder.path().join("files");
    for name in ["sea.xml", "maps/table.csv"] {
        fs::remove_file(files.join(name)).expect("it exists");
    }
    let empty = world.publish();
    assert!(
        empty.status.code() == Some(64) && said(&empty).contains("nothing is deleted"),
        "{}",
        said(&empty)
    );
    let elsewhere = world.run(&["publish", "files", "--to", "http://127.0.0.1:9/other"]);
    assert!(elsewhere.status.code() == Some(64) && said(&elsewhere).contains("was published to"));
    // Two files with one record, and a folder that is no set.
    world.write("a.csv", "Key,Title\nx,One\n");
    world.write("b.csv", "Key,Title\nx,Two\n");
    let twice = world.publish();
    assert!(
        twice.status.code() == Some(2) && said(&twice).contains("is in another file too"),
        "{}",
        said(&twice)
    );
    fs::remove_file(files.join("b.csv")).expect("it exists");
    world.write("no set/c.csv", "Key,Title\ny,One\n");
    let illegal = world.publish();
    assert!(
        illegal.status.code() == Some(2) && said(&illegal).contains("names of subfolders"),
        "{}",
        said(&illegal)
    );
}
