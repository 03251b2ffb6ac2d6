//! The repository index: a harvester that follows it learns of each repository, and misses no record.

use crate::fixtures::mirror::{
    Answered, Item, Mirror, ask, ask_once, damage_last_block, pages, runtime, segments,
};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::fetch;
use oaimend_mirror::repository_index::{
    IndexSettings, IndexedRepository, RepositoryKind, SCHEMA, index_repository, update_index,
};
use oaimend_mirror::view::{MirrorRepository, ViewOptions};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs, to_secs};
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::random::Random;
use std::collections::BTreeMap;
use std::process::Command;

const START_SECS: i64 = 1_700_000_000;
/// The mirror repeats changes of two hours for harvesters whose clock is wrong. This is longer.
const REPEATED_SECS: i64 = 10_000;

fn settings(repositories: &[(&str, RepositoryKind)]) -> IndexSettings {
    let repository = |(name, kind): &(&str, RepositoryKind)| IndexedRepository {
        base_url: base_url(name),
        name: format!("{name} & more"),
        kind: *kind,
        members: Vec::new(),
    };
    IndexSettings {
        base_url: "http://proxy.example/_index".to_owned(),
        repository_name: "Repositories <here>".to_owned(),
        admin_emails: Vec::new(),
        repositories: repositories.iter().map(repository).collect(),
    }
}

fn base_url(name: &str) -> String {
    format!("http://proxy.example/{name}")
}

/// The index after an update.
fn index(mirror: &Mirror, repositories: &[(&str, RepositoryKind)]) -> MirrorRepository {
    runtime().block_on(update_index(&mirror.stores(), &settings(repositories))).expect("it is stored");
    index_repository(mirror.stores(), ViewOptions { page_records_max: 3, ..ViewOptions::default() })
}

#[track_caller]
fn list(index: &MirrorRepository, arguments: &str) -> Vec<Item> {
    let pages = pages(index, &format!("verb=ListRecords{arguments}"), || {});
    let items = pages.iter().flat_map(|page| {
        if page.kind() != "noRecordsMatch" {
            page.valid(Strictness::Schema);
        }
        page.items()
    });
    items.collect()
}

fn states(items: &[Item]) -> Vec<(&str, bool)> {
    let name = |identifier: &'_ str| identifier.strip_prefix("http://proxy.example/").map(str::len);
    let shown = items.iter().map(|item| {
        let name = name(&item.identifier).expect("a base URL of this server");
        (&item.identifier[item.identifier.len() - name..], item.is_deleted)
    });
    shown.collect()
}

#[test]
fn additions_changes_and_removals_are_seen_by_incremental_harvesters() {
    use RepositoryKind::{Live, Mirrored, View};
    let mirror = Mirror::new(START_SECS);
    let all = "&metadataPrefix=INDEX";
    let since = |mirror: &Mirror| format!("{all}&from={}", mirror.now());
    assert_eq!(ask(&index(&mirror, &[]), "verb=ListRecords&metadataPrefix=INDEX").kind(), "noRecordsMatch");
    let served = [("a", Live), ("b", Mirrored), ("_view/c", View), ("d", Live)];
    let first = index(&mirror, &served);
    mirror.pass_time(10);
    let listed = list(&first, all);
    assert_eq!(states(&listed), [("a", false), ("b", false), ("_view/c", false), ("d", false)]);
    assert_eq!(listed[1].set_specs, ["dynamic", "kind:mirrored"]);
    let body = ask_once(&first, "verb=GetRecord&metadataPrefix=INDEX&identifier=http://proxy.example/b").body;
    let created = format!("<creationTime>{}</creationTime><kind>mirrored</kind>", listed[1].datestamp);
    assert!(body.contains(&created) && body.contains("<name>b &amp; more</name>"), "{body}");
    assert_eq!(list(&first, "&metadataPrefix=oai_dc")[1].title, "b & more");
    ask_once(&first, "verb=Identify").valid(Strictness::Schema);
    let formats = ask_once(&first, "verb=ListMetadataFormats");
    formats.valid(Strictness::Schema);
    assert!(
        formats.body.contains("<schema>http://proxy.example/_index/schema.xsd</schema>"),
        "{}",
        formats.body
    );
    assert_eq!(states(&list(&first, &format!("{all}&set=kind:live"))), [("a", false), ("d", false)]);
    assert_eq!(ask_once(&first, "verb=ListSets").body.matches("<setSpec>").count(), 9);

    // Nothing has changed: nothing is stored, also after a restart.
    let mirror = mirror.restart();
    mirror.pass_time(REPEATED_SECS);
    let from = since(&mirror);
    assert_eq!(states(&list(&index(&mirror, &served), &from)), []);
    let second = index(&mirror, &[("b", Live), ("d", Live), ("e", Live)]);
    mirror.pass_time(10);
    let mut changed = list(&second, &from);
    changed.sort_by(|one, other| one.identifier.cmp(&other.identifier));
    assert_eq!(states(&changed), [("_view/c", true), ("a", true), ("b", false), ("e", false)]);
    assert!(changed.iter().all(|item| item.datestamp > listed[1].datestamp), "{changed:?}");
    // A removed repository leaves its sets, too.
    for (set, removed) in [("kind:live", "a"), ("kind:view", "_view/c"), ("dynamic", "a")] {
        let of_set = list(&second, &format!("{from}&set={set}"));
        assert!(states(&of_set).contains(&(removed, true)), "{set}: {of_set:?}");
    }
    // One that returns has a new stamp.
    mirror.pass_time(REPEATED_SECS);
    let from = since(&mirror);
    let third = index(&mirror, &[("a", Live), ("b", Live), ("d", Live), ("e", Live)]);
    mirror.pass_time(10);
    assert_eq!(states(&list(&third, &from)), [("a", false)]);
}

