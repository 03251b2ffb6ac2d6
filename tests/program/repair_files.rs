//! `oaimend repair` with files: several inputs, outputs in a folder, the settings of a mapping.

use crate::cli::{assert_exit, page, run, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// A folder with pages and results.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// Writes a file, and its folder.
    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("writable");
        fs::write(&path, content).expect("writable");
        self.path(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// All files of a folder in it, in order.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.path().join(folder)).expect("a folder");
        let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("readable").path())).collect();
        names.sort();
        names
    }
}

fn repair(arguments: &[&str]) -> Output {
    run(&[&["repair"], arguments].concat(), b"")
}

#[test]
fn each_file_gets_its_own_output_and_report() {
    let folder = Folder::new();
    let (clean, broken) = (page(&[b"A"]), page(&[b"A & B"]));
    let first = folder.write("in/1.xml", &clean);
    let second = folder.write("in/2.xml", &broken);
    let packed = zstd::encode_all(&*broken, 0).expect("memory");
    let third = folder.write("in/3.xml.zst", &packed);
    let (out, reports) = (folder.path("out"), folder.path("reports"));
    let output = repair(&[&first, &second, &third, "-o", &out, "--report", &reports]);
    assert_exit(&output, 0);
    assert!(output.stdout.is_empty());
    assert_eq!(folder.names("out"), ["1.xml", "2.xml", "3.xml"]);
    assert_eq!(folder.names("reports"), ["1.xml.jsonl", "2.xml.jsonl", "3.xml.jsonl"]);
    assert_eq!(folder.read("out/1.xml").as_bytes(), clean);
    for name in ["2.xml", "3.xml"] {
        assert!(folder.read(&format!("out/{name}")).contains("A &amp; B"));
        assert!(folder.read(&format!("reports/{name}.jsonl")).contains("bare-ampersand"));
    }
    let said = stderr(&output);
    assert!(said.contains("2.xml: repaired") && said.contains("3.xml.zst: repaired"), "{said}");
}

#[test]
fn worst_exit_code_counts_and_no_file_stops_the_others() {
    let folder = Folder::new();
    let good = folder.write("good.xml", &page(&[b"A"]));
    let lossy =
        folder.write("lossy.xml", &page(&[b"A", b"b</dc:title><zz:mystery>?</zz:mystery><dc:title>b"]));
    let html = folder.write("html.xml", b"<html><body>Sorry</body></html>");
    let missing = folder.path("missing.xml");
    for (files, code, outputs) in [
        (vec![&lossy, &good], 1, vec!["good.xml", "lossy.xml"]),
        (vec![&html, &lossy, &good], 2, vec!["good.xml", "lossy.xml"]),
        (vec![&missing, &html, &good], 74, vec!["good.xml"]),
    ] {
        let out = format!("out-{code}");
        let path = folder.path(&out);
        let mut arguments: Vec<&str> = files.iter().map(|file| file.as_str()).collect();
        arguments.extend(["--output", &path]);
        let output = repair(&arguments);
        assert_exit(&output, code);
        // A response that is not OAI-PMH leaves no file, and no temporary one.
        assert_eq!(folder.names(&out), outputs);
        assert!(stderr(&output).contains(files[0].as_str()), "{}", stderr(&output));
    }
}

#[test]
fn one_file_is_written_to_a_file_or_into_a_folder() {
    let folder = Folder::new();
    let broken = page(&[b"A & B"]);
    let input = folder.write("in/page.xml", &broken);
    let out = folder.write("out.xml", b"older");
    assert_exit(&repair(&[&input, "-o", &out]), 0);
    assert!(folder.read("out.xml").contains("A &amp; B"));
    // A path with a slash at its end, and an existing folder.
    for _ in 0..2 {
        assert_exit(&repair(&[&input, "-o", &folder.path("new/")]), 0);
        assert_eq!(folder.names("new"), ["page.xml"]);
    }
    assert_exit(&repair(&[&input, "-o", &folder.path("new")]), 0);
    let piped = run(&["repair", "-o", &folder.path("piped.xml")], &broken);
    assert_exit(&piped, 0);
    assert!(piped.stdout.is_empty());
    assert_eq!(folder.read("piped.xml"), folder.read("out.xml"));
    // A device is not replaced by a file.
    assert_exit(&repair(&[&input, "-o", "/dev/null"]), 0);
    assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
    // If an input is not OAI-PMH, the older file in its place stays.
    let html = folder.write("html.xml", b"<html><body>Sorry</body></html>");
    let before = folder.read("out.xml");
    assert_exit(&repair(&[&html, "-o", &out]), 2);
    assert_eq!(folder.read("out.xml"), before);
    assert_eq!(folder.names(""), ["html.xml", "in", "new", "out.xml", "piped.xml"]);
}

