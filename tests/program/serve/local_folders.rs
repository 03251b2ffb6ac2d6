//! Local repositories whose records are the files of a folder.

use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::{Harvester, fetch};
use oaimend_base::clock;
use oaimend_write_tokens::{NewWriteToken, WriteTokens};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest wait for a change.
const WITHIN: Duration = Duration::from_secs(60);

struct Folder {
    folder: tempfile::TempDir,
    program: Program,
}

fn start(folder: &Path) -> Program {
    Program::run(serve(folder).args(["--admin", "127.0.0.1:0", "--mappings", "mappings"]))
}

pub(super) fn document(title: &str) -> String {
    format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title></oai_dc:dc>"
    )
}

impl Folder {
    /// A program that publishes these files.
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("mappings")).expect("writable");
        fs::write(folder.path().join("mappings/theses.toml"), "kind = \"local\"\nfolder = \"../records\"\n")
            .expect("writable");
        fs::create_dir(folder.path().join("records")).expect("writable");
        for (path, content) in files {
            write(&folder.path().join("records").join(path), content);
        }
        let program = start(folder.path());
        Self { folder, program }
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join("records")
    }

    fn write(&self, path: &str, content: &str) {
        write(&self.records().join(path), content);
    }

    fn list(&self) -> String {
        fetch(self.program.address(), "/theses?verb=ListRecords&metadataPrefix=oai_dc").text()
    }

    /// Waits until the metrics have these numbers of files: published, refused and waiting ones.
    #[track_caller]
    fn until_counted(&self, counts: [u64; 3]) {
        let expected: Vec<String> = ["published", "refused", "waiting"]
            .iter()
            .zip(counts)
            .map(|(state, count)| {
                format!("oaimend_folder_files{{repository=\"theses\",state=\"{state}\"}} {count}\n")
            })
            .collect();
        let until = clock::uptime() + WITHIN;
        loop {
            let metrics = fetch(self.program.admin(), "/-/metrics").text();
            if expected.iter().all(|line| metrics.contains(line)) {
                return;
            }
            assert!(clock::uptime() < until, "{expected:?}: {metrics}");
        }
    }

    /// Stops the program.
    fn stop(&mut self) {
        self.program.killer().kill();
        self.program.ended();
    }

    /// Waits until the folder has noted what it has published.
    #[track_caller]
    fn until_noted(&self) {
        let file = |name: &str| self.folder.path().join("data/folders").join(name);
        let until = clock::uptime() + WITHIN;
        while !file("theses.json").exists() || file("theses.changing").exists() {
            assert!(clock::uptime() < until, "nothing is noted");
        }
    }

    /// Waits until the list is as expected.
    #[track_caller]
    fn until(&self, is_expected: impl Fn(&str) -> bool) -> String {
        let until = clock::uptime() + WITHIN;
        loop {
            let list = self.list();
            if is_expected(&list) {
                return list;
            }
            assert!(clock::uptime() < until, "{list}");
        }
    }
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(path, content).expect("writable");
}

fn deleted(list: &str) -> usize {
    list.matches("status=\"deleted\"").count()
}

