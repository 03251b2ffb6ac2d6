//! The documentation quotes the program truly: its output, and configurations that it accepts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use oaimend::demo::Provider;
use oaimend_test_support::{files_below, root};

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

/// README.md and all pages of docs/.
fn pages() -> Vec<PathBuf> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let pages = files_below(&root().join("docs")).into_iter().filter(is_page);
    pages.chain([root().join("README.md")]).collect()
}

/// The fenced blocks of a page that have this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn quoted_repairs_are_those_of_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(root().join("corpus/demo/records-1.xml"), folder.path().join("page.xml")).expect("a page");
    let output = run(folder.path(), &["repair", "page.xml", "--report", "report.jsonl"]);
    let shown = String::from_utf8(output.stderr).expect("UTF-8")
        + &text(&folder.path().join("report.jsonl"))
        + &String::from_utf8(output.stdout).expect("UTF-8");
    let mut count = 0;
    for name in ["README.md", "docs/tutorial.md"] {
        let page = text(&root().join(name));
        // The lines before the repair quote the broken page.
        let after = blocks(&page, "console")
            .into_iter()
            .filter_map(|block| block.split_once("$ oaimend repair page.xml"));
        for line in after.flat_map(|(_, lines)| lines.lines().skip(1)) {
            if !line.is_empty() && !line.starts_with('$') {
                assert!(
                    shown.lines().any(|is| is == line),
                    "{name} quotes {line:?}; the program says\n{shown}"
                );
                count += 1;
            }
        }
    }
    assert!(count > 5, "the quotations were not found");
}

#[test]
fn the_quoted_demonstration_is_that_of_the_program() {
    let output = run(root(), &["demo", "--once"]);
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    let page = text(&root().join("docs/tutorial.md"));
    let quoted: Vec<&str> =
        page.lines().filter(|line| line.starts_with("  - ") || line.starts_with("  + ")).collect();
    assert!(quoted.len() > 3, "the quotations were not found");
    for line in quoted {
        assert!(
            shown.lines().any(|is| is == line),
            "docs/tutorial.md quotes {line:?}; the program says\n{shown}"
        );
    }
}

#[test]
fn the_quoted_check_is_that_of_the_program() {
    let url = Provider::start(0).expect("a provider on loopback").base_url();
    let output = run(root(), &["check", &url]);
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    let (_, counts) =
        shown.trim().rsplit_once('\n').and_then(|(_, last)| last.split_once(": ")).expect("a last line");
    let page = text(&root().join("docs/tutorial.md"));
    assert!(page.contains(&format!(": {counts}\n")), "docs/tutorial.md does not quote {counts:?}");
}

/// A block of TOML whose first line names `oaimend.toml` or a mapping is a file that the program accepts.
#[test]
fn configurations_in_the_documentation_are_accepted() {
    let mut count = 0;
    for page in pages() {
        for block in blocks(&text(&page), "toml") {
            let folder = tempfile::tempdir().expect("a folder");
            let mappings = folder.path().join("mappings");
            std::fs::create_dir(&mappings).expect("a folder");
            // Paths of a real machine are not there.
            let is_path = |line: &&str| ["mappings =", "data ="].iter().any(|key| line.starts_with(key));
            let lines: Vec<&str> = block.lines().filter(|line| !is_path(line)).collect();
            let title = lines.first().copied().unwrap_or_default();
            let file = match title.strip_prefix("# ") {
                Some(name) if name.ends_with("oaimend.toml") => folder.path().join("oaimend.toml"),
                Some(name) if name.starts_with("mappings/") => {
                    mappings.join(name.trim_start_matches("mappings/"))
                }
                _ => continue,
            };
            for (fixture, name) in [("cert.pem", "fullchain.pem"), ("key.pem", "privkey.pem")] {
                let fixture = root().join("tests/program/fixtures/tls").join(fixture);
                std::fs::copy(fixture, folder.path().join(name)).expect("it is copied");
            }
            std::fs::write(folder.path().join("letters.xml.gz"), "").expect("it is written");
            let files = format!("{}/", folder.path().display());
            let lines = lines.join("\n").replace("/etc/oaimend/tls/", &files).replace("/srv/tapes/", &files);
            std::fs::write(&file, lines).expect("it is written");
            let output = run(folder.path(), &["validate"]);
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {said}\n{block}", page.display());
            count += 1;
        }
    }
    assert!(count > 4, "only {count} configurations were found");
}
