//! Recorded responses of real providers, through the proxy: the harvester receives the output of
//! the engine, complete, aborted, or as a 503, according to the verdict.
//!
//! The responses are not part of the project. Without ../shared/corpus the test uses only the
//! project's corpus, and prints a note.

use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Reply, Source};
use oaimend_oai::Request;
use oaimend_repair::{Ending, Outcome, RepairConfig, Repairer, Sink};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The output of the engine.
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

/// A page without its responseDate, which the proxy adds if the source gave none.
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
    let mut config = RepairConfig::default();
    config.request = Request::parse(query.as_bytes()).ok().map(|request| request.to_echo(base_url).into());
    // The request has no token, whatever the recorded page says.
    config.request_token = Some(String::new());
    config.response_date = Some("2026-01-02T03:04:05Z".into());
    config.ending = Ending::Abort;
    let mut written = Written::default();
    let mut repairer = Repairer::new(&config);
    repairer.push(body, &mut written);
    let before_the_end = written.0.len();
    let summary = repairer.finish(&mut written);
    if summary.outcome == Outcome::Truncated && summary.lost == 0 {
        // A cut item at the end is replaced when the page is resumed.
        written.0.truncate(before_the_end);
    }
    let file = file.display();
    // A list whose records were all quarantined is not an empty list; neither is one whose next
    // page is empty too.
    let says = |text: &str| written.0.windows(text.len()).any(|window| window == text.as_bytes());
    let only_leads_on = summary.records == 0 && says("</resumptionToken>") && !says("<resumptionToken></");
    if written.0.is_empty() || only_leads_on || summary.records == 0 && summary.quarantined > 0 {
        // A permanent failure is a 502 without Retry-After.
        let retries = !got.header("retry-after").is_empty();
        assert!(matches!((got.status, retries), (503, true) | (502, false)), "{file}: {}", got.text());
        assert!(got.whole && !got.header("proxy-status").is_empty(), "{file}");
        return "failed";
    }
    assert_eq!(got.status, 200, "{file}: {}", got.text());
    if summary.unread > 0 {
        // An item that could not be read: a continuation token leads to it, or the page is aborted.
        let continued = got.body.windows(TOKEN.len()).any(|window| window == TOKEN);
        assert!(continued || !got.whole, "{file}: {}", got.text());
        return if got.whole { "continued" } else { "broken off" };
    }
    // A repeated request loses the same item again, so the page cannot be resumed.
    let lost = summary.outcome == Outcome::Truncated && summary.lost > 0;
    assert_eq!(got.whole, !lost, "{file}");
    if lost {
        return "broken off";
    }
    if summary.outcome != Outcome::Truncated {
        assert!(timeless(&got.body) == timeless(&written.0), "{file}: other bytes than the engine's");
        return "whole";
    }
    // A continuation token leads to the missing items.
    let end = got.body.windows(TOKEN.len()).position(|window| window == TOKEN);
    let begun = &got.body[..end.unwrap_or_else(|| panic!("{file}: {}", got.text()))];
    assert!(timeless(begun) == timeless(&written.0), "{file}: other bytes than the engine's");
    "continued"
}

const TOKEN: &[u8] = b"<resumptionToken>oaimend1_";

#[test]
fn responses_equal_the_engine_output() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&root.join("corpus"), &mut found);
    let of_corpus = found.len();
    files(&root.join("../shared/corpus"), &mut found);
    println!("{of_corpus} responses of corpus/, {} of ../shared/corpus", found.len() - of_corpus);
    assert!(of_corpus > 100, "{of_corpus}");
    let bodies: Vec<Vec<u8>> = found.iter().map(|file| std::fs::read(file).expect("readable")).collect();
    let served = Arc::new(Mutex::new(Vec::new()));
    let serves = Arc::clone(&served);
    let source = Source::start(move |_, _| Reply::xml(serves.lock().expect("no panic").clone()));
    let begin = || {
        Proxy::with(|config| {
            // All pages answer the same request, so failures must not be cached.
            config.cache.failures = Duration::ZERO;
            config.map("x", &source.base_url()).expect("a legal mapping");
        })
    };
    let mut proxy = begin();
    let mut outcomes = BTreeMap::new();
    for (file, body) in found.iter().zip(&bodies) {
        served.lock().expect("no panic").clone_from(body);
        // The pages come from different repositories, so no profile may carry over.
        let teaches = body.windows(9).any(|window| window == b"Identify>");
        if teaches {
            proxy = begin();
        }
        let base_url = format!("http://{}/x", proxy.address());
        let outcome = check(file, body, &proxy.get(LIST), &base_url);
        *outcomes.entry(outcome).or_insert(0) += 1;
        if teaches || outcome == "failed" {
            // A source that fails often is suspended, which is not the subject here.
            proxy = begin();
        }
    }
    println!("{outcomes:?}");
    // No recorded page is aborted: continuation tokens lead to unreadable items.
    assert_eq!(outcomes.len(), 3, "each of them happens: {outcomes:?}");
}
