//! Citations, structured data and links of record pages, as real programs read them.
//!
//! `tests/citations/check.py` does the work. The test is skipped if `scripts/citations install` was not run; its captured
//! output says so. With `OAIMEND_CITATIONS=required` it fails instead.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use oaimend::config::Mapping;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;
use serde_json::json;

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::proxy::Proxy;

const ARTICLE: usize = 1;
const HOSTILE: usize = 2;

#[test]
fn real_programs_read_citations_and_links() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_oaimend"));
    let target = program.ancestors().nth(2).expect("the program is two folders below");
    if !target.join("citations/ready").exists() {
        let is_required = std::env::var("OAIMEND_CITATIONS").is_ok_and(|value| value == "required");
        assert!(!is_required, "run scripts/citations install first");
        println!("skipped: scripts/citations install was not run");
        return;
    }
    let (source, _collection) = collection().start();
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let interval = Some(Duration::from_secs(30 * 86_400));
    let mirror = Some(MirrorSettings { interval, ..MirrorSettings::default() });
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(Mapping { mirror, ..mapping });
    });
    proxy.wait_for_harvests("x", 1);
    let page =
        |number| format!("http://{}/x/record/{}", proxy.address(), identifier(number).replace(':', "%3A"));
    let described = proxy.data().join("citations.json");
    let check = json!({
        "page": page(ARTICLE),
        "hostile": page(HOSTILE),
        "expected": {
            "title": "Of 50% and {braces}",
            "authors": ["Doe, Jane", "Müller, Jörg"],
            "orcids": ["https://orcid.org/0000-0002-1825-0097"],
            "journal": "Journal of X",
            "volume": "12",
            "number": "3",
            "pages": "45-67",
            "year": "2001",
            "doi": "10.1000/a",
            "issn": "0378-5955",
            "files": ["https://e.org/1.pdf"],
            "license": "https://creativecommons.org/licenses/by/4.0/",
        },
    });
    std::fs::write(&described, check.to_string()).expect("a writable folder");
    let output = Command::new(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts/citations"))
        .args(["check".as_ref(), described.as_os_str()])
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("the script runs");
    // The test harness captures this and shows it on a failure.
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "a program read something else");
}

fn collection() -> Collection {
    let mut collection = Collection::of(3);
    let mut set_title = |number: usize, title: String| {
        collection.entries.get_mut(&identifier(number)).expect("it exists").title = title;
    };
    // The provider writes titles as they are.
    set_title(
        ARTICLE,
        "Of 50% and {braces}</dc:title><dc:creator>Doe, Jane (ORCID: 0000-0002-1825-0097)</dc:creator>\
         <dc:creator>Müller, Jörg</dc:creator><dc:type>article</dc:type><dc:date>2001-05-06</dc:date>\
         <dc:source>Journal of X, 12(3), 45-67</dc:source><dc:source>0378-5955</dc:source>\
         <dc:identifier>doi:10.1000/a</dc:identifier><dc:identifier>https://e.org/1.pdf</dc:identifier>\
         <dc:rights>https://creativecommons.org/licenses/by/4.0/</dc:rights><dc:title>Another"
            .to_owned(),
    );
    let value =
        "}} \\ {{{ \" ,&#13;\nER  - &#13;\nTY  - JOUR&#13;\n@article{x, &#x2028;~^ and % >; rel=\"item\"";
    let fields = ["creator", "subject", "publisher", "identifier", "description", "source"];
    let fields: String = fields.iter().map(|name| format!("<dc:{name}>{value}</dc:{name}>")).collect();
    let many = "<dc:creator>A, B</dc:creator>".repeat(1_900);
    set_title(HOSTILE, format!("{value}</dc:title>{fields}{many}<dc:title>Another"));
    collection
}
