//! Federations of a running server: its repositories as one, with sources that fail, and the rules of validators.

use crate::fixtures::keeping::wait_until;
use crate::fixtures::lists::{texts_in, token_in};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::provider::{Fault, Provider, When};
use crate::fixtures::source::{Reply, Source, fetch};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge::judge;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

/// A source whose host in identifiers is this one, and which can be down.
fn source(host: &'static str, provider: Provider) -> (Source, Arc<AtomicBool>) {
    let (script, _) = provider.script(When::Always, Fault::Edit("oai:source.example", host));
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let source = Source::start(move |number, received| {
        if down.load(Ordering::SeqCst) {
            return Reply::new(503, "Retry-After: 1").send("down");
        }
        let mut renamed = received.clone();
        let encoded = host.replace(':', "%3A");
        renamed.target =
            renamed.target.replace(&encoded, "oai%3Asource.example").replace(host, "oai:source.example");
        script(number, &renamed)
    });
    (source, is_down)
}

fn write(folder: &Path, file: &str, text: &str) {
    let file = folder.join(file);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("writable");
    std::fs::write(file, text).expect("writable");
}

/// A server with these mappings, which fail fast.
fn serving(folder: &Path, sources: &[(&str, &Source, &str)]) -> Program {
    for (id, source, rest) in sources {
        let mapping =
            format!("base_url = \"{}\"\n[limits]\nfirst_record_timeout_secs = 1\n{rest}", source.base_url());
        write(folder, &format!("mappings/{id}.toml"), &mapping);
    }
    Program::run(serve(folder).args(["--admin", "off", "--mappings", "mappings"]))
}

/// The identifiers of all pages.
#[track_caller]
fn harvest(program: &Program, path: &str) -> Vec<String> {
    let (mut identifiers, mut query) = (Vec::new(), LIST.to_owned());
    loop {
        let page = fetch(program.address(), &format!("{path}?{query}"));
        let text = page.text();
        assert_eq!(page.status, 200, "{text}");
        judge(text.as_bytes(), Strictness::Schema).unwrap_or_else(|wrong| panic!("{wrong}\n{text:.3000}"));
        identifiers.extend(texts_in(&text, "identifier"));
        let Some(token) = token_in(&text) else { return identifiers };
        query = format!("verb=ListRecords&resumptionToken={token}");
    }
}

fn hosts(identifiers: &[String]) -> BTreeSet<&str> {
    identifiers.iter().map(|identifier| identifier.rsplit_once(':').map_or("", |(host, _)| host)).collect()
}

#[test]
fn the_repositories_of_a_server_are_one_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, _) = source("oai:a.example", Provider::default());
    let (b, _) = source("oai:b.example", Provider { page: 60, ..Provider::default() });
    write(folder.path(), "federations/one.toml", "repository_name = \"One\"\nrepositories = [\"b\"]\n");
    let program = serving(folder.path(), &[("a", &a, ""), ("b", &b, "")]);
    let all = harvest(&program, "/_federation");
    assert_eq!((all.len(), hosts(&all)), (500, BTreeSet::from(["oai:a.example", "oai:b.example"])));
    let one = harvest(&program, "/_federation/one");
    assert_eq!((one.len(), hosts(&one)), (250, BTreeSet::from(["oai:b.example"])));
    let get = format!("/_federation?verb=GetRecord&metadataPrefix=oai_dc&identifier={}", one[7]);
    let record = fetch(program.address(), &get).text();
    assert!(record.contains("<setSpec>b</setSpec>") && record.contains(&one[7]), "{record}");
    let index =
        fetch(program.address(), "/_index?verb=ListRecords&metadataPrefix=INDEX&set=kind:federation").text();
    let base_url = format!("http://{}", program.address());
    assert!(index.contains(&format!("<baseURL>{base_url}/_federation/one</baseURL>")), "{index}");
    assert!(index.contains(&format!("<member>{base_url}/b</member>")), "{index}");
    for path in ["/_federation/two", "/_federation/one/xml"] {
        assert_eq!(fetch(program.address(), path).status, 404, "{path}");
    }
    let page = crate::fixtures::source::fetch_with(
        program.address(),
        "/_federation?verb=Identify",
        "Accept: text/html\nSec-Fetch-Dest: document\nSec-Fetch-Mode: navigate",
    );
    assert!(page.status == 200 && page.text().contains("<html"), "{}", page.text());
}