#[test]
fn an_index_that_was_forgotten_is_stored_again() {
    let mirror = Mirror::new(START_SECS);
    let served = [("a", RepositoryKind::Live)];
    index(&mirror, &served);
    mirror.forget("_index");
    let again = index(&mirror, &served);
    mirror.pass_time(10);
    assert_eq!(states(&list(&again, "&metadataPrefix=INDEX")), [("a", false)]);
}

/// A repository whose records change, as a harvester sees it.
#[derive(Clone, Debug)]
struct Served {
    kind: RepositoryKind,
    /// Each record with its datestamp, in seconds, and its version.
    records: BTreeMap<u64, (i64, u64)>,
}

/// Repositories that come, change and go, and a harvester that follows the recipe of the paper.
struct Recipe {
    random: Random,
    mirror: Mirror,
    now_secs: i64,
    versions: u64,
    served: BTreeMap<&'static str, Served>,
    harvested_until: Option<i64>,
    copy: BTreeMap<String, BTreeMap<u64, u64>>,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

impl Recipe {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            mirror: Mirror::new(START_SECS),
            now_secs: START_SECS,
            versions: 0,
            served: BTreeMap::new(),
            harvested_until: None,
            copy: BTreeMap::new(),
        }
    }

    fn pass_time(&mut self, secs: i64) {
        self.now_secs += secs;
        self.mirror.pass_time(secs);
    }

    fn change(&mut self) {
        let name = NAMES[self.random.below(NAMES.len())];
        let kind = [RepositoryKind::Live, RepositoryKind::Mirrored][self.random.below(2)];
        match self.random.below(6) {
            0 => drop(self.served.remove(name)),
            1 => {
                // A new repository has records from before.
                let old = (self.now_secs - 1_000, self.versions);
                let new = || Served { kind, records: BTreeMap::from([(9, old)]) };
                self.served.entry(name).or_insert_with(new).kind = kind;
            }
            _ => {
                self.versions += 1;
                let number = self.random.below(4) as u64;
                if let Some(served) = self.served.get_mut(name) {
                    served.records.insert(number, (self.now_secs, self.versions));
                }
            }
        }
    }

    fn change_for_a_while(&mut self, changes_max: usize) {
        for _ in 0..self.random.below(changes_max + 1) {
            self.change();
            let secs = self.random.below(3) as i64;
            self.pass_time(secs);
        }
    }

    fn index(&self) -> MirrorRepository {
        let served: Vec<_> = self.served.iter().map(|(name, served)| (*name, served.kind)).collect();
        index(&self.mirror, &served)
    }

    /// One turn of the recipe, with `until` a second before the present: this second may bring changes still. The world
    /// changes between the time of the harvest and its requests.
    fn harvest(&mut self, changes_max: usize) {
        let until_secs = self.now_secs - 1;
        let until = from_secs(UnixSecs(until_secs), Granularity::Second);
        self.change_for_a_while(changes_max);
        let query = format!("verb=ListRecords&metadataPrefix=INDEX&until={until}");
        let listed = pages(&self.index(), &query, || {});
        for item in listed.iter().flat_map(Answered::items) {
            let name = item.identifier.rsplit('/').next().unwrap_or_default();
            if item.is_deleted {
                self.copy.remove(name);
                continue;
            }
            // One that was removed since fails, and its deleted record follows.
            let Some(served) = self.served.get(name) else { continue };
            let created_secs = to_secs(&item.datestamp).expect("a datestamp").0;
            let known_secs = self.harvested_until.filter(|until_secs| created_secs <= *until_secs);
            let copy = self.copy.entry(name.to_owned()).or_default();
            if known_secs.is_none() {
                copy.clear();
            }
            for (number, (datestamp, version)) in &served.records {
                if (known_secs.unwrap_or(i64::MIN)..=until_secs).contains(datestamp) {
                    copy.insert(*number, *version);
                }
            }
        }
        self.harvested_until = Some(until_secs);
    }

    fn truth(&self) -> BTreeMap<String, BTreeMap<u64, u64>> {
        let versions = |served: &Served| {
            served.records.iter().map(|(number, (_, version))| (*number, *version)).collect()
        };
        self.served.iter().map(|(name, served)| ((*name).to_owned(), versions(served))).collect()
    }
}

