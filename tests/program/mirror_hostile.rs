//! Sources that could fill the disk of the mirror, or keep it from harvesting others.

use oaimend_store::RepositoryId;
use std::sync::Mutex;

use oaimend::config::Mapping;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;
use std::path::Path;
use std::time::Duration;

use crate::fixtures::collection::Collection;
use crate::fixtures::harvest::{Mirror, queries};
use crate::fixtures::lists::{page_with, token_of};
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{ReceivedRequest, Reply, Source};

/// A source with these responses to requests of one verb. A collection of three records answers the others.
fn source_of(
    verb: &'static str,
    reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> Source {
    let other = Mutex::new(Collection::of(3));
    Source::start(move |_, received| {
        if received.target.contains(&format!("verb={verb}")) {
            reply(received)
        } else {
            other.lock().expect("no panic").reply(received)
        }
    })
}

/// The number in the token that a source is asked for.
fn number_of(received: &ReceivedRequest) -> usize {
    token_of(received).parse().unwrap_or(0)
}

fn token(number: usize) -> String {
    format!("<resumptionToken>{number}</resumptionToken>")
}

/// A page of an endless list of sets.
fn page_of_sets(first: usize, next: usize) -> Reply {
    let set = |number| format!("<set><setSpec>s{number}</setSpec><setName>Set {number}</setName></set>");
    let sets: String = (first..first + 5).map(set).collect();
    Reply::xml(page_with([], &format!("{sets}{}", token(next))).replace("ListRecords", "ListSets"))
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let size = |entry: std::fs::DirEntry| {
        if entry.file_type().expect("a type").is_dir() {
            bytes_in(&entry.path())
        } else {
            entry.metadata().expect("a file").len()
        }
    };
    entries.map(size).sum()
}

#[test]
fn records_in_deep_and_in_many_sets_are_kept_with_a_limited_number_of_sets() {
    let deep = vec!["a"; 20_000].join(":");
    let many: String = (0..5_000).map(|number| format!("<setSpec>m:{number}</setSpec>")).collect();
    let source = source_of("ListRecords", move |_| {
        let with = |number, sets: &str| {
            page_with([number], "").replace("</datestamp>", &format!("</datestamp>{sets}"))
        };
        let records = |page: String| {
            let (_, rest) = page.split_once("<ListRecords>").expect("a list");
            rest.split_once("</ListRecords>").expect("its end").0.to_owned()
        };
        let all = [
            with(0, &format!("<setSpec>{deep}</setSpec><setSpec>b</setSpec>")),
            with(1, &many),
            with(2, "<setSpec>b:c</setSpec>"),
        ];
        let all: String = all.map(records).concat();
        Reply::xml(page_with([], &all))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mirror = Mirror::open(&source, folder.path());
    let summary = mirror.harvest();
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!((summary.counts.stored, summary.missing), (3, 0), "{summary:?}");
    // The deep set, and those after the 999th one below `m`.
    assert_eq!(summary.counts.surplus_sets, 1 + 4_001, "{summary:?}");
    assert!(summary.describe().contains("; 4002 setSpecs of records are beyond the limits"), "{summary:?}");
    let in_use = mirror.runtime.block_on(mirror.store.sets_in_use(RepositoryId("x"))).expect("sets");
    assert_eq!(in_use.len(), 32 + 1 + 1_000 + 1, "{in_use:?}");
    let records = mirror.records();
    let highest = vec!["a"; 32].join(":");
    assert_eq!(*records[0].set_specs, [highest, "b".to_owned()]);
    assert_eq!(records[1].set_specs.len(), 1_000);
    assert_eq!(*records[2].set_specs, ["b:c"]);
    let state = mirror.runtime.block_on(mirror.store.repository_state(RepositoryId("x"))).expect("a state");
    assert_eq!(state.last_harvest.expect("a harvest").surplus_sets, 4_002);
    let bytes = bytes_in(&folder.path().join("mirror"));
    assert!(bytes < 16 << 20, "{bytes} bytes for three records");
    // The same records are the same again.
    let again = mirror.harvest();
    assert_eq!((again.counts.stored, again.counts.unchanged), (0, 3), "{again:?}");
}

/// One harvest may run at a time. Two sources never end a list.
#[test]
fn endless_lists_do_not_keep_other_repositories_from_their_harvests() {
    let endless = [
        (
            "new records",
            source_of("ListRecords", |received| {
                let at = number_of(received);
                Reply::xml(page_with(at * 2..at * 2 + 2, &token(at + 1)))
            }),
        ),
        (
            "new sets",
            source_of("ListSets", |received| {
                let at = number_of(received);
                page_of_sets(at * 5, at + 1)
            }),
        ),
    ];
    let (good, _) = Collection::of(3).start();
    let proxy = Proxy::with(|config| {
        config.mirror.harvests_max = 1;
        let sources = endless.iter().map(|(_, source)| source).chain([&good]);
        for (number, source) in sources.enumerate() {
            let id = format!("r{number}");
            let mapping = Mapping::new(&id, &source.base_url(), &Limits::default()).expect("a legal mapping");
            let settings =
                MirrorSettings { request_gap: Duration::from_secs(1), ..MirrorSettings::default() };
            config.repositories.add_fixed(Mapping { mirror: Some(settings), ..mapping });
        }
    });
    let harvest = proxy.wait_for_harvests("r2", 1);
    assert_eq!(harvest["last"]["is_complete"], true, "{harvest}");
    for (number, (what, source)) in endless.iter().enumerate() {
        let harvest = || proxy.admin_json(&format!("/-/mirror/r{number}/harvest"));
        let before = queries(source).len();
        // They go on in their turns.
        while queries(source).len() < before + 40 {
            std::thread::yield_now();
        }
        assert!(harvest()["last"].is_null() && !harvest()["running"].is_null(), "{what}: {}", harvest());
        let lists = queries(source).into_iter().filter(|query| query.contains("resumptionToken"));
        let mut tokens: Vec<String> = lists.collect();
        let count = tokens.len();
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), count, "{what}: a harvest goes on where it was");
    }
}

#[test]
fn endless_list_of_the_same_sets_does_not_delay_the_records() {
    let source = source_of("ListSets", |received| {
        let at = number_of(received);
        page_of_sets(at % 3 * 5, at + 1)
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mirror = Mirror::open(&source, folder.path());
    let summary = mirror.harvest();
    assert!(summary.is_complete() && summary.counts.stored == 3, "{summary:?}");
    let received = queries(&source).iter().filter(|query| query.contains("ListSets")).count();
    assert!(received <= 6 * (3 + 1), "{received} requests");
}
