//! The links between records over the stores: citations in both directions and duplicates, at each commit of the mirror.

use crate::fixtures::mirror::{Mirror, deleted, live, runtime};
use oaimend_resolver::{
    Citation, ItemLinks, LinkCursor, LinksRequest, ResolvedSource, ResolvedSources, Resolver, SameBy,
};
use oaimend_store::{FullText, FullTextState, NewRecord, RecordStatus, content_hash};
use std::collections::BTreeSet;
use std::sync::Arc;

const START_SECS: i64 = 1_700_000_000;

/// A record with these elements. Those of qualified Dublin Core are in its namespace.
fn record(identifier: &str, fields: &[(&str, &str)]) -> NewRecord {
    let record = live(identifier, &[], "Title");
    let field = |(name, value): &(&str, &str)| match *name {
        "references" | "isReferencedBy" => {
            format!("<t:{name} xmlns:t=\"http://purl.org/dc/terms/\">{value}</t:{name}>")
        }
        _ => format!("<dc:{name}>{value}</dc:{name}>"),
    };
    let fields: String = fields.iter().map(field).collect();
    let xml = String::from_utf8(record.bytes.to_vec()).expect("UTF-8");
    let xml = xml.replace("</oai_dc:dc>", &format!("{fields}</oai_dc:dc>"));
    let content_hash = content_hash(RecordStatus::Live, &[], &[xml.as_bytes()]);
    NewRecord { content_hash, bytes: xml.into(), ..record }
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

fn sources(shown: &[&str], hidden: &[&str]) -> Arc<ResolvedSources> {
    let source = |id: &&str| ResolvedSource {
        id: (*id).to_owned(),
        is_hidden: hidden.contains(id),
        ..ResolvedSource::default()
    };
    Arc::new(ResolvedSources::new(shown.iter().chain(hidden).map(source).collect()))
}

fn resolver(mirror: &Mirror) -> Resolver {
    let store = mirror.store();
    Resolver::new(store.mirror, store.identifiers, store.full_texts)
}

fn part(
    resolver: &Resolver,
    sources: &Arc<ResolvedSources>,
    (repository, identifier): (&str, &str),
    (after, count_max): (Option<LinkCursor>, usize),
) -> Option<ItemLinks> {
    let named_max = usize::MAX;
    let request = LinksRequest { repository, identifier, names: None, after, count_max, named_max };
    runtime().block_on(resolver.links(sources, &request)).expect("all commits are known")
}

fn links(resolver: &Resolver, sources: &Arc<ResolvedSources>, item: (&str, &str)) -> ItemLinks {
    part(resolver, sources, item, (None, 100)).expect("the mirror has the item")
}

/// Citations as `field identifier: records`.
fn named(citations: &[Citation]) -> Vec<String> {
    let name = |citation: &Citation| {
        let identifier = citation.identifier.as_ref().map_or("", |identifier| identifier.value.as_str());
        let records: Vec<String> =
            citation.records.iter().map(|item| format!("{}/{}", item.repository, item.identifier)).collect();
        format!("{} {identifier}: {}", citation.field.name(), records.join(" "))
    };
    citations.iter().map(name).collect()
}

#[test]
fn citations_are_found_in_both_directions() {
    let mirror = mirror(&["x", "y"]);
    let cited = record("oai:x:1", &[("identifier", "10.1000/1"), ("isReferencedBy", "10.1000/3")]);
    let citing = [
        ("identifier", "10.1000/2"),
        ("references", "https://doi.org/10.1000/1"),
        ("references", "10.1000/unknown"),
        ("relation", "10.1000/3"),
    ];
    mirror.commit("x", "oai_dc", vec![cited], true);
    mirror.commit(
        "y",
        "oai_dc",
        vec![record("oai:y:2", &citing), record("oai:y:3", &[("identifier", "10.1000/3")])],
        true,
    );
    // The same item in another format is no second citation, and a record in its own format cites nothing of itself.
    mirror.commit(
        "y",
        "marc",
        vec![record("oai:y:2", &[("relation", "10.1000/1"), ("relation", "10.1000/2")])],
        true,
    );
    let (resolver, sources) = (resolver(&mirror), sources(&["x", "y"], &[]));
    let one = links(&resolver, &sources, ("x", "oai:x:1"));
    assert_eq!(named(&one.cites), Vec::<String>::new());
    assert_eq!(one.cited_by.len(), 2, "{one:?}");
    assert_eq!(named(&one.cited_by[..1]), ["isReferencedBy 10.1000/3: y/oai:y:3"]);
    assert_eq!(one.cited_by[1].records[0].identifier, "oai:y:2");
    assert_eq!(one.cited_by[1].records[0].title.as_deref(), Some("Title"));
    let two = links(&resolver, &sources, ("y", "oai:y:2"));
    let expected =
        ["references 10.1000/1: x/oai:x:1", "references 10.1000/unknown: ", "relation 10.1000/3: y/oai:y:3"];
    assert_eq!((named(&two.cites), two.cited_by.len()), (expected.map(str::to_owned).to_vec(), 0));
    // The other record states that this one cites it.
    let three = links(&resolver, &sources, ("y", "oai:y:3"));
    assert_eq!(named(&three.cites), ["isReferencedBy : x/oai:x:1"]);
    assert_eq!(named(&three.cited_by).len(), 1);
    assert_eq!(part(&resolver, &sources, ("y", "oai:y:none"), (None, 9)), None);
    assert_eq!(part(&resolver, &sources, ("none", "oai:x:1"), (None, 9)), None);
}

#[test]
fn links_follow_each_commit_and_a_restart() {
    let mirror = mirror(&["x", "y"]);
    mirror.commit("x", "oai_dc", vec![record("oai:x:1", &[("identifier", "10.1000/1")])], true);
    let (first, sources) = (resolver(&mirror), sources(&["x", "y"], &[]));
    let cited_by = |resolver: &Resolver| named(&links(resolver, &sources, ("x", "oai:x:1")).cited_by);
    assert!(cited_by(&first).is_empty());
    mirror.commit("y", "oai_dc", vec![record("oai:y:2", &[("references", "10.1000/1")])], true);
    for resolver in [&first, &resolver(&mirror)] {
        assert_eq!(cited_by(resolver), ["references : y/oai:y:2"]);
    }
    mirror.pass_time(10);
    mirror.commit("y", "oai_dc", vec![record("oai:y:2", &[("source", "10.1000/1")])], true);
    assert_eq!(cited_by(&first), ["source : y/oai:y:2"]);
    drop(first);
    let mirror = mirror.restart();
    let resolver = resolver(&mirror);
    assert_eq!(cited_by(&resolver), ["source : y/oai:y:2"]);
    mirror.commit("y", "oai_dc", vec![deleted("oai:y:2", &[])], true);
    assert!(cited_by(&resolver).is_empty());
    assert_eq!(part(&resolver, &sources, ("y", "oai:y:2"), (None, 9)), None, "it is deleted");
}

#[test]
fn a_work_that_many_cite_is_listed_in_parts() {
    let mirror = mirror(&["x", "y", "z"]);
    let identifying = [("identifier", "10.1000/1"), ("identifier", "arXiv:0704.0001")];
    mirror.commit("x", "oai_dc", vec![record("oai:x:1", &identifying)], true);
    // Each cites it by one of its identifiers or by both, and some in two formats.
    let citing = |id: &str, at: usize| {
        let fields = [("references", "10.1000/1"), ("references", "arXiv:0704.0001")];
        record(&format!("oai:{id}:{at:03}"), &fields[at % 3 / 2..at % 3 / 2 + 1 + usize::from(at % 3 == 1)])
    };
    for id in ["y", "z"] {
        mirror.commit(id, "oai_dc", (0..120).map(|at| citing(id, at)).collect(), true);
        mirror.commit(id, "marc", (60..90).map(|at| citing(id, at)).collect(), true);
    }
    let resolver = resolver(&mirror);
    // Those with full texts are read in smaller parts.
    for (has_full_texts, count_max) in
        [(false, 1), (false, 7), (false, 100), (false, 500), (true, 7), (true, 500)]
    {
        let of = |id: &str| ResolvedSource { id: id.to_owned(), has_full_texts, ..ResolvedSource::default() };
        let sources = Arc::new(ResolvedSources::new(["x", "y", "z"].map(of).into()));
        let (mut after, mut listed) = (None, Vec::new());
        loop {
            let part = part(&resolver, &sources, ("x", "oai:x:1"), (after, count_max)).expect("the item");
            assert!(part.cited_by.len() <= count_max);
            listed.extend(part.cited_by.iter().map(|citation| citation.records[0].identifier.clone()));
            after = part.next;
            if after.is_none() {
                break;
            }
        }
        let distinct: BTreeSet<&String> = listed.iter().collect();
        assert_eq!((listed.len(), distinct.len()), (240, 240), "{has_full_texts}, {count_max}");
    }
}

#[test]
fn hidden_repositories_are_no_links() {
    let mirror = mirror(&["x", "y"]);
    mirror.commit("x", "oai_dc", vec![record("oai:x:1", &[("identifier", "10.1000/1")])], true);
    let fields = [("identifier", "10.1000/2"), ("references", "10.1000/1")];
    mirror.commit("y", "oai_dc", vec![record("oai:y:2", &fields)], true);
    let resolver = resolver(&mirror);
    let hidden = sources(&["x"], &["y"]);
    assert!(links(&resolver, &hidden, ("x", "oai:x:1")).is_empty());
    // Its own records have links to those that are shown.
    assert_eq!(
        named(&links(&resolver, &hidden, ("y", "oai:y:2")).cites),
        ["references 10.1000/1: x/oai:x:1"]
    );
    assert_eq!(links(&resolver, &sources(&["x", "y"], &[]), ("x", "oai:x:1")).cited_by.len(), 1);
}

#[test]
fn duplicates_have_the_same_identifier_or_description() {
    let mirror = mirror(&["x", "y", "z"]);
    let described = [("title", "Ignored"), ("date", "2004-05"), ("creator", "Doe, Jane")];
    let with = |identifier: &str, more: &[(&str, &str)]| record(identifier, &[&described[..], more].concat());
    let whole = |identifier: &str, more: &[(&str, &str)]| {
        let record = with(identifier, more);
        let xml = String::from_utf8(record.bytes.to_vec()).expect("UTF-8");
        let xml = xml.replacen("Title", "A Study of Repositories", 1);
        let content_hash = content_hash(RecordStatus::Live, &[], &[xml.as_bytes()]);
        NewRecord { content_hash, bytes: xml.into(), ..record }
    };
    let (doi, isbn) = (("identifier", "10.1000/1"), ("identifier", "ISBN 3-16-148410-X"));
    mirror.commit("x", "oai_dc", vec![whole("oai:x:1", &[doi, isbn]), whole("oai:x:2", &[])], true);
    let of_y = vec![
        with("oai:y:doi", &[doi]),
        whole("oai:y:description", &[]),
        whole("oai:y:both", &[doi]),
        with("oai:y:isbn", &[isbn]),
        with("oai:y:citing", &[("relation", "10.1000/1")]),
    ];
    mirror.commit("y", "oai_dc", of_y, true);
    let (resolver, sources) = (resolver(&mirror), sources(&["x", "y", "z"], &[]));
    let found = links(&resolver, &sources, ("x", "oai:x:1")).same_as;
    let found: Vec<(&str, &str)> =
        found.iter().map(|same| (same.item.identifier.as_str(), same.same_by.name())).collect();
    assert_eq!(found, [("oai:y:both", "doi"), ("oai:y:description", "description"), ("oai:y:doi", "doi")]);
    let back = links(&resolver, &sources, ("y", "oai:y:description")).same_as;
    assert!(back.iter().all(|same| same.same_by == SameBy::Description && same.item.repository == "x"));
    assert_eq!(back.len(), 2);
}

/// A repository whose full texts count, or do not.
fn with_full_texts(id: &str, has_full_texts: bool) -> Arc<ResolvedSources> {
    let source = ResolvedSource { id: id.to_owned(), has_full_texts, ..ResolvedSource::default() };
    Arc::new(ResolvedSources::new(vec![source]))
}

fn put_full_text(
    resolver: &Resolver,
    sources: &Arc<ResolvedSources>,
    identifier: &str,
    dois: Option<&[&str]>,
) {
    let named = |doi: &&str| ("doi".to_owned(), (*doi).to_owned());
    let state = |dois: &[&str]| FullTextState::Read(dois.iter().map(named).collect());
    let text =
        dois.map(|dois| FullText { urls: vec!["http://x.example/1.pdf".to_owned()], state: state(dois) });
    runtime().block_on(resolver.put_full_text(sources, ("x", identifier), text)).expect("writable");
}

#[test]
fn full_texts_are_guesses_of_all_formats_at_all_times() {
    let mut mirror = mirror(&["x"]);
    let one = record("oai:x:1", &[("identifier", "doi:10.1000/1")]);
    mirror.commit("x", "oai_dc", vec![one, record("oai:x:2", &[("relation", "10.1000/other")])], true);
    mirror.commit("x", "marc", vec![record("oai:x:2", &[])], true);
    let on = with_full_texts("x", true);
    let mut resolver = resolver(&mirror);
    let cited_by = |resolver: &Resolver, sources: &Arc<ResolvedSources>| {
        named(&links(resolver, sources, ("x", "oai:x:1")).cited_by)
    };
    let guess = ["fullText : x/oai:x:2"];
    // The table knows the record already, or knows nothing of it yet.
    assert_eq!(cited_by(&resolver, &on), [""; 0]);
    put_full_text(&resolver, &on, "oai:x:2", Some(&["10.1000/1", "10.1000/other"]));
    assert_eq!(cited_by(&resolver, &on), guess);
    put_full_text(&resolver, &on, "oai:x:2", Some(&[]));
    assert_eq!(cited_by(&resolver, &on), [""; 0]);
    put_full_text(&resolver, &on, "oai:x:2", Some(&["10.1000/1", "10.1000/other"]));
    assert_eq!(cited_by(&resolver, &on), guess);
    let two = links(&resolver, &on, ("x", "oai:x:2"));
    assert_eq!(named(&two.cites), ["relation 10.1000/other: ", "fullText 10.1000/1: x/oai:x:1"]);
    assert_eq!(two.cites.iter().map(Citation::basis).collect::<Vec<_>>(), ["mentioned", "guess"]);
    // After a change of the record that is not followed yet, and in another process.
    mirror.pass_time(1);
    mirror.commit("x", "oai_dc", vec![record("oai:x:2", &[("title", "Another")])], false);
    put_full_text(&resolver, &on, "oai:x:2", Some(&["10.1000/1", "10.1000/2"]));
    assert_eq!(cited_by(&resolver, &on), guess);
    drop(resolver);
    mirror = mirror.restart();
    resolver = self::resolver(&mirror);
    put_full_text(&resolver, &on, "oai:x:1", Some(&["10.1000/1", "10.1000/2"]));
    assert_eq!(cited_by(&resolver, &on), guess, "a work does not cite itself");
    assert_eq!(named(&links(&resolver, &on, ("x", "oai:x:1")).cites), ["fullText 10.1000/2: "]);
    // A mapping turns them off and on, also for records that change meanwhile.
    let off = with_full_texts("x", false);
    assert_eq!(cited_by(&resolver, &off), [""; 0]);
    mirror.pass_time(1);
    mirror.commit("x", "oai_dc", vec![record("oai:x:2", &[("title", "A third one")])], false);
    assert_eq!(cited_by(&resolver, &off), [""; 0]);
    assert_eq!(cited_by(&resolver, &on), guess);
    // They are removed with the item.
    mirror.pass_time(1);
    mirror.commit("x", "oai_dc", vec![deleted("oai:x:2", &[])], false);
    mirror.commit("x", "marc", vec![deleted("oai:x:2", &[])], false);
    assert_eq!(cited_by(&resolver, &on), [""; 0]);
    put_full_text(&resolver, &on, "oai:x:2", None);
    assert_eq!(cited_by(&resolver, &on), [""; 0]);
}
