//! docs/reference/report.md: its example in Python replays and undoes real reports of the program.

use std::process::{Command, Stdio};

use oaimend_test_support::corpus::{cases, wellformed};
use oaimend_test_support::root;

/// Runs the example on the files of a folder and prints the names of those that do not match.
const DRIVER: &str = "
import pathlib, sys, replay
for report in sorted(pathlib.Path(sys.argv[1]).glob('*.report')):
    data, output = (report.with_suffix(end).read_bytes() for end in ('.input', '.output'))
    try:
        fits = replay.check(data, report.read_bytes(), output)
    except AssertionError as error:
        fits, report = False, f'{report}: {error}'
    if not fits:
        print(report)
";

/// Python cannot write a UTF-32 unit that is not a character.
const BEYOND_PYTHON: &str = "overlong-utf8/utf32-no-character";

/// The Python block of the page.
fn example() -> String {
    let page = std::fs::read_to_string(root().join("docs/reference/report.md")).expect("the page is there");
    let (_, block) = page.split_once("```python\n").expect("an example in Python");
    block.split_once("\n```").expect("the example ends").0.to_owned()
}

#[test]
fn documented_example_replays_and_undoes_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("replay.py"), example()).expect("it is written");
    let broken = ["broken", "refused"].into_iter().flat_map(cases).map(|case| (case.name, case.input));
    let all: Vec<(String, Vec<u8>)> = wellformed().into_iter().chain(broken).collect();
    let mut ran = 0;
    for (number, (name, input)) in all.iter().enumerate() {
        let path = |end: &str| at(&format!("{}.{end}", name.replace('/', "_")));
        std::fs::write(path("input"), input).expect("it is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.arg("repair").arg(path("input")).arg("--report").arg(path("report"));
        if number % 4 == 0 {
            command.args(["--base-url", "http://proxy.example.org/oai", "--request", "verb=ListRecords"]);
        }
        let output = command.stderr(Stdio::null()).output().expect("the program runs");
        std::fs::write(path("output"), &output.stdout).expect("it is written");
        let report = std::fs::read_to_string(path("report")).expect("a report");
        let is_decoded = !report.contains("\"decoded_as\":\"UTF-");
        if is_decoded || name.contains(BEYOND_PYTHON) {
            std::fs::remove_file(path("report")).expect("it is there");
            continue;
        }
        ran += 1;
    }
    assert!(ran > 400, "only {ran} reports");
    let mut python = Command::new("python3");
    python.args(["-c", DRIVER]).arg(folder.path()).current_dir(folder.path());
    let output = python.output().expect("python3 runs");
    let failed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(failed.is_empty(), "these reports do not fit:\n{failed}");
}
