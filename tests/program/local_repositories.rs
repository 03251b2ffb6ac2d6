//! Local repositories: what is written is harvested, whole and in order, and by each harvester that comes later.

use crate::fixtures::mirror::{Answered, Item, Mirror, ask, ask_once, live, pages, runtime, source};
use oaimend_deposit::{
    Condition, Deposit, DepositError, EntityTag, FormatSettings, LocalRepository, LocalSettings, Payload,
    Stored, WriteTerms, read_list,
};
use oaimend_mirror::view::{MirrorRepository, ViewOptions};
use oaimend_store::IDENTIFIER_BYTES_MAX;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::random::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;

const START_SECS: i64 = 1_700_000_000;
const SEEDS: u64 = 12;
const ANY: WriteTerms<'static> = WriteTerms { condition: &Condition::None, may_write: None };

/// A mirror with a local repository.
struct World {
    mirror: Mirror,
    settings: LocalSettings,
    turn: Arc<Mutex<()>>,
}

impl World {
    fn new(dc_required: bool) -> Self {
        let settings = LocalSettings {
            id: "x".to_owned(),
            repository_name: "Letters & <maps>".to_owned(),
            base_url: "http://proxy.example/x".to_owned(),
            dc_required,
            ..LocalSettings::default()
        };
        Self { mirror: Mirror::new(START_SECS), settings, turn: Arc::default() }
    }

    fn repository(&self) -> LocalRepository {
        let now_secs = self.mirror.clock().now_secs();
        let settings = Arc::new(self.settings.clone());
        let repository =
            LocalRepository::new(self.mirror.stores(), settings, now_secs, Arc::clone(&self.turn));
        runtime().block_on(repository.describe()).expect("it is stored");
        repository
    }

    fn view(&self) -> MirrorRepository {
        self.repository();
        let options = ViewOptions { page_records_max: 3, ..ViewOptions::default() };
        MirrorRepository::new(self.mirror.stores(), options, source("x"))
    }

    fn put(
        &self,
        prefix: &str,
        deposits: Vec<Deposit>,
        terms: WriteTerms<'_>,
    ) -> Result<Stored, DepositError> {
        runtime().block_on(self.repository().put(prefix, deposits, terms))
    }

    fn delete(&self, prefix: Option<&str>, identifier: &str) -> Result<Stored, DepositError> {
        runtime().block_on(self.repository().delete(prefix, identifier, ANY))
    }

    fn set_sets(&self, prefix: &str, identifier: &str, sets: &[&str]) -> Result<Stored, DepositError> {
        runtime().block_on(self.repository().set_sets(prefix, identifier, &owned(sets), ANY))
    }

    /// The live titles by their identifiers.
    fn titles(&self, prefix: &str) -> BTreeMap<String, String> {
        let listed = list(&self.view(), &format!("&metadataPrefix={prefix}"));
        let live = listed.into_iter().filter(|item| !item.is_deleted);
        live.map(|item| (item.identifier, item.title)).collect()
    }
}

#[track_caller]
fn list(view: &MirrorRepository, arguments: &str) -> Vec<Item> {
    let pages = pages(view, &format!("verb=ListRecords{arguments}"), || {});
    let items = pages.iter().flat_map(|page| {
        if page.kind() != "noRecordsMatch" {
            page.valid(Strictness::Schema);
        }
        page.items()
    });
    items.collect()
}

fn owned(sets: &[&str]) -> Vec<String> {
    sets.iter().map(|set| (*set).to_owned()).collect()
}

fn dublin_core(title: &str) -> String {
    format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>{title}</dc:title></oai_dc:dc>"
    )
}

fn mods(title: &str) -> String {
    format!(
        "<mods xmlns=\"http://www.loc.gov/mods/v3\" \
         xsi:schemaLocation=\"http://www.loc.gov/mods/v3 http://www.loc.gov/standards/mods/v3/mods-3-8.xsd\">\
         <titleInfo><title>{title}</title></titleInfo></mods>"
    )
}