#[test]
fn files_of_a_folder_are_published_and_removed_ones_are_deleted() {
    let bib = "@book{smith, title = {Maps}, author = {Smith, Ada}, year = {2003}}";
    let served = Folder::new(&[
        ("a.xml", &document("One")),
        ("maps/old/b.xml", &document("Two")),
        ("lib.bib", bib),
        ("a.xml~", "x"),
        (".c.xml", &document("Hidden")),
    ]);
    let list = served.until(|list| list.matches("<record>").count() == 3);
    assert!(list.contains("<identifier>oai:localhost.localdomain:theses/maps/old/b</identifier>"), "{list}");
    assert!(list.contains("<setSpec>maps:old</setSpec>") && list.contains("theses/smith<"), "{list}");
    served.write("a.xml", &document("Changed"));
    served.until(|list| list.contains(">Changed<") && !list.contains(">One<"));
    fs::remove_file(served.records().join("maps/old/b.xml")).expect("writable");
    let list = served.until(|list| deleted(list) == 1);
    assert!(list.contains("status=\"deleted\"><identifier>oai:localhost.localdomain:theses/maps/old/b<"));
    assert!(
        list.contains("<setSpec>maps:old</setSpec>"),
        "harvesters of the set receive the deletion: {list}"
    );
    // Writers are sent to the folder.
    let new = NewWriteToken { name: None, repository: "theses".to_owned(), sets: Vec::new() };
    let tokens = WriteTokens::new(&served.folder.path().join("data"));
    let token = tokens.create(new, clock::now()).expect("a token").token;
    let address = served.program.address();
    let start = ["DELETE /theses/record/oai:x:1?metadataPrefix=oai_dc", "GET /theses?verb=PutRecord"];
    for start in start {
        let head = format!(
            "{start} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        );
        let got = Harvester::ask(address, &head).rest();
        assert_eq!(got.status, 409, "{}", got.text());
        assert!(
            got.text().contains("are the files of the folder records; change them there"),
            "{}",
            got.text()
        );
    }
}

#[test]
fn a_folder_that_is_gone_or_empty_deletes_nothing() {
    let mut served = Folder::new(&[("a.xml", &document("One")), ("b.xml", &document("Two"))]);
    served.until(|list| list.matches("<record>").count() == 2);
    let moved = served.folder.path().join("moved");
    fs::rename(served.records(), &moved).expect("writable");
    let problem = served.program.line("the folder cannot be followed");
    assert_eq!(problem["repo"], "theses");
    fs::create_dir(served.records()).expect("writable");
    served.program.line("the folder cannot be followed");
    assert_eq!(deleted(&served.list()), 0);
    fs::remove_dir(served.records()).expect("empty");
    fs::rename(&moved, served.records()).expect("writable");
    served.program.line("the folder is followed again");
    served.write("c.xml", &document("Three"));
    let list = served.until(|list| list.contains(">Three<"));
    assert_eq!(deleted(&list), 0, "{list}");
}

#[test]
fn an_empty_folder_deletes_nothing_that_is_older_than_it() {
    let mut served = Folder::new(&[("a.xml", &document("One"))]);
    served.until(|list| list.contains(">One<"));
    served.program.killer().kill();
    served.program.ended();
    fs::remove_file(served.records().join("a.xml")).expect("writable");
    fs::remove_dir_all(served.folder.path().join("data/folders")).expect("writable");
    // Before or after it serves.
    let mut looking =
        Program::spawn(serve(served.folder.path()).args(["--admin", "off", "--mappings", "mappings"]));
    let line = looking.line("the folder cannot be followed");
    assert!(line["problem"].as_str().unwrap_or_default().contains("it has no files"), "{line}");
    looking.killer().kill();
    looking.ended();
    served.program = start(served.folder.path());
    let list = served.list();
    assert!(list.contains(">One<"), "{list}");
}

#[test]
fn files_that_cannot_be_published_are_reported_and_change_nothing() {
    let mut served = Folder::new(&[("b.xml", &document("One")), ("in/x.xml", &document("In"))]);
    served.until(|list| list.matches("<record>").count() == 2);
    served.write("b.xml", "<dc><title>half");
    let line = served.program.line("a file of the folder is not published");
    assert!(
        line["path"] == "b.xml" && line["problem"].as_str().unwrap_or_default().contains("line 1"),
        "{line}"
    );
    let outside = served.folder.path().join("outside.xml");
    fs::write(&outside, document("Secret")).expect("writable");
    std::os::unix::fs::symlink(&outside, served.records().join("link.xml")).expect("writable");
    let line = served.program.line("a file of the folder is not published");
    assert_eq!(line["path"], "link.xml");
    served.write("no set/d.xml", &document("No set"));
    let line = served.program.line("a file of the folder is not published");
    assert_eq!(line["path"], "no set");
    served.write("e.xml", &document("Last"));
    let list = served.until(|list| list.contains(">Last<"));
    assert!(list.contains(">One<") && !list.contains("Secret") && !list.contains("No set"), "{list}");
}

#[test]
fn a_killed_program_publishes_what_has_changed_meanwhile() {
    let mut served = Folder::new(&[("a.xml", &document("One")), ("b.xml", &document("Two"))]);
    for round in 0..4 {
        served.write(&format!("new{round}.xml"), &document("New"));
        served.write("a.xml", &document(&format!("Round {round}")));
        if round % 2 == 0 {
            served.until(|list| list.contains(&format!(">Round {round}<")));
        }
        served.program.killer().kill();
        served.program.ended();
        if round == 3 {
            fs::remove_file(served.records().join("b.xml")).expect("writable");
        }
        served.program = start(served.folder.path());
        let list = served.until(|list| {
            list.contains(&format!(">Round {round}<"))
                && list.matches(">New<").count() == round + 1
                && (round < 3 || deleted(list) == 1)
        });
        assert_eq!(deleted(&list), usize::from(round == 3), "{list}");
    }
}

#[test]
fn records_of_other_writers_stay_when_a_folder_is_set_or_its_state_is_lost() {
    let mut served = Folder::new(&[("a.xml", &document("One")), ("b.xml", &document("Two"))]);
    served.until(|list| list.matches("<record>").count() == 2);
    let stop = |served: &mut Folder| {
        served.program.killer().kill();
        served.program.ended();
    };
    stop(&mut served);
    // Nobody follows the folder, and someone writes a record.
    let mapping = served.folder.path().join("mappings/theses.toml");
    let with_folder = fs::read_to_string(&mapping).expect("a mapping");
    fs::write(&mapping, "kind = \"local\"\n").expect("writable");
    served.program = start(served.folder.path());
    let until = clock::uptime() + WITHIN;
    while served.folder.path().join("data/folders/theses.json").exists() {
        assert!(clock::uptime() < until, "the folder is not forgotten");
    }
    let new = NewWriteToken { name: None, repository: "theses".to_owned(), sets: Vec::new() };
    let tokens = WriteTokens::new(&served.folder.path().join("data"));
    let token = tokens.create(new, clock::now()).expect("a token").token;
    let address = served.program.address();
    let send = |start: &str, body: &str| {
        let head = format!(
            "{start} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let got = Harvester::ask(address, &head).rest();
        assert!(matches!(got.status, 200 | 201 | 204), "{}", got.text());
    };
    send("PUT /theses/record/oai:x:written?metadataPrefix=oai_dc", &document("Written"));
    let of_file = "oai:localhost.localdomain:theses/b";
    send(&format!("PUT /theses/record/{of_file}?metadataPrefix=oai_dc"), &document("Replaced"));
    stop(&mut served);
    fs::write(&mapping, &with_folder).expect("writable");
    served.program = start(served.folder.path());
    let line = served.program.line("the repository has records that are in no file");
    assert_eq!(line["records"], 1);
    // The files count again.
    let list = served.until(|list| list.contains(">Two<"));
    assert!(list.contains(">Written<") && deleted(&list) == 0, "{list}");
    stop(&mut served);
    // Without its state, the folder cannot know that the removed file was one of its own.
    fs::remove_file(served.folder.path().join("data/folders/theses.json")).expect("writable");
    fs::remove_file(served.records().join("a.xml")).expect("writable");
    served.program = start(served.folder.path());
    let line = served.program.line("the repository has records that are in no file");
    assert_eq!(line["records"], 2);
    let list = served.list();
    assert!(list.contains(">One<") && deleted(&list) == 0, "{list}");
}

#[test]
fn a_forgotten_repository_is_published_again() {
    let mut served = Folder::new(&[("a.xml", &document("One"))]);
    served.until(|list| list.contains(">One<"));
    served.until_noted();
    served.program.killer().kill();
    served.program.ended();
    let forget = ["mirror", "forget", "theses", "--mappings", "mappings"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    let forgotten = command.args(forget).current_dir(served.folder.path()).output().expect("it runs");
    assert!(forgotten.status.success(), "{forgotten:?}");
    served.program = start(served.folder.path());
    served.until(|list| list.contains(">One<"));
}

#[test]
fn files_in_formats_of_the_mapping_are_published() {
    let mut served = Folder::new(&[]);
    served.program.killer().kill();
    served.program.ended();
    let mapping = "kind = \"local\"\nfolder = \"../records\"\ndc_required = false\n[formats.maps]\n\
                   schema = \"http://maps.example/maps.xsd\"\nnamespace = \"http://maps.example/\"\n";
    fs::write(served.folder.path().join("mappings/theses.toml"), mapping).expect("writable");
    served.write("m.xml", "<map xmlns=\"http://maps.example/\"/>");
    served.program = start(served.folder.path());
    let until = clock::uptime() + WITHIN;
    loop {
        let list = fetch(served.program.address(), "/theses?verb=ListRecords&metadataPrefix=maps").text();
        if list.contains("<map xmlns=\"http://maps.example/\"/>") {
            break;
        }
        assert!(clock::uptime() < until, "{list}");
    }
}

#[test]
fn files_are_counted_by_their_states() {
    let served = Folder::new(&[("a.xml", &document("One")), ("b.xml", "<dc><title>half")]);
    served.until_counted([1, 1, 0]);
    served.write("b.xml", &document("Two"));
    served.until_counted([2, 0, 0]);
    let metrics = fetch(served.program.admin(), "/-/metrics").text();
    assert_eq!(metrics.matches("oaimend_folder_files{").count(), 3, "{metrics}");
}

/// A list of records with this identifier.
fn record_list(identifier: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\
         <responseDate>2026-01-01T00:00:00Z</responseDate><request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">\
         http://x.example/</request><ListRecords><record><header><identifier>{identifier}</identifier>\
         <datestamp>2026-01-01</datestamp></header><metadata>\
         <oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>Claimed</dc:title></oai_dc:dc></metadata></record></ListRecords></OAI-PMH>"
    )
}

#[test]
fn a_refused_record_is_published_when_no_other_repository_has_its_identifier() {
    let mut served = Folder::new(&[("a.xml", &document("One"))]);
    served.until(|list| list.contains(">One<"));
    served.stop();
    fs::write(served.folder.path().join("mappings/other.toml"), "kind = \"local\"\n").expect("writable");
    served.program = start(served.folder.path());
    let new = NewWriteToken { name: None, repository: "other".to_owned(), sets: Vec::new() };
    let tokens = WriteTokens::new(&served.folder.path().join("data"));
    let token = tokens.create(new, clock::now()).expect("a token").token;
    let address = served.program.address();
    let send = |method: &str, body: &str| {
        let head = format!(
            "{method} /other/record/oai:x:1?metadataPrefix=oai_dc HTTP/1.1\r\nHost: {address}\r\n\
             Authorization: Bearer {token}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let got = Harvester::ask(address, &head).rest();
        assert!(matches!(got.status, 200 | 201 | 204), "{}", got.text());
    };
    send("PUT", &document("Owned"));
    served.write("list.xml", &record_list("oai:x:1"));
    let line = served.program.line("a file of the folder is not published");
    assert!(line["problem"].as_str().unwrap_or_default().contains("the repository other has"), "{line}");
    served.until_counted([1, 1, 0]);
    send("DELETE", "");
    served.until(|list| list.contains(">Claimed<"));
    served.until_counted([2, 0, 0]);
    // A later refusal is logged again, for the same reason too.
    fs::remove_file(served.records().join("list.xml")).expect("writable");
    served.until_counted([1, 0, 0]);
    send("PUT", &document("Owned"));
    served.write("list.xml", &record_list("oai:x:1"));
    let again = served.program.line("a file of the folder is not published");
    assert_eq!(again["problem"], line["problem"]);
}

/// A folder that is mounted at another one until the end of the test.
struct BindMount(PathBuf);

impl BindMount {
    /// `None` if this machine does not permit it.
    fn new(folder: &Path, at: &Path) -> Option<Self> {
        let mounted = Command::new("mount").arg("--bind").args([folder, at]).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for BindMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_bind_mount_that_is_gone_deletes_nothing() {
    let mut served = Folder::new(&[("a.xml", &document("One"))]);
    served.until(|list| list.contains(">One<"));
    served.stop();
    let (disk, at) = (served.folder.path().join("disk"), served.records().join("disk"));
    write(&disk.join("b.xml"), &document("Two"));
    fs::create_dir(&at).expect("writable");
    let Some(mount) = BindMount::new(&disk, &at) else {
        eprintln!("skipped: this machine does not permit bind mounts");
        return;
    };
    served.program = start(served.folder.path());
    served.until(|list| list.contains(">Two<"));
    served.until_noted();
    drop(mount);
    // Another change lets the folder be listed now.
    served.write("c.xml", &document("Three"));
    let list = served.until(|list| list.contains(">Three<"));
    assert_eq!(deleted(&list), 0, "{list}");
    let line = served.program.line("a file of the folder is not published");
    assert_eq!(line["path"], "disk");
    // It is not mounted at the start either.
    served.stop();
    served.program = start(served.folder.path());
    served.write("d.xml", &document("Four"));
    let list = served.until(|list| list.contains(">Four<"));
    assert_eq!((deleted(&list), list.contains(">Two<")), (0, true), "{list}");
    // It is back, and a removed file counts again.
    served.stop();
    let _mount = BindMount::new(&disk, &at).expect("it was possible before");
    fs::remove_file(disk.join("b.xml")).expect("writable");
    write(&disk.join("e.xml"), &document("Five"));
    served.program = start(served.folder.path());
    let list = served.until(|list| list.contains(">Five<") && deleted(list) == 1);
    assert!(!list.contains(">Two<"), "{list}");
    served.stop();
}