#[test]
fn the_recipe_of_the_paper_misses_nothing() {
    for seed in 0..20 {
        let mut recipe = Recipe::new(seed);
        for _ in 0..30 {
            recipe.change_for_a_while(5);
            recipe.harvest(2);
        }
        // A quiet end: the index knows all changes, and they are in the past.
        recipe.index();
        for _ in 0..2 {
            recipe.pass_time(10);
            recipe.harvest(0);
        }
        assert_eq!(recipe.copy, recipe.truth(), "seed {seed}");
    }
}

#[test]
fn a_server_lists_its_repositories() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let write = |id: &str, rest: &str| {
        let mapping = format!("base_url = \"http://127.0.0.1:9/{id}\"\n{rest}");
        std::fs::write(folder.path().join(format!("mappings/{id}.toml")), mapping).expect("writable");
    };
    write("a", "");
    write("b", "[mirror]\ninterval_secs = 600000\n");
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    let list =
        |program: &Program| fetch(program.address(), "/_index?verb=ListRecords&metadataPrefix=INDEX").text();
    let body = list(&program);
    let base_url = format!("http://{}", program.address());
    for (id, kind) in [("a", "live"), ("b", "mirrored")] {
        let expected = format!("<baseURL>{base_url}/{id}</baseURL>");
        assert!(body.contains(&expected) && body.contains(&format!("<kind>{kind}</kind>")), "{body}");
    }
    let schema = fetch(program.address(), "/_index/schema.xsd");
    assert_eq!((schema.status, schema.text().as_str()), (200, SCHEMA));
    std::fs::remove_file(folder.path().join("mappings/a.toml")).expect("it exists");
    program.signal("-HUP");
    program.line("mappings read again");
    let body = list(&program);
    let header = body.find("<header status=\"deleted\">").expect("a deleted record");
    assert!(
        body[header..].starts_with(&format!("<header status=\"deleted\"><identifier>{base_url}/a<")),
        "{body}"
    );
}

#[test]
fn damaged_records_are_stored_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let program =
        Program::start(folder.path(), &["--map=a=http://127.0.0.1:9/a", "--map=b=http://127.0.0.1:9/b"]);
    let get = |prefix: &str| {
        let identifier = format!("http://{}/b", program.address());
        let query = format!("verb=GetRecord&metadataPrefix={prefix}&identifier={identifier}");
        fetch(program.address(), &format!("/_index?{query}"))
    };
    assert_eq!(get("INDEX").status, 200);
    segments(&folder.path().join("data/mirror")).iter().for_each(|segment| damage_last_block(segment));
    assert_eq!(get("INDEX").status, 503, "the request meets the damage");
    for prefix in ["INDEX", "oai_dc"] {
        let again = get(prefix);
        assert!(again.status == 200 && again.text().contains("/b</"), "{prefix}: {}", again.text());
    }
}

/// The rules of the official validator, and the own schema.
#[test]
fn the_index_passes_the_check_of_repositories() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.xsd"), SCHEMA).expect("writable");
    let maps: Vec<String> =
        (0..120).map(|number| format!("--map=r{number}=http://127.0.0.1:9/{number}")).collect();
    let program = Program::run(serve(folder.path()).args(["--admin", "off"]).args(&maps));
    let url = format!("http://{}/_index", program.address());
    let mut check = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    check.args(["check", "--format", "json", &url]);
    let has_xmllint = Command::new("xmllint").arg("--version").output().is_ok();
    if has_xmllint {
        check.arg("--schema-dir").arg(folder.path());
    }
    let output = check.output().expect("the program runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rules = report["rules"].as_array().expect("a list of rules");
    let failed: Vec<_> = rules.iter().filter(|rule| rule["verdict"] == "fails").collect();
    assert_eq!((output.status.code(), &failed), (Some(0), &Vec::new()), "{report:#}");
    let schema = rules.iter().find(|rule| rule["rule"] == "payload-schema").expect("the rule");
    assert!(!has_xmllint || schema["verdict"] == "holds", "{schema:#}");
}