#[track_caller]
fn deposit(identifier: &str, sets: &[&str], metadata: &str) -> Deposit {
    let payload = Payload::read(metadata.as_bytes()).expect("correct metadata");
    Deposit::new(identifier, &owned(sets), Some(payload)).expect("a legal record")
}

/// A harvester that repeats its last responseDate as `from`.
#[derive(Default)]
struct Copy {
    from: Option<String>,
    /// The title of each live record, with its sets.
    records: BTreeMap<String, (String, Vec<String>)>,
}

impl Copy {
    fn harvest(&mut self, view: &MirrorRepository, prefix: &str) {
        let from = self.from.as_ref().map_or_else(String::new, |from| format!("&from={from}"));
        let pages = pages(view, &format!("verb=ListRecords&metadataPrefix={prefix}{from}"), || {});
        if pages[0].kind() == "cannotDisseminateFormat" {
            return;
        }
        for item in pages.iter().flat_map(Answered::items) {
            if item.is_deleted {
                self.records.remove(&item.identifier);
            } else {
                self.records.insert(item.identifier, (item.title, item.set_specs));
            }
        }
        let body = &pages[0].body;
        let date = body.split("<responseDate>").nth(1).and_then(|rest| rest.split('<').next());
        self.from = date.map(str::to_owned);
    }
}

#[test]
fn sets_have_the_names_of_the_settings() {
    let mut world = World::new(true);
    let name = |set: &str, name: &str| (set.to_owned(), name.to_owned());
    world.settings.set_names = [name("a", "Letters & maps"), name("a:old", "Old ones")].into();
    let sets = |world: &World| {
        let body = ask_once(&world.view(), "verb=ListSets").body;
        let of_set = body.split("<setSpec>").skip(1);
        let sets = of_set.filter_map(|set| {
            let (spec, rest) = set.split_once("</setSpec>")?;
            Some((spec.to_owned(), rest.split("setName>").nth(1)?.split('<').next()?.to_owned()))
        });
        sets.collect::<Vec<_>>()
    };
    assert_eq!(sets(&world), [name("a", "Letters &amp; maps"), name("a:old", "Old ones")]);
    let empty = ask_once(&world.view(), "verb=ListRecords&metadataPrefix=oai_dc&set=a");
    assert_eq!(empty.kind(), "noRecordsMatch", "{}", empty.body);
    world
        .put("oai_dc", vec![deposit("oai:x:1", &["a:old", "b"], &dublin_core("One"))], ANY)
        .expect("a record");
    world.settings.set_names.remove("a:old");
    let expected = [name("a", "Letters &amp; maps"), name("a:old", "a:old"), name("b", "b")];
    assert_eq!(sets(&world), expected);
    assert_eq!(list(&world.view(), "&metadataPrefix=oai_dc&set=a").len(), 1);
}

#[test]
fn harvesters_get_what_writers_have_written() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut world = World::new(false);
        let mut truth: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        let mut copy = Copy::default();
        for step in 0..60 {
            let identifier = format!("oai:x.example:{}", random.below(8));
            let mut sets: Vec<&str> = Vec::from(["a", "a:b", "c"]);
            sets.retain(|_set| random.chance(40));
            let title = format!("Sea {step} & more");
            match random.below(10) {
                0..5 => {
                    let record = deposit(&identifier, &sets, &dublin_core(&title.replace('&', "&amp;")));
                    world.put("oai_dc", vec![record], ANY).expect("a record");
                    truth.insert(identifier, (title, owned(&sets)));
                }
                5 => {
                    // The last one of two counts.
                    let batch: Vec<Deposit> = (0..4)
                        .map(|number| {
                            let identifier = format!("oai:x.example:{}", number % 3);
                            truth.insert(identifier.clone(), (format!("Batch {step}.{number}"), Vec::new()));
                            deposit(&identifier, &[], &dublin_core(&format!("Batch {step}.{number}")))
                        })
                        .collect();
                    world.put("oai_dc", batch, ANY).expect("a batch");
                }
                6 => match world.set_sets("oai_dc", &identifier, &sets) {
                    Ok(_) => truth.get_mut(&identifier).expect("a live record").1 = owned(&sets),
                    Err(error) => assert!(!truth.contains_key(&identifier), "seed {seed}: {error}"),
                },
                7 => match world.delete(Some("oai_dc"), &identifier) {
                    Ok(_) => assert!(truth.remove(&identifier).is_some(), "seed {seed}"),
                    Err(error) => assert!(!truth.contains_key(&identifier), "seed {seed}: {error}"),
                },
                8 => world.mirror = world.mirror.restart(),
                _ => copy.harvest(&world.view(), "oai_dc"),
            }
            world.mirror.pass_time(random.below(3) as i64);
        }
        world.mirror.pass_time(2);
        copy.harvest(&world.view(), "oai_dc");
        assert_eq!(copy.records, truth, "seed {seed}");
        let mut later = Copy::default();
        later.harvest(&world.view(), "oai_dc");
        assert_eq!(later.records, truth, "seed {seed}");
    }
}

