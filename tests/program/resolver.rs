//! The identifier resolver over the stores: what it finds follows each commit of the mirror.

use crate::fixtures::mirror::{Mirror, damage_last_block, deleted, live, runtime, segments};
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_repository::{Failure, Reason};
use oaimend_resolver::{PlacesMax, Resolved, ResolvedItem, ResolvedSource, ResolvedSources, Resolver};
use oaimend_store::{NewRecord, RecordStatus, RepositoryId, content_hash};
use oaimend_test_support::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;

const START_SECS: i64 = 1_700_000_000;

/// A record that names these identifiers, in fields of Dublin Core.
fn naming(identifier: &str, fields: &[(&str, &str)]) -> NewRecord {
    let record = live(identifier, &[], "Title");
    let fields: String =
        fields.iter().map(|(name, value)| format!("<dc:{name}>{value}</dc:{name}>")).collect();
    let xml = String::from_utf8(record.bytes.to_vec()).expect("UTF-8");
    let xml = xml.replace("</oai_dc:dc>", &format!("{fields}</oai_dc:dc>"));
    let content_hash = content_hash(RecordStatus::Live, &[], &[xml.as_bytes()]);
    NewRecord { content_hash, bytes: xml.into(), ..record }
}

fn sources(ids: &[(&str, u64)]) -> Arc<ResolvedSources> {
    let source = |(id, priority): &(&str, u64)| ResolvedSource {
        id: (*id).to_owned(),
        prefixes: Vec::new(),
        priority: *priority,
        is_hidden: false,
        has_full_texts: false,
    };
    Arc::new(ResolvedSources::new(ids.iter().map(source).collect()))
}

fn resolver(mirror: &Mirror) -> Resolver {
    let store = mirror.store();
    Resolver::new(store.mirror, store.identifiers, store.full_texts)
}

fn resolve(resolver: &Resolver, sources: &Arc<ResolvedSources>, text: &str) -> Resolved {
    try_resolve(resolver, sources, text).expect("all commits are known")
}

fn try_resolve(resolver: &Resolver, sources: &Arc<ResolvedSources>, text: &str) -> Result<Resolved, Failure> {
    runtime().block_on(resolver.resolve(sources, text, PlacesMax::ONE))
}

/// Waits until the table knows all commits.
fn wait(resolver: &Resolver, sources: &Arc<ResolvedSources>) {
    runtime()
        .block_on(async { while resolver.follow_if_used(sources).await.expect("the stores are intact") {} });
}

fn names(items: &[ResolvedItem]) -> Vec<String> {
    items.iter().map(|item| format!("{}/{}", item.repository, item.identifier)).collect()
}

fn mirror(ids: &[&str]) -> Mirror {
    let mirror = Mirror::new(START_SECS);
    for id in ids {
        mirror.describe(id, &["oai_dc", "marc"], &[]);
        mirror.commit(id, "oai_dc", Vec::new(), true);
        mirror.commit(id, "marc", Vec::new(), true);
    }
    mirror.pass_time(10);
    mirror
}

#[test]
fn a_record_is_found_by_each_spelling_of_its_identifiers() {
    let mirror = mirror(&["x"]);
    let fields = [
        ("identifier", "https://doi.org/10.1000/ABC"),
        ("identifier", "ISBN 3-16-148410-X"),
        ("relation", "arXiv:hep-th/9901001v2"),
        ("source", "See hdl:1765/7, page 3."),
    ];
    mirror.commit("x", "oai_dc", vec![naming("oai:x:1", &fields), live("oai:x:2", &[], "Other")], true);
    let (resolver, sources) = (resolver(&mirror), sources(&[("x", 0)]));
    for (text, field) in [
        ("10.1000/abc", "identifier"),
        ("doi:10.1000/Abc", "identifier"),
        ("http://dx.doi.org/10.1000%2Fabc", "identifier"),
        ("978-3-16-148410-0", "identifier"),
        ("316148410X", "identifier"),
        ("https://arxiv.org/abs/hep-th/9901001", "relation"),
        ("https://hdl.handle.net/1765/7", "source"),
    ] {
        let found = resolve(&resolver, &sources, text);
        assert_eq!(
            (names(&found.named_by), found.identified.len()),
            (vec!["x/oai:x:1".to_owned()], 0),
            "{text}"
        );
        assert_eq!(found.named_by[0].named_in.map(|field| field.name()), Some(field), "{text}");
    }
    let found = resolve(&resolver, &sources, "oai:x:1");
    assert_eq!((names(&found.identified), found.named_by.len()), (vec!["x/oai:x:1".to_owned()], 0));
    let [format] = found.identified[0].formats.as_slice() else { panic!("{found:?}") };
    assert_eq!((format.prefix.as_str(), format.is_deleted), ("oai_dc", false));
    assert_eq!(from_secs(format.datestamp_secs, Granularity::Second), "2001-02-03T00:00:00Z");
    assert_eq!(format.stamp_secs.0, START_SECS + 10);
    for text in ["OAI:x:1", "oai:x:3", "10.1000/ab", "", "\u{0}"] {
        assert!(resolve(&resolver, &sources, text).is_empty(), "{text}");
    }
}

