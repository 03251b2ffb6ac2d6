//! Lists whose tokens lead back: every harvest receives all records and then ends, also with cached pages.

use crate::fixtures::lists::{error_page, page, page_with, records_in, resume, token_in, token_of};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Reply, Source};
use oaimend_test_support::random::Random;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE_LEN: usize = 5;

/// The pages of a source: the next page after each one, if there is one. Page 0 is the first one.
type Graph = Vec<Option<usize>>;

fn source_of(graph: &Graph) -> Source {
    let graph = graph.clone();
    Source::start(move |_, received| {
        let token = token_of(received);
        let at = token.strip_prefix('p').map_or(Some(0), |at| at.parse::<usize>().ok());
        match at.and_then(|at| Some((at, *graph.get(at)?))) {
            Some((at, next)) => {
                let token = next.map(|next| format!("p{next}")).unwrap_or_default();
                Reply::xml(page(at * PAGE_LEN..(at + 1) * PAGE_LEN, &token))
            }
            None => Reply::xml(error_page("badResumptionToken")),
        }
    })
}

/// The records of a graph, and whether its list ends.
fn truth(graph: &Graph) -> (BTreeSet<usize>, bool) {
    let (mut seen, mut at) = (BTreeSet::new(), Some(0));
    while let Some(page) = at.filter(|page| seen.insert(*page)) {
        at = graph[page];
    }
    let records = seen.iter().flat_map(|page| page * PAGE_LEN..(page + 1) * PAGE_LEN);
    (records.collect(), at.is_none())
}

/// A harvest, page by page.
#[derive(Default)]
struct Harvest {
    records: BTreeSet<usize>,
    token: Option<String>,
    pages: usize,
    /// Whether it has ended normally, once it has ended.
    end: Option<bool>,
}

impl Harvest {
    fn next_page(&mut self, proxy: &Proxy) {
        let got = match self.token.take() {
            Some(token) => resume(proxy, &token),
            None => proxy.get(LIST),
        };
        self.pages += 1;
        assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
        self.records.extend(records_in(&got.text()).into_keys());
        self.token = token_in(&got.text());
        if self.token.is_none() {
            self.end = Some(!got.text().contains("<error"));
        }
    }

    fn to_the_end(proxy: &Proxy, pages_max: usize) -> Self {
        let mut harvest = Self::default();
        while harvest.end.is_none() {
            harvest.next_page(proxy);
            assert!(harvest.pages <= pages_max, "no end after {pages_max} pages");
        }
        harvest
    }
}

#[test]
fn each_harvest_of_a_list_in_a_circle_receives_all_records() {
    let graph: Graph = vec![Some(1), Some(2), Some(3), Some(1)];
    let (records, _) = truth(&graph);
    let source = source_of(&graph);
    let proxy = Proxy::of(&source);
    for number in 0..6 {
        let harvest = Harvest::to_the_end(&proxy, 6);
        assert_eq!((&harvest.records, harvest.end), (&records, Some(false)), "harvest {number}");
    }
    assert!(source.requests().len() <= 6 * 6, "{}", source.requests().len());
}

#[test]
fn error_of_one_harvest_is_not_cached_for_another() {
    let fails = Arc::new(AtomicBool::new(true));
    let shared = Arc::clone(&fails);
    let source = Source::start(move |_, received| {
        match (token_of(received).is_empty(), shared.load(Ordering::SeqCst)) {
            (true, _) => Reply::xml(page(0..5, "t")),
            (false, true) => Reply::xml(error_page("badResumptionToken")),
            (false, false) => Reply::xml(page(5..10, "")),
        }
    });
    let proxy = Proxy::with(|config| {
        config.cache.failures = std::time::Duration::from_secs(3_600);
        crate::fixtures::keeping::map(config, &source, |_| {});
    });
    let first = Harvest::to_the_end(&proxy, 3);
    assert_eq!((first.records.len(), first.end), (5, Some(false)));
    fails.store(false, Ordering::SeqCst);
    let second = Harvest::to_the_end(&proxy, 3);
    assert_eq!((second.records.len(), second.end), (10, Some(true)));
}

#[test]
fn random_graphs_end_for_every_harvest() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let pages = 1 + random.below(6);
        let graph: Graph = (0..pages).map(|_| (!random.chance(15)).then(|| random.below(pages))).collect();
        let (records, ends) = truth(&graph);
        // Page 0 has a token too, and two rounds of each of the mixed harvests may pass.
        let pages_max = (pages + 1) * 12;
        let source = source_of(&graph);
        let proxy = Proxy::of(&source);
        let case = format!("seed {seed}: {graph:?}");
        for _ in 0..4 {
            match random.below(3) {
                0 => {
                    let mut abandoned = Harvest::default();
                    for _ in 0..1 + random.below(pages + 1) {
                        if abandoned.end.is_none() {
                            abandoned.next_page(&proxy);
                        }
                    }
                }
                1 => {
                    let mut both = [Harvest::default(), Harvest::default()];
                    while let Some(open) =
                        both.iter_mut().filter(|one| one.end.is_none()).min_by_key(|one| one.pages)
                    {
                        open.next_page(&proxy);
                        assert!(open.pages <= pages_max, "{case}: no end");
                    }
                    for one in both {
                        assert_eq!((&one.records, one.end), (&records, Some(ends)), "{case}: one of two");
                    }
                }
                _ => {
                    let harvest = Harvest::to_the_end(&proxy, pages_max);
                    assert_eq!((&harvest.records, harvest.end), (&records, Some(ends)), "{case}");
                }
            }
        }
    }
}

#[test]
fn list_that_continues_with_new_tokens_is_read_from_the_cache_once() {
    // Every page has a new token, and the records come again.
    let source = Source::start(|_, received| {
        let at = token_of(received).parse::<usize>().unwrap_or(0);
        let token = if at < 20 { (at + 1).to_string() } else { String::new() };
        Reply::xml(page_with(
            (at % 2) * 5..(at % 2) * 5 + 5,
            &format!("<resumptionToken>{token}</resumptionToken>"),
        ))
    });
    let proxy = Proxy::of(&source);
    for _ in 0..3 {
        let harvest = Harvest::to_the_end(&proxy, 21);
        assert_eq!((harvest.records.len(), harvest.pages, harvest.end), (10, 21, Some(true)));
    }
    assert_eq!(source.requests().len(), 20 + 3);
}