#[test]
fn a_repository_without_records_is_whole() {
    let world = World::new(true);
    let view = world.view();
    let identify = ask_once(&view, "verb=Identify");
    identify.valid(Strictness::Schema);
    for expected in
        ["Letters &amp; &lt;maps&gt;", ">persistent<", ">YYYY-MM-DDThh:mm:ssZ<", ">postmaster@proxy.example<"]
    {
        assert!(identify.body.contains(expected), "{expected}: {}", identify.body);
    }
    let formats = ask_once(&view, "verb=ListMetadataFormats");
    formats.valid(Strictness::Schema);
    assert_eq!(formats.body.matches("<metadataPrefix>").count(), 1);
    assert_eq!(ask(&view, "verb=ListRecords&metadataPrefix=oai_dc").kind(), "noRecordsMatch");
    assert_eq!(ask(&view, "verb=ListRecords&metadataPrefix=mods").kind(), "cannotDisseminateFormat");
}

#[test]
fn the_common_format_is_made_of_others_and_never_replaces_a_written_one() {
    let world = World::new(true);
    let write = |prefix: &str, identifier: &str, metadata: &str| {
        world.put(prefix, vec![deposit(identifier, &["a"], metadata)], ANY).map(|_| ())
    };
    let titles = |expected: &[(&str, &str)]| {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(name, title)| ((*name).to_owned(), (*title).to_owned())).collect();
        assert_eq!(world.titles("oai_dc"), expected);
        world.mirror.pass_time(1);
    };
    write("mods", "oai:x.example:1", &mods("Sea")).expect("a crosswalk makes oai_dc");
    titles(&[("oai:x.example:1", "Sea")]);
    write("mods", "oai:x.example:1", &mods("Sea and land")).expect("a record");
    titles(&[("oai:x.example:1", "Sea and land")]);
    write("oai_dc", "oai:x.example:1", &dublin_core("By hand")).expect("a record");
    write("mods", "oai:x.example:1", &mods("Land")).expect("a record");
    titles(&[("oai:x.example:1", "By hand")]);
    let refused = world.delete(Some("oai_dc"), "oai:x.example:1").expect_err("the item needs it");
    assert!(matches!(refused, DepositError::Unfit(_)), "{refused}");
    let refused =
        world.put("oai_dc", vec![Deposit::deleted("oai:x.example:1")], ANY).expect_err("in a list, too");
    assert!(matches!(refused, DepositError::Unfit(_)), "{refused}");
    world.delete(Some("mods"), "oai:x.example:1").expect("a record");
    titles(&[("oai:x.example:1", "By hand")]);
    write("mods", "oai:x.example:2", &mods("Made")).expect("a record");
    // Nobody has written the other one.
    world.delete(Some("mods"), "oai:x.example:2").expect("a record");
    titles(&[("oai:x.example:1", "By hand")]);
    let unknown = "<a xmlns=\"urn:x\" xsi:schemaLocation=\"urn:x http://x.example/x.xsd\"/>";
    let refused = write("other", "oai:x.example:3", unknown).expect_err("no crosswalk reads it");
    assert!(refused.to_string().contains("no crosswalk makes it of other"), "{refused}");
    assert_eq!(ask(&world.view(), "verb=ListRecords&metadataPrefix=other").kind(), "cannotDisseminateFormat");
    assert_eq!(
        ask(&world.view(), "verb=ListMetadataFormats&identifier=oai:nobody.example:1").kind(),
        "idDoesNotExist"
    );
    // Another format that can be read gives oai_dc in its place.
    write("mods", "oai:x.example:4", &mods("Of MODS")).expect("a record");
    write("mods2", "oai:x.example:4", &mods("Of the other")).expect("a record");
    titles(&[("oai:x.example:1", "By hand"), ("oai:x.example:4", "Of MODS")]);
    world.delete(Some("mods"), "oai:x.example:4").expect("a record");
    titles(&[("oai:x.example:1", "By hand"), ("oai:x.example:4", "Of the other")]);
    world.delete(None, "oai:x.example:4").expect("an item");
    write("oai_dc", "oai:x.example:3", &dublin_core("First")).expect("a record");
    write("other", "oai:x.example:3", unknown).expect("it has oai_dc");
    world.delete(None, "oai:x.example:3").expect("an item");
    titles(&[("oai:x.example:1", "By hand")]);
    let left = list(&world.view(), "&metadataPrefix=other");
    assert!(left.len() == 1 && left[0].is_deleted, "{left:?}");
}

