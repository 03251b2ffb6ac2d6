//! `oaimend validate --schema`: the JSON Schemas accept what the program reads, and refuse what it refuses. A validator of
//! others judges, the Python package jsonschema. Without Python the tests are skipped. With
//! `OAIMEND_JSON_SCHEMA=required` they fail instead.

use crate::config::{folder, run, write};
use oaimend_test_support::{files_below, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The judgements of the files of a folder by the schema that the program prints; `None`: there is no validator here.
fn judge(folder: &Path, schema_of: &[&str], files: &[String]) -> Option<Vec<String>> {
    let printed = run(folder, &[&["validate", "--schema"], schema_of].concat());
    assert!(printed.status.success(), "{printed:?}");
    let schema = folder.join("schema.json");
    std::fs::write(&schema, printed.stdout).expect("a writable folder");
    let output = Command::new(root().join("scripts/json-schema"))
        .arg(schema)
        .args(files)
        .current_dir(folder)
        .output()
        .expect("a shell");
    if output.status.code() == Some(69) {
        let is_required = std::env::var("OAIMEND_JSON_SCHEMA").is_ok_and(|value| value == "required");
        assert!(!is_required, "the Python package jsonschema cannot be installed");
        println!("skipped: the Python package jsonschema cannot be installed");
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The TOML examples of a page, each as a file in a folder.
fn examples(folder: &Path, page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).expect("a page");
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```\n").next());
    let mut names = Vec::new();
    for (number, block) in blocks.enumerate() {
        let name = format!("{number}.toml");
        write(folder, &name, block);
        names.push(name);
    }
    assert!(!names.is_empty(), "{page} has no example");
    names
}

#[track_caller]
fn expect_valid(judgements: &[String], count: usize) {
    let invalid: Vec<&String> = judgements.iter().filter(|line| !line.ends_with(": valid")).collect();
    assert!(invalid.is_empty() && judgements.len() == count, "{invalid:?} of {count}");
}

#[test]
fn examples_are_valid_by_the_schemas() {
    let settings = folder(&[]);
    let mut files = examples(settings.path(), "docs/reference/configuration.md");
    files.push(shown(&root().join("packaging/debian/oaimend.toml")));
    let Some(judgements) = judge(settings.path(), &[], &files) else { return };
    expect_valid(&judgements, files.len());
    let mappings = folder(&[]);
    let mut files = examples(mappings.path(), "docs/reference/configuration-mapping.md");
    let is_toml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    files.extend(
        files_below(&root().join("mappings")).iter().filter(|path| is_toml(path)).map(|path| shown(path)),
    );
    assert!(files.len() > 5, "{files:?}");
    let Some(judgements) = judge(mappings.path(), &["mapping"], &files) else { return };
    expect_valid(&judgements, files.len());
    let views = folder(&[]);
    let mut files = examples(views.path(), "docs/how-to/views.md");
    files.push(shown(&root().join("examples/views/maps.toml")));
    for (number, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(views.path().join(file)).expect("an example");
        let alone = folder(&[(&format!("views/v{number}.toml"), &text)]);
        assert_eq!(run(alone.path(), &["validate"]).status.code(), Some(0), "the program refuses {file}");
    }
    let Some(judgements) = judge(views.path(), &["view"], &files) else { return };
    expect_valid(&judgements, files.len());
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Each file has one fault.
#[track_caller]
fn expect_refused(schema_of: &[&str], faulty: &[&str], place: impl Fn(&Path, &str)) {
    let tree = folder(&[]);
    let names: Vec<String> = (0..faulty.len()).map(|number| format!("{number}.toml")).collect();
    for (name, text) in names.iter().zip(faulty) {
        write(tree.path(), name, text);
        let alone = folder(&[]);
        place(alone.path(), text);
        assert_eq!(run(alone.path(), &["validate"]).status.code(), Some(78), "the program accepts {text}");
    }
    let Some(judgements) = judge(tree.path(), schema_of, &names) else { return };
    for (judgement, text) in judgements.iter().zip(faulty) {
        assert!(!judgement.ends_with(": valid"), "the schema accepts {text}");
    }
    assert_eq!(judgements.len(), faulty.len());
}

#[test]
fn wrong_settings_are_refused_by_the_schema_and_by_the_program() {
    let faulty = [
        "lisen = \"127.0.0.1:80\"",
        "listen = 8080",
        "cache.fresh_secs = -1",
        "cache.enabled = \"yes\"",
        "mirror.freshness = 1",
        "mirror.collisions = \"both\"",
        "mirror.aggregate_emails = \"a@example.org\"",
        "gateway.cors_origins = [1]",
        "clients.known.x.burst = 1000001",
        "clients.known.x = { addresses = [\"192.0.2.1\"], rate = 5 }",
        "[listen_tls]\naddress = \"127.0.0.1:1\"",
        "[notifications.mail]\nto = \"a@example.org\"",
        "reports.hour = 24",
    ];
    expect_refused(&[], &faulty, |folder, text| write(folder, "oaimend.toml", text));
}

#[test]
fn wrong_mappings_are_refused_by_the_schema_and_by_the_program() {
    let faulty = [
        "from = \"a@example.org\"",
        "base_url = \"http://x/\"\nmethods = \"get\"",
        "base_url = \"http://x/\"\nstatic_file = \"http://x/y.xml\"",
        "base_url = [\"http://x/\"]",
        "base_url = \"http://x/\"\nuser = \"me\"",
        "base_url = \"http://x/\"\nmethod = \"put\"",
        "base_url = \"http://x/\"\nread_timeout_secs = 0",
        "base_url = \"http://x/\"\nraw_token = 1",
        "base_url = \"http://x/\"\nheaders.X-Key = 1",
        "base_url = \"http://x/\"\nrepairs.off = [\"bare-ampersant\"]",
        "base_url = \"http://x/\"\nrepairs.enable = [\"bare-ampersand\"]",
        "base_url = \"http://x/\"\nmirror.weight = 0",
        "base_url = \"http://x/\"\nmirror.sets = [\"a\", \"a\"]",
        "base_url = \"http://x/\"\nlimits.depth_max = 7",
        "base_url = \"http://x/\"\ntls = true",
    ];
    expect_refused(&["mapping"], &faulty, |folder, text| write(folder, "mappings/x.toml", text));
}

#[test]
fn wrong_views_are_refused_by_the_schema_and_by_the_program() {
    let faulty = [
        "colour = \"green\"",
        "repository_name = 1",
        "admin_emails = \"a@example.org\"",
        "repositories = \"x\"",
        "sets = [\"x:a\", \"x:a\"]",
        "formats = [1]",
        "query = [\"maps\"]",
        "[query]\ntext = \"maps\"",
    ];
    expect_refused(&["view"], &faulty, |folder, text| write(folder, "views/x.toml", text));
}
