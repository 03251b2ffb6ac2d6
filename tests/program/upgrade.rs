//! A data folder of an earlier version opens with its records, tokens and quarantine.
//!
//! `fixtures/data_folder_v1.tar.zst` was written on 2026-11-26 by the version before `oaimend backup`: 250 records of a source,
//! one of them without an identifier, mirrored, and the first page of a list requested at the mirror. A change of a format on
//! disk gets a new folder; the old ones stay as they are.

use crate::fixtures::program::Program;
use crate::fixtures::source::fetch;
use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &[u8] = include_bytes!("fixtures/data_folder_v1.tar.zst");
/// The token of the first page.
const TOKEN: &str = "oaimirror1_613GYim1yQ2wGTfNGpezyweyJyIjp7InZpZXciOiJ4Iiwid2l0aF9tZXRhZGF0YSI6dHJ1ZSwicHJlZml4Ijoib2FpX2RjIiwic2V0IjpudWxsLCJmcm9tIjpudWxsLCJ1bnRpbCI6MTc5NTcwNzg5OCwic2luY2UiOm51bGwsImRhdGUiOjE3OTU3MDc4OTgsImNvdW50IjoxMDAsInNpemUiOjI0OSwiYWZ0ZXIiOnsic2VjcyI6MTc5NTcwNzg5NiwiaWQiOiJ4Iiwic2VxdWVuY2UiOjk5LCJzdGFtcCI6MTc5NTcwNzg5Nn19fQ";

fn run(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    let output = command.args(arguments).current_dir(folder).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

#[test]
fn records_tokens_and_quarantine_of_an_earlier_version_are_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let unpacked =
        zstd::Decoder::new(FOLDER).map(tar::Archive::new).and_then(|mut archive| archive.unpack(folder));
    unpacked.expect("the folder of the earlier version");
    fs::write(folder.join("data/lock"), "").expect("writable");
    fs::create_dir(folder.join("mappings")).expect("writable");
    // Nothing listens there any more.
    let mapping =
        "base_url = \"http://127.0.0.1:24555/oai\"\nserve = \"mirror\"\n[mirror]\nprefixes = [\"oai_dc\"]\n";
    fs::write(folder.join("mappings/x.toml"), mapping).expect("writable");
    let identifiers = run(folder, &["mirror", "cat", "x", "--format", "ids"]);
    assert_eq!(identifiers.lines().count(), 249);
    let verified = run(folder, &["mirror", "verify"]);
    assert!(verified.contains("249 records"), "{verified}");
    let quarantined = run(folder, &["quarantine", "ls"]);
    assert!(quarantined.contains("747299bf8ab6c8ff01ea058d5a847c60"), "{quarantined}");
    let server = Program::start(folder, &[]);
    let mut received = 0;
    let mut token = TOKEN.to_owned();
    while !token.is_empty() {
        let page = fetch(server.address(), &format!("/x?verb=ListRecords&resumptionToken={token}"));
        assert_eq!(page.status, 200, "{}", page.text());
        received += page.text().matches("<record>").count() + page.text().matches("<record ").count();
        let text = page.text();
        // The last one is an empty element.
        let next = text.split_once("</resumptionToken>").and_then(|(before, _)| before.rsplit('>').next());
        next.unwrap_or_default().clone_into(&mut token);
    }
    assert_eq!(received, 149, "the second and the third page");
}