#[test]
fn ambiguous_files_are_refused_before_anything_is_written() {
    let folder = Folder::new();
    let clean = page(&[b"A"]);
    let one = folder.write("a/page.xml", &clean);
    let other = folder.write("b/page.xml", &clean);
    let packed = folder.write("c/page.xml.gz", &clean);
    let out = folder.path("out");
    let (next_to_it, same) = (folder.path("a"), folder.path("a/./page.xml"));
    for (arguments, problem) in [
        (vec![&*one, &*other], "several FILEs need -o DIR"),
        (vec![&*one, &*other, "-o", &*out], "would be written twice"),
        (vec![&*one, &*packed, "-o", &*out], "would be written twice"),
        (vec![&*one, "-", "-o", &*out], "stdin has no name"),
        (vec![&*one, "-o", &*next_to_it], "would replace an input"),
        (vec![&*one, "-o", &*same], "would replace an input"),
        (vec![&*one, "-o", &*out, "--report", &*out], "would be written twice"),
        (vec![&*one, "-o", &*out, "--report", &*same], "would replace an input"),
        (
            vec![&*one, &*other, "-o", &*out, "--base-url", "http://e.org/oai", "--request", "verb=Identify"],
            "--request describes one response",
        ),
    ] {
        let output = repair(&arguments);
        assert_exit(&output, 64);
        assert!(stderr(&output).contains(problem), "{arguments:?}: {}", stderr(&output));
        assert!(!Path::new(&out).exists(), "{arguments:?}");
    }
    assert_eq!(folder.read("a/page.xml").as_bytes(), clean);
}

#[test]
fn charset_and_mapping_decide_about_the_repair() {
    let folder = Folder::new();
    // "ąę" in ISO-8859-2; windows-1252, the usual guess, reads "±ê".
    let polish = folder.write("polish.xml", &page(&[b"\xb1\xea"]));
    let twice = folder.write("twice.xml", &page(&["MÃ¼ller, GrÃ¶ÃŸe".as_bytes()]));
    let repaired = |arguments: &[&str]| {
        let output = repair(arguments);
        assert_exit(&output, 0);
        String::from_utf8(output.stdout).expect("the output is UTF-8")
    };
    assert!(repaired(&[&polish]).contains("±ê"));
    assert!(repaired(&[&polish, "--charset", "iso-8859-2"]).contains("ąę"));
    let mapping = folder.write(
        "polish.toml",
        "base_url = \"http://source.example/oai\"\ncharset = \"iso-8859-2\"\n\
         granularity = \"YYYY-MM-DDThh:mm:ssZ\"\nrepairs.enable = [\"double-encoded\"]\n"
            .as_bytes(),
    );
    let text = repaired(&[&polish, "--mapping", &mapping]);
    assert!(text.contains("ąę") && text.contains("<datestamp>2026-01-01T00:00:00Z<"), "{text}");
    assert!(repaired(&[&twice]).contains("MÃ¼ller"));
    assert!(repaired(&[&twice, "--mapping", &mapping]).contains("Müller, Größe"));
    // An option overrides the mapping.
    assert!(repaired(&[&polish, "--mapping", &mapping, "--charset", "windows-1252"]).contains("±ê"));
    let off =
        folder.write("off.toml", b"base_url = \"http://e.org/oai\"\nrepairs.off = [\"bare-ampersand\"]\n");
    let ampersand = folder.write("ampersand.xml", &page(&[b"A & B"]));
    assert_exit(&repair(&[&ampersand, "--mapping", &off]), 1);

    assert_exit(&repair(&[&polish, "--charset", "utf-16"]), 64);
    assert_exit(&repair(&[&polish, "--mapping", &folder.path("none.toml")]), 74);
    let faulty = folder.write("faulty.toml", b"base_url = \"http://e.org/oai\"\ncharset = \"klingon\"\n");
    let output = repair(&[&polish, "--mapping", &faulty]);
    assert_exit(&output, 78);
    assert!(stderr(&output).contains("faulty.toml:2: charset"), "{}", stderr(&output));
}