#[test]
fn changed_and_deleted_records_lose_their_identifiers() {
    let mirror = mirror(&["x"]);
    let (one, two) = (("identifier", "10.1000/1"), ("identifier", "10.1000/2"));
    mirror.commit("x", "oai_dc", vec![naming("oai:x:1", &[one]), naming("oai:x:2", &[one, two])], true);
    mirror.commit("x", "marc", vec![naming("oai:x:2", &[one])], true);
    let (first, sources) = (resolver(&mirror), sources(&[("x", 0)]));
    let both = ["x/oai:x:1", "x/oai:x:2"];
    let found = resolve(&first, &sources, "10.1000/1");
    assert_eq!(names(&found.named_by), both);
    let prefixes = |item: &ResolvedItem| -> Vec<String> {
        item.formats.iter().map(|format| format.prefix.clone()).collect()
    };
    assert_eq!(prefixes(&found.named_by[1]), ["marc", "oai_dc"]);
    mirror.pass_time(10);
    mirror.commit("x", "oai_dc", vec![naming("oai:x:1", &[two]), deleted("oai:x:2", &[])], true);
    // The same resolver, and one after a restart of the process, which has not seen the commit.
    for resolver in [first, resolver(&mirror)] {
        let found = resolve(&resolver, &sources, "10.1000/1");
        assert_eq!(
            (names(&found.named_by), prefixes(&found.named_by[0])),
            (vec![both[1].into()], vec!["marc".into()])
        );
        assert_eq!(names(&resolve(&resolver, &sources, "doi:10.1000/2").named_by), [both[0]]);
        let found = resolve(&resolver, &sources, "oai:x:2");
        let deleted: Vec<bool> = found.identified[0].formats.iter().map(|format| format.is_deleted).collect();
        assert_eq!((deleted, found.best()), (vec![false, true], Some(&found.identified[0])));
    }
    let mirror = mirror.restart();
    mirror.commit("x", "marc", vec![deleted("oai:x:2", &[])], true);
    let resolver = resolver(&mirror);
    let found = resolve(&resolver, &sources, "oai:x:2");
    assert_eq!((names(&found.identified), found.best()), (vec![both[1].to_owned()], None));
    assert!(resolve(&resolver, &sources, "10.1000/1").is_empty());
}

#[test]
fn the_best_record_is_live_and_of_the_repository_with_the_highest_priority() {
    let mirror = mirror(&["x", "y", "z"]);
    let doi = [("identifier", "10.1000/1")];
    for id in ["x", "y", "z"] {
        mirror.commit(id, "oai_dc", vec![naming("oai:same", &doi)], true);
    }
    mirror.commit("z", "oai_dc", vec![naming("oai:z:9", &[("relation", "10.1000/1")])], true);
    let resolver = resolver(&mirror);
    let sources = sources(&[("x", 1), ("y", 2), ("z", 3)]);
    let found = resolve(&resolver, &sources, "oai:same");
    assert_eq!(names(&found.identified), ["z/oai:same", "y/oai:same", "x/oai:same"]);
    let named = ["z/oai:same", "y/oai:same", "x/oai:same", "z/oai:z:9"];
    assert_eq!(names(&resolve(&resolver, &sources, "10.1000/1").named_by), named);
    mirror.pass_time(10);
    mirror.commit("z", "oai_dc", vec![deleted("oai:same", &[])], true);
    let found = resolve(&resolver, &sources, "oai:same");
    assert_eq!(names(&found.identified), ["y/oai:same", "x/oai:same", "z/oai:same"]);
    assert_eq!(found.best().map(|best| best.repository.as_str()), Some("y"));
    // Hidden ones are located, too.
    let source = |id: &str, priority, is_hidden| ResolvedSource {
        id: id.to_owned(),
        priority,
        is_hidden,
        ..ResolvedSource::default()
    };
    let hidden = [source("x", 1, false), source("y", 2, true), source("z", 3, false)];
    let hidden = Arc::new(ResolvedSources::new(hidden.into()));
    assert_eq!(names(&resolve(&resolver, &hidden, "oai:same").identified), ["x/oai:same", "z/oai:same"]);
    let located = runtime().block_on(resolver.locate(&hidden, "oai:same")).expect("known");
    assert_eq!(names(&located), names(&found.identified));
}