#[test]
fn formats_are_known_from_their_first_records() {
    let mut world = World::new(false);
    let plain = "<a xmlns=\"urn:x\"/>";
    let write = |world: &World, prefix: &str, metadata: &str| {
        world.put(prefix, vec![deposit("oai:x.example:1", &[], metadata)], ANY).map(|_| ())
    };
    let problem = |world: &World, prefix: &str, metadata: &str| {
        write(world, prefix, metadata).expect_err("it is refused").to_string()
    };
    assert!(problem(&world, "x", plain).contains("xsi:schemaLocation"));
    assert!(problem(&world, "a:b", plain).contains("is not a metadataPrefix"));
    write(&world, "x", "<a xmlns=\"urn:x\" xsi:schemaLocation=\"urn:y http://y.example/y.xsd urn:x http://x.example/x.xsd\"/>")
        .expect("a record");
    write(&world, "x", plain).expect("the format is known");
    assert!(problem(&world, "x", "<a xmlns=\"urn:y\"/>").contains("has the namespace urn:y"));
    let settings =
        FormatSettings { schema: "http://y.example/y.xsd".to_owned(), namespace: "urn:y".to_owned() };
    world.settings.formats = BTreeMap::from([("y".to_owned(), settings)]);
    write(&world, "y", "<a xmlns=\"urn:y\"/>").expect("the settings describe it");
    let formats = ask_once(&world.view(), "verb=ListMetadataFormats").body;
    assert!(formats.contains("<schema>http://x.example/x.xsd</schema>"), "{formats}");
    assert!(formats.contains("<metadataNamespace>urn:y</metadataNamespace>"), "{formats}");
}

#[test]
fn a_condition_that_does_not_hold_stores_nothing() {
    let world = World::new(false);
    let put = |title: &str, condition: &Condition| {
        let terms = WriteTerms { condition, may_write: None };
        world.put("oai_dc", vec![deposit("oai:x.example:1", &[], &dublin_core(title))], terms)
    };
    let is_refused = |done: Result<Stored, DepositError>| matches!(done, Err(DepositError::Changed(_)));
    assert!(is_refused(put("0", &Condition::Exists)));
    assert!(world.titles("oai_dc").is_empty());
    let first = put("1", &Condition::IsNew).expect("a new record");
    assert!(first.is_new);
    let tag = first.tag.expect("one record").to_string();
    assert!(is_refused(put("2", &Condition::IsNew)));
    // The tag changes in one second.
    let second = put("2", &Condition::Matches(vec![tag.clone()])).expect("the known record");
    assert!(!second.is_new && second.tag.map(|tag| tag.to_string()) != Some(tag.clone()));
    assert!(is_refused(put("3", &Condition::Matches(vec![tag]))));
    assert_eq!(world.titles("oai_dc").into_values().collect::<Vec<_>>(), ["2"]);
    // The same content again is no change, and keeps its tag.
    let again = put("2", &Condition::None).expect("a record");
    assert_eq!((again.changed, again.tag), (0, second.tag));
}

