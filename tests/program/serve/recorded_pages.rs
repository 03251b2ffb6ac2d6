//! Recorded responses of real providers, served by a source on loopback and
//! asked for through the proxy: what arrives is what the engine makes of them,
//! whole, broken off or 503 as its verdict says.
//!
//! They are not part of the project; without ../shared/corpus the corpus of the
//! project itself is used alone, and the test says so.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Reply, Source};
use oaimend::oai::Request;
use oaimend::repair::{Ending, Outcome, RepairConfig, Repairer, Sink};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the engine writes.
#[derive(Default)]
struct Written(Vec<u8>);

impl Sink for Written {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if !path.ends_with("case.toml") && !path.ends_with("report.jsonl") {
            found.push(path);
        }
    }
}

/// A page without the time of the answer, which is ours where the source said none.
fn timeless(page: &[u8]) -> Vec<u8> {
    let (start, end) = (b"<responseDate>", b"</responseDate>");
    let find = |mark: &[u8]| page.windows(mark.len()).position(|window| window == mark);
    match (find(start), find(end)) {
        (Some(from), Some(to)) if from < to => [&page[..from], &page[to..]].concat(),
        _ => page.to_vec(),
    }
}

#[track_caller]
fn check(file: &Path, body: &[u8], got: &Got, base_url: &str) -> &'static str {
    let query = LIST.split_once('?').map_or("", |(_, query)| query);
    let config = RepairConfig {
        request: Request::parse(query.as_bytes()).ok().map(|request| request.own(base_url).into()),
        response_date: Some("2026-01-02T03:04:05Z".into()),
        ending: Ending::Abort,
        ..RepairConfig::default()
    };
    let mut written = Written::default();
    let mut repairer = Repairer::new(&config);
    repairer.push(body, &mut written);
    let before_the_end = written.0.len();
    let summary = repairer.finish(&mut written);
    if summary.outcome == Outcome::Truncated && summary.lost == 0 {
        // What the engine makes of a cut end is left for the rest of the page.
        written.0.truncate(before_the_end);
    }
    let file = file.display();
    // A list of which everything was put aside is no empty list, and neither is one
    // whose next page is as empty.
    let says = |text: &str| written.0.windows(text.len()).any(|window| window == text.as_bytes());
    let only_leads_on = summary.records == 0 && says("</resumptionToken>") && !says("<resumptionToken></");
    if written.0.is_empty() || only_leads_on || summary.records == 0 && summary.quarantined > 0 {
        // What does not pass by itself is 502, and says nothing of trying again.
        let retries = !got.header("retry-after").is_empty();
        assert!(matches!((got.status, retries), (503, true) | (502, false)), "{file}: {}", got.text());
        assert!(got.whole && !got.header("proxy-status").is_empty(), "{file}");
        return "failed";
    }
    assert_eq!(got.status, 200, "{file}: {}", got.text());
    if summary.unread > 0 {
        // An item that could not be read: a token of ours leads to it, or the page breaks off.
        let continued = got.body.windows(TOKEN.len()).any(|window| window == TOKEN);
        assert!(continued || !got.whole, "{file}: {}", got.text());
        return if got.whole { "continued" } else { "broken off" };
    }
    // What was lost once is lost again: there is nothing to go on with.
    let lost = summary.outcome == Outcome::Truncated && summary.lost > 0;
    assert_eq!(got.whole, !lost, "{file}");
    if lost {
        return "broken off";
    }
    if summary.outcome != Outcome::Truncated {
        assert!(timeless(&got.body) == timeless(&written.0), "{file}: other bytes than the engine's");
        return "whole";
    }
    // What is missing is had by a token of ours.
    let end = got.body.windows(TOKEN.len()).position(|window| window == TOKEN);
    let begun = &got.body[..end.unwrap_or_else(|| panic!("{file}: {}", got.text()))];
    assert!(timeless(begun) == timeless(&written.0), "{file}: other bytes than the engine's");
    "continued"
}

const TOKEN: &[u8] = b"<resumptionToken>oaimend1_";

#[test]
fn what_arrives_is_what_the_engine_makes_of_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&root.join("corpus"), &mut found);
    let own = found.len();
    files(&root.join("../shared/corpus"), &mut found);
    println!("{own} responses of corpus/, {} of ../shared/corpus", found.len() - own);
    assert!(own > 100, "{own}");
    let bodies: Vec<Vec<u8>> = found.iter().map(|file| std::fs::read(file).expect("readable")).collect();
    let served = Arc::new(Mutex::new(Vec::new()));
    let serves = Arc::clone(&served);
    let source = Source::start(move |_, _| Reply::xml(serves.lock().expect("no panic").clone()));
    let begin = || {
        Proxy::with(|config| {
            // Each page answers the same request: a failure must not stand for the next one.
            config.cache.failures = Duration::ZERO;
            config.map("x", &source.base_url()).expect("a legal mapping");
        })
    };
    let mut proxy = begin();
    let mut outcomes = BTreeMap::new();
    for (file, body) in found.iter().zip(&bodies) {
        served.lock().expect("no panic").clone_from(body);
        // What a repository says of itself holds for its other pages, and these are all of others.
        let teaches = body.windows(9).any(|window| window == b"Identify>");
        if teaches {
            proxy = begin();
        }
        let base_url = format!("http://{}/x", proxy.address());
        let outcome = check(file, body, &proxy.get(LIST), &base_url);
        *outcomes.entry(outcome).or_insert(0) += 1;
        if teaches || outcome == "failed" {
            // A source that fails often is left alone, which is not what is looked at here.
            proxy = begin();
        }
    }
    println!("{outcomes:?}");
    // No recorded page breaks off: items that could not be read are had by a token of ours.
    assert_eq!(outcomes.len(), 3, "each of them happens: {outcomes:?}");
}