#[test]
fn records_that_are_not_shown_do_not_use_up_the_limit() {
    let mirror = Mirror::new(START_SECS);
    let doi = [("identifier", "10.1000/1")];
    let many = |id: &str| (0..110).map(|at| naming(&format!("oai:{id}:{at:03}"), &doi)).collect::<Vec<_>>();
    // The first harvest of `a` has not ended, and `b` is hidden.
    for (id, records, is_complete) in
        [("a", many("a"), false), ("b", many("b"), true), ("x", vec![naming("oai:x:1", &doi)], true)]
    {
        mirror.describe(id, &["oai_dc"], &[]);
        mirror.commit(id, "oai_dc", records, is_complete);
    }
    let source =
        |id: &str| ResolvedSource { id: id.to_owned(), is_hidden: id == "b", ..ResolvedSource::default() };
    let sources = Arc::new(ResolvedSources::new(["a", "b", "x"].map(source).into()));
    let found = resolve(&resolver(&mirror), &sources, "10.1000/1");
    assert_eq!((names(&found.named_by), found.has_more), (vec!["x/oai:x:1".to_owned()], false));
    assert_eq!(found.incomplete, ["a"]);
}

#[test]
fn many_unknown_records_are_read_in_the_background() {
    let mirror = mirror(&["x"]);
    for page in 0..13 {
        let records =
            (0..100).map(|at| naming(&format!("oai:x:{page}-{at}"), &[("identifier", "10.1000/1")]));
        mirror.commit("x", "oai_dc", records.collect(), true);
    }
    let (resolver, sources) = (resolver(&mirror), sources(&[("x", 0)]));
    let failure = try_resolve(&resolver, &sources, "oai:x:0-0").expect_err("too many are unknown");
    assert_eq!((failure.reason, failure.status()), (Reason::MirrorIncomplete, 503));
    wait(&resolver, &sources);
    assert_eq!(names(&resolve(&resolver, &sources, "oai:x:12-99").identified), ["x/oai:x:12-99"]);
    let found = resolve(&resolver, &sources, "10.1000/1");
    assert_eq!((found.named_by.len(), found.has_more), (100, true));
}

#[test]
fn repositories_that_are_removed_or_replaced_leave_nothing() {
    let mirror = mirror(&["x", "y"]);
    let doi = [("identifier", "10.1000/1")];
    for id in ["x", "y"] {
        mirror.commit(id, "oai_dc", vec![naming(&format!("oai:{id}:1"), &doi)], true);
    }
    let (resolver, both) = (resolver(&mirror), sources(&[("x", 0), ("y", 0)]));
    assert_eq!(names(&resolve(&resolver, &both, "10.1000/1").named_by), ["x/oai:x:1", "y/oai:y:1"]);
    // Not mirrored any more.
    let one = sources(&[("x", 0)]);
    assert_eq!(names(&resolve(&resolver, &one, "10.1000/1").named_by), ["x/oai:x:1"]);
    wait(&resolver, &one);
    let table = mirror.store().identifiers;
    assert_eq!(runtime().block_on(table.collections()).expect("readable").len(), 2, "the formats of x");
    assert_eq!(names(&resolve(&resolver, &both, "10.1000/1").named_by), ["x/oai:x:1", "y/oai:y:1"]);
    // Forgotten, and harvested again with other records.
    mirror.forget("x");
    assert_eq!(names(&resolve(&resolver, &both, "10.1000/1").named_by), ["y/oai:y:1"]);
    mirror.describe("x", &["oai_dc"], &[]);
    mirror.commit("x", "oai_dc", vec![naming("oai:x:2", &doi)], true);
    assert_eq!(names(&resolve(&resolver, &both, "10.1000/1").named_by), ["x/oai:x:2", "y/oai:y:1"]);
    assert!(resolve(&resolver, &both, "oai:x:1").is_empty());
    wait(&resolver, &both);
    assert_eq!(runtime().block_on(table.collections()).expect("readable").len(), 3);
}

#[test]
fn a_format_is_found_after_its_first_complete_harvest() {
    let mirror = Mirror::new(START_SECS);
    mirror.describe("x", &["oai_dc"], &[]);
    mirror.commit("x", "oai_dc", vec![live("oai:x:1", &[], "One")], false);
    let (resolver, sources) = (resolver(&mirror), sources(&[("x", 0)]));
    let found = resolve(&resolver, &sources, "oai:x:1");
    assert_eq!((found.is_empty(), found.incomplete), (true, vec!["x".to_owned()]));
    mirror.commit("x", "oai_dc", Vec::new(), true);
    let found = resolve(&resolver, &sources, "oai:x:1");
    assert_eq!((names(&found.identified), found.incomplete.len()), (vec!["x/oai:x:1".to_owned()], 0));
    // Repositories and formats that were never harvested are gaps, too.
    mirror.describe("y", &["oai_dc"], &[]);
    let three = crate::resolver::sources(&[("x", 0), ("y", 0), ("z", 0)]);
    assert_eq!(resolve(&resolver, &three, "oai:x:1").incomplete, ["y", "z"]);
}