#[test]
fn federations_have_pages_for_browsers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, is_down) = source("oai:a.example", Provider::default());
    let (b, _) = source("oai:b.example", Provider::default());
    let tables = "[[federations]]\nname = \"one\"\ndescription = \"Maps & plans\"\nrepositories = [\"b\"]\n";
    write(folder.path(), "oaimend.toml", tables);
    let program = serving(folder.path(), &[("a", &a, ""), ("b", &b, "")]);
    let page = |path: &str| {
        crate::fixtures::source::fetch_with(program.address(), path, "Accept: text/html\r\n").text()
    };
    let base = format!("http://{}", program.address());
    fetch(program.address(), "/b?verb=ListMetadataFormats");
    for path in ["/_federation", "/_federation/"] {
        let all = page(path);
        assert!(all.contains(&format!("<code>{base}/_federation</code>")), "{all}");
        assert!(all.contains("href=\"/a/\"") && all.contains("href=\"/b/\""), "{all}");
        assert!(all.contains("<bdi>oai_dc</bdi>") && !all.contains("source fails"), "{all}");
    }
    let one = page("/_federation/one");
    assert!(one.contains("Maps &amp; plans") && one.contains(&format!("{base}/_federation/one<")), "{one}");
    assert!(one.contains("href=\"/b/\"") && !one.contains("href=\"/a/\""), "{one}");
    is_down.store(true, Ordering::SeqCst);
    fetch(program.address(), "/a?verb=Identify");
    wait_until(|| page("/_federation").contains("source fails since"));
    // Harvesters get OAI-PMH.
    assert!(fetch(program.address(), "/_federation").text().contains("badVerb"));
    assert_eq!(harvest(&program, "/_federation/one").len(), 250);
    assert!(!page("/_federation/two").contains("_federation/two?verb"));
    let validate = |text: &str| {
        write(folder.path(), "oaimend.toml", text);
        let mut validate = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        let output = validate.arg("validate").current_dir(folder.path()).output().expect("the program runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    assert!(validate(tables).contains("no faults"), "{}", validate(tables));
    let faulty = validate(&tables.replace("\"b\"", "\"c\""));
    assert!(faulty.contains("oaimend.toml:4") && faulty.contains("is no repository"), "{faulty}");
}

#[test]
fn a_server_without_repositories_has_no_federation() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(folder.path(), &[]);
    assert_eq!(fetch(program.address(), "/_federation?verb=Identify").status, 404);
}

#[test]
fn a_source_that_dies_in_the_middle_of_a_list_is_503_until_it_is_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, _) = source("oai:a.example", Provider::default());
    let (b, is_down) = source("oai:b.example", Provider::default());
    let program = serving(folder.path(), &[("a", &a, ""), ("b", &b, "")]);
    let mut query = LIST.to_owned();
    for _ in 0..4 {
        let text = fetch(program.address(), &format!("/_federation?{query}")).text();
        query = format!("verb=ListRecords&resumptionToken={}", token_in(&text).expect("more"));
    }
    is_down.store(true, Ordering::SeqCst);
    let page = fetch(program.address(), &format!("/_federation?{query}"));
    assert_eq!(page.status, 503, "{}", page.text());
    assert!(
        page.text().contains("the repository b of this federation") && !page.header("retry-after").is_empty()
    );
    is_down.store(false, Ordering::SeqCst);
    // The circuit of the source closes again.
    wait_until(|| fetch(program.address(), &format!("/_federation?{query}")).status == 200);
}

#[test]
fn a_mirror_answers_in_place_of_its_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, is_down) = source("oai:a.example", Provider::default());
    write(folder.path(), "federations/m.toml", "on_failure = \"mirror\"\n");
    let program = serving(folder.path(), &[("a", &a, "[mirror]\ninterval_secs = 600000\n")]);
    let is_mirrored = || fetch(program.address(), &format!("/_mirror/a?{LIST}")).status == 200;
    wait_until(is_mirrored);
    let live = harvest(&program, "/_federation/m");
    is_down.store(true, Ordering::SeqCst);
    let mirrored = harvest(&program, "/_federation/m");
    assert_eq!(mirrored.iter().collect::<BTreeSet<_>>(), live.iter().collect());
    assert_eq!(fetch(program.address(), &format!("/_federation?{LIST}")).status, 503, "without on_failure");
}

/// The rules of the official validator.
#[test]
fn a_federation_passes_the_check_of_repositories() {
    for in_days in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let (a, _) = source("oai:a.example", Provider { in_days, ..Provider::default() });
        let (b, _) = source("oai:b.example", Provider::default());
        let program = serving(folder.path(), &[("a", &a, ""), ("b", &b, "")]);
        let url = format!("http://{}/_federation", program.address());
        let mut check = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        let output = check.args(["check", "--format", "json", &url]).output().expect("the program runs");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rules = report["rules"].as_array().expect("a list of rules");
        let failed: Vec<_> = rules.iter().filter(|rule| rule["verdict"] == "fails").collect();
        assert_eq!((output.status.code(), &failed), (Some(0), &Vec::new()), "{report:#}");
    }
}