/// Its element may declare the namespaces of its content.
#[test]
fn the_sets_of_a_harvested_record_are_not_changed_in_place() {
    let world = World::new(false);
    world.repository();
    world.mirror.commit("x", "oai_dc", vec![live("oai:x.example:1", &["a"], "Sea")], true);
    let refused = world.set_sets("oai_dc", "oai:x.example:1", &["b"]).expect_err("it was harvested");
    assert!(matches!(refused, DepositError::Unfit(_)), "{refused}");
    world
        .put("oai_dc", vec![deposit("oai:x.example:1", &["b"], &dublin_core("Land"))], ANY)
        .expect("a record");
    world.set_sets("oai_dc", "oai:x.example:1", &["c"]).expect("it was written here");
}

#[test]
fn two_writers_at_once_lose_nothing() {
    let world = World::new(false);
    let first = deposit("oai:x.example:1", &[], &dublin_core("0"));
    world.put("oai_dc", vec![first], ANY).expect("a record");
    let count = |repository: LocalRepository| async move {
        let mut refused = 0;
        for _ in 0..25 {
            loop {
                let stored = repository.record("oai_dc", "oai:x.example:1").await.expect("readable");
                let stored = stored.expect("a record");
                let text = String::from_utf8_lossy(&stored.bytes).into_owned();
                let title = text.split("<dc:title>").nth(1).and_then(|rest| rest.split('<').next());
                let number: u32 = title.and_then(|title| title.parse().ok()).expect("a number");
                let next = deposit("oai:x.example:1", &[], &dublin_core(&(number + 1).to_string()));
                let condition = Condition::Matches(vec![EntityTag::of(&stored).to_string()]);
                let terms = WriteTerms { condition: &condition, may_write: None };
                match repository.put("oai_dc", vec![next], terms).await {
                    Ok(_) => break,
                    Err(DepositError::Changed(_)) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        refused
    };
    runtime().block_on(async {
        let tasks = [(); 4].map(|()| tokio::spawn(count(world.repository_again())));
        for task in tasks {
            task.await.expect("it counts");
        }
    });
    assert_eq!(world.titles("oai_dc").into_values().collect::<Vec<_>>(), ["100"]);
}

impl World {
    /// The repository without its description, from any thread.
    fn repository_again(&self) -> LocalRepository {
        let now_secs = self.mirror.clock().now_secs();
        let settings = Arc::new(self.settings.clone());
        LocalRepository::new(self.mirror.stores(), settings, now_secs, Arc::clone(&self.turn))
    }
}

#[test]
fn a_writer_of_some_sets_changes_no_other_record() {
    let world = World::new(false);
    let of_others = deposit("oai:x.example:1", &["a", "b"], &dublin_core("Sea"));
    world.put("oai_dc", vec![of_others], ANY).expect("a record");
    let may_write = |sets: &[String]| !sets.is_empty() && sets.iter().all(|set| set == "a");
    let terms = WriteTerms { condition: &Condition::None, may_write: Some(&may_write) };
    let put = |identifier: &str, sets: &[&str]| {
        world.put("oai_dc", vec![deposit(identifier, sets, &dublin_core("Land"))], terms)
    };
    let is_refused = |done: Result<Stored, DepositError>| matches!(done, Err(DepositError::Forbidden(_)));
    world
        .put("oai_dc", vec![deposit("oai:x.example:3", &["b"], &dublin_core("Gone"))], ANY)
        .expect("a record");
    world.delete(None, "oai:x.example:3").expect("a record");
    assert!(is_refused(put("oai:x.example:3", &["a"])), "the deleted record is in b");
    assert!(is_refused(put("oai:x.example:1", &["a"])), "the record is in b, too");
    assert!(is_refused(put("oai:x.example:2", &["b"])));
    assert!(is_refused(put("oai:x.example:2", &[])));
    put("oai:x.example:2", &["a"]).expect("its own record");
    let repository = world.repository();
    let delete = runtime().block_on(repository.delete(None, "oai:x.example:1", terms));
    let take = runtime().block_on(repository.set_sets("oai_dc", "oai:x.example:1", &owned(&["a"]), terms));
    let give = runtime().block_on(repository.set_sets("oai_dc", "oai:x.example:2", &owned(&["b"]), terms));
    assert!(is_refused(delete) && is_refused(take) && is_refused(give));
    assert_eq!(world.titles("oai_dc").into_values().collect::<Vec<_>>(), ["Sea", "Land"]);
}

#[test]
fn an_identifier_belongs_to_one_repository() {
    let mut world = World::new(false);
    let other = LocalSettings { id: "y".to_owned(), ..world.settings.clone() };
    let put = |world: &mut World, settings: &LocalSettings, identifier: &str| {
        world.settings = settings.clone();
        world.put("oai_dc", vec![deposit(identifier, &[], &dublin_core("Sea"))], ANY)
    };
    put(&mut world, &other, "x:0").expect("a record");
    let settings = LocalSettings { id: "x".to_owned(), ..other.clone() };
    match put(&mut world, &settings, "x:0") {
        Err(DepositError::Foreign { repository, .. }) => assert_eq!(repository, "y"),
        other => panic!("{other:?}"),
    }
    let foreign = LocalSettings { foreign_identifiers: true, ..settings.clone() };
    put(&mut world, &foreign, "x:0").expect("allowed");
    put(&mut world, &settings, "x:0").expect("its own record since");
    put(&mut world, &other, "x:1").expect("a record");
    world.settings = settings.clone();
    let of_others = world.put("oai_dc", vec![Deposit::deleted("x:1")], ANY);
    assert!(matches!(of_others, Err(DepositError::Foreign { .. })), "a deletion of another record");
    world.put("oai_dc", vec![Deposit::deleted("x:0")], ANY).expect("its own record");
    assert!(
        matches!(put(&mut world, &settings, "x:0"), Err(DepositError::Foreign { .. })),
        "it is deleted here"
    );
}

#[test]
fn a_list_of_records_is_stored_whole_or_not_at_all() {
    let world = World::new(false);
    let record = |number: usize, metadata: &str| {
        format!(
            "<record><header><identifier>oai:x.example:{number}</identifier><datestamp>2020-01-01</datestamp>\
             <setSpec>a</setSpec></header><metadata>{metadata}</metadata></record>"
        )
    };
    let list_of = |records: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:d=\"urn:declared-outside\">\n\
             <responseDate>2020-01-01T00:00:00Z</responseDate><request>http://x.example/oai</request>\n\
             <ListRecords>\n{records}\n</ListRecords></OAI-PMH>"
        )
    };
    let deleted = "<record><header status=\"deleted\"><identifier>oai:x.example:9</identifier>\
                   <datestamp>2020-01-01</datestamp></header></record>";
    let good =
        list_of(&format!("{}{}{deleted}", record(1, &dublin_core("Sea")), record(2, &dublin_core("Land"))));
    let deposits = read_list(good.as_bytes()).expect("a list");
    assert_eq!(world.put("oai_dc", deposits, ANY).expect("a list").changed, 3);
    assert_eq!(world.titles("oai_dc").into_values().collect::<Vec<_>>(), ["Sea", "Land"]);
    let of_set = list(&world.view(), "&metadataPrefix=oai_dc&set=a");
    assert!(of_set.iter().all(|item| item.set_specs == ["a"]), "{of_set:?}");
    for (bad, line, problem) in [
        (list_of(&format!("{}\n{}", record(3, &dublin_core("x")), record(4, "<a><b></a>"))), 5, "the XML"),
        (list_of(&record(3, &dublin_core("a & b"))), 4, "bare-ampersand"),
        (good[..good.len() - 30].to_owned(), 4, ""),
        (good.replace("ListRecords", "ListIdentifiers"), 1, ""),
        ("hello".to_owned(), 1, ""),
    ] {
        match read_list(bad.as_bytes()) {
            Err(DepositError::BadXml(place)) => {
                assert!(place.line >= line && place.problem.contains(problem), "{place}: {bad}");
            }
            other => panic!("{other:?}: {bad}"),
        }
    }
    // A deletion without sets is in those of the record.
    let gone = vec![Deposit::deleted("oai:x.example:1")];
    world.put("oai_dc", gone, ANY).expect("a record");
    let of_set = list(&world.view(), "&metadataPrefix=oai_dc&set=a");
    assert!(of_set.iter().any(|item| item.identifier == "oai:x.example:1" && item.is_deleted), "{of_set:?}");
    // A declaration around the record goes with it.
    let outside =
        list_of(&record(5, "<d:a xsi:schemaLocation=\"urn:declared-outside http://x.example/d.xsd\"/>"));
    world.put("d", read_list(outside.as_bytes()).expect("a list"), ANY).expect("a record");
    let found = ask_once(&world.view(), "verb=GetRecord&metadataPrefix=d&identifier=oai:x.example:5");
    found.valid(Strictness::Schema);
    assert!(found.body.contains("xmlns:d=\"urn:declared-outside\""), "{}", found.body);
}

#[test]
fn metadata_that_the_engine_would_change_is_refused_with_its_place() {
    for (metadata, place) in [
        ("<a xmlns=\"urn:x\">\n  <b>ä & b</b></a>", "line 2, column 8: "),
        ("<a xmlns=\"urn:x\">\n<b></a>", "line 2, column 4: "),
        ("<a xmlns=\"urn:x\"/>\n<b/>", "line 2, column 1: a second element"),
        ("text", "line 1, column 1: text"),
        ("", "line 1, column 1: there is no element"),
        ("<a/>", "line 1, column 1: the root element has no namespace"),
        ("<x:a/>", "line 1, column 1: "),
        ("<!DOCTYPE a><a xmlns=\"urn:x\"/>", "line 1, column 1: a document type"),
        ("<?xml version=\"1.0\" encoding=\"latin1\"?><a xmlns=\"urn:x\"/>", "line 1, column 1: "),
        ("<a xmlns=\"urn:x\"></metadata></record><record><header/></a>", "line 1, column 18: "),
        ("<a xmlns=\"urn:x\"><![CDATA[x]]", "line 1, column "),
        ("<a xmlns=\"urn:x\">&undefined;</a>", "line 1, column 18: "),
    ] {
        let problem = Payload::read(metadata.as_bytes()).expect_err(metadata).to_string();
        assert!(problem.starts_with(place), "{metadata}: {problem}");
    }
    let not_utf8 = Payload::read(b"<a xmlns=\"urn:x\">\n\xff</a>").expect_err("not UTF-8");
    assert_eq!((not_utf8.line, not_utf8.column), (2, 1));
    for metadata in [
        "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- x --><a xmlns=\"urn:x\">&lt;&#8364;<![CDATA[<]]></a>\n",
        "<a xmlns=\"urn:x\" xsi:nil=\"true\"/>",
    ] {
        Payload::read(metadata.as_bytes()).unwrap_or_else(|problem| panic!("{metadata}: {problem}"));
    }
}

#[test]
fn identifiers_and_sets_are_legal() {
    for identifier in [
        "",
        "x",
        "oai:",
        ":1",
        "oai:x y",
        "oai:ü",
        "oai:<1>",
        &format!("oai:{}", "x".repeat(IDENTIFIER_BYTES_MAX)),
    ] {
        assert!(Deposit::new(identifier, &[], None).is_err(), "{identifier:.99}");
    }
    for set in ["", "a,b", "a b", ":a", "a:", "a::b", "ü"] {
        assert!(Deposit::new("oai:x:1", &owned(&[set]), None).is_err(), "{set}");
    }
    assert!(Deposit::new("https://doi.org/10.1/x;y?z#1", &owned(&["a:b", "-_.!~*'()"]), None).is_ok());
}