#[test]
fn damaged_records_are_a_known_gap() {
    let mirror = mirror(&["x"]);
    let lengths = mirror.lengths();
    mirror.commit("x", "oai_dc", vec![live("oai:x:1", &[], "One")], true);
    let (resolver, sources) = (resolver(&mirror), sources(&[("x", 0)]));
    mirror.damage_since(&lengths);
    let failure =
        try_resolve(&resolver, &sources, "oai:x:2").expect_err("the record may have any identifier");
    assert_eq!(failure.reason, Reason::Mirror);
    let store = mirror.store().mirror;
    runtime().block_on(store.verify_suspected(RepositoryId("x"))).expect("readable");
    let found = resolve(&resolver, &sources, "oai:x:2");
    assert_eq!((found.is_empty(), found.incomplete), (true, vec!["x".to_owned()]));
    mirror.pass_time(10);
    mirror.commit("x", "oai_dc", vec![live("oai:x:1", &[], "One")], true);
    let found = resolve(&resolver, &sources, "oai:x:1");
    assert_eq!((names(&found.identified), found.incomplete.len()), (vec!["x/oai:x:1".to_owned()], 0));
}

/// The truth of a random history: the names of each live record, `None` for a deleted one.
type Truth = BTreeMap<(&'static str, String), Option<Vec<usize>>>;

#[test]
fn results_follow_random_histories_and_restarts() {
    for seed in 0..6 {
        let (mut random, mut truth) = (Random::new(seed), Truth::new());
        let mut mirror = mirror(&["x", "y"]);
        let sources = sources(&[("x", 0), ("y", 0)]);
        let mut resolver = resolver(&mirror);
        for _ in 0..40 {
            let id = ["x", "y"][random.below(2)];
            let number = random.below(6);
            let identifier = format!("oai:{number}");
            mirror.pass_time(1);
            if random.chance(4) {
                mirror.commit(id, "oai_dc", vec![deleted(&identifier, &[])], true);
                truth.insert((id, identifier), None);
            } else {
                let names: Vec<usize> = (0..random.below(3)).map(|_| random.below(4)).collect();
                let texts: Vec<String> = names.iter().map(|name| format!("10.1000/{name}")).collect();
                let fields: Vec<_> = texts.iter().map(|text| ("identifier", text.as_str())).collect();
                mirror.commit(id, "oai_dc", vec![naming(&identifier, &fields)], true);
                truth.insert((id, identifier), Some(names));
            }
            if random.chance(10) {
                drop(resolver);
                mirror = mirror.restart();
                resolver = self::resolver(&mirror);
            }
            if random.chance(2) {
                continue;
            }
            let name = random.below(4);
            let mut found = names_of(&resolve(&resolver, &sources, &format!("10.1000/{name}")));
            found.sort_unstable();
            let is_named =
                |names: &Option<Vec<usize>>| names.as_ref().is_some_and(|names| names.contains(&name));
            let expected: Vec<String> = truth
                .iter()
                .filter(|(_, names)| is_named(names))
                .map(|((id, identifier), _)| format!("{id}/{identifier}"))
                .collect();
            assert_eq!(found, expected, "seed {seed}");
            let found = resolve(&resolver, &sources, "oai:3");
            let live: Vec<bool> = found.identified.iter().map(ResolvedItem::is_live).collect();
            let mut expected: Vec<bool> = ["x", "y"]
                .iter()
                .filter_map(|id| truth.get(&(*id, "oai:3".to_owned())).map(Option::is_some))
                .collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            assert_eq!(live, expected, "seed {seed}");
        }
    }
}

fn names_of(found: &Resolved) -> Vec<String> {
    names(&found.named_by)
}

#[test]
fn a_record_that_is_damaged_later_fails_its_own_query_only() {
    let folder_of = |mirror: &Mirror| mirror.lengths().into_keys().next().expect("a segment");
    let mirror = mirror(&["x"]);
    mirror.commit("x", "oai_dc", vec![naming("oai:x:1", &[("identifier", "10.1000/1")])], true);
    let (resolver, sources) = (resolver(&mirror), sources(&[("x", 0)]));
    assert_eq!(names(&resolve(&resolver, &sources, "10.1000/1").named_by), ["x/oai:x:1"]);
    let segment = folder_of(&mirror);
    segments(segment.parent().expect("a folder")).iter().for_each(|segment| damage_last_block(segment));
    assert_eq!(
        try_resolve(&resolver, &sources, "10.1000/1").map_err(|failure| failure.reason),
        Err(Reason::Mirror)
    );
    assert!(resolve(&resolver, &sources, "oai:x:2").is_empty());
}
