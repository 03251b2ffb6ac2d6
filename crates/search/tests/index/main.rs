//! The index over a mirror: what it finds, and how it follows.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod formats;
mod lists;
mod values;

use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_search::query::{QueryLanguage, parse};
use oaimend_search::{
    FieldName, IndexError, IndexSettings, ListHits, Query, QueryError, Ranking, RecordFilter, RecordTexts,
    SearchHits, SearchIndex, Values,
};
use oaimend_store::{
    MirrorStore, NewRecord, PageCommit, Prefix, RecordRepairs, RecordStatus, RepositoryId, content_hash,
};
use oaimend_store_local::RecordLog;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const SETTINGS: IndexSettings = IndexSettings { memory_max_bytes: 16 << 20 };

/// A mirror and its index.
struct World {
    folder: tempfile::TempDir,
    mirror: RecordLog,
    index: SearchIndex,
    /// The next stamp.
    now_secs: i64,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mirror = RecordLog::open(&folder.path().join("mirror")).unwrap();
        let index = open(folder.path());
        Self { folder, mirror, index, now_secs: 1_000 }
    }

    /// Commits records in one page: the identifier, and the metadata or nothing for a deleted record.
    async fn commit(&mut self, repository: &str, prefix: &str, records: &[(&str, Option<&str>)]) {
        let records = records.iter().map(|(identifier, metadata)| new_record(identifier, *metadata));
        let progress = self.mirror.progress(RepositoryId(repository), Prefix(prefix)).await.unwrap();
        let page = PageCommit {
            repository: repository.to_owned(),
            prefix: prefix.to_owned(),
            stamp_secs: UnixSecs(self.now_secs),
            records: records.collect(),
            progress,
            ..PageCommit::default()
        };
        self.mirror.commit(page).await.unwrap();
        self.now_secs += 1;
    }

    async fn follow(&self) {
        self.index.follow(&self.mirror, Some(UnixSecs(self.now_secs - 1))).await.unwrap();
    }

    fn found(&self, query: &Query, prefix: Option<&str>) -> Vec<String> {
        let filter = RecordFilter { repositories: None, prefix: prefix.map(str::to_owned) };
        let request = SearchHits {
            query: query.clone(),
            filter,
            ranking: Ranking::Relevance,
            offset: 0,
            count_max: 1_000,
            with_facets: false,
        };
        let found = self.index.search(&request).unwrap();
        assert_eq!(found.total.records, found.hits.len() as u64);
        found
            .hits
            .into_iter()
            .map(|hit| format!("{} {} {}", hit.repository, hit.prefix, hit.identifier))
            .collect()
    }

    fn found_by(&self, query: &str) -> BTreeSet<String> {
        self.found(&odl(query), None).into_iter().collect()
    }
}

fn open(folder: &Path) -> SearchIndex {
    SearchIndex::open(&folder.join("search"), SETTINGS).unwrap()
}

fn odl(query: &str) -> Query {
    parse(QueryLanguage::Odl, query).unwrap()
}

fn new_record(identifier: &str, metadata: Option<&str>) -> NewRecord {
    let status = if metadata.is_some() { RecordStatus::Live } else { RecordStatus::Deleted };
    let xml = record_xml(identifier, metadata.unwrap_or_default());
    NewRecord {
        identifier: identifier.to_owned(),
        datestamp_secs: UnixSecs(0),
        set_specs: Vec::new(),
        status,
        content_hash: content_hash(status, &[], &[xml.as_bytes()]),
        bytes: Bytes::from(xml),
        repairs: RecordRepairs::default(),
    }
}

fn record_xml(identifier: &str, metadata: &str) -> String {
    format!(
        "<record xmlns='http://www.openarchives.org/OAI/2.0/'><header><identifier>{identifier}</identifier>\
         <datestamp>2024-01-01</datestamp></header><metadata>{metadata}</metadata></record>"
    )
}

/// A record in oai_dc with these elements.
fn oai_dc(elements: &str) -> String {
    format!(
        "<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/' \
         xmlns='http://purl.org/dc/elements/1.1/'>{elements}</oai_dc:dc>"
    )
}

fn texts(identifier: &str, metadata: &str) -> RecordTexts {
    let document = oaimend_record::RecordDocument::read(&record_xml(identifier, metadata)).unwrap();
    RecordTexts::of("r", identifier, &document)
}

fn set(records: &[&str]) -> BTreeSet<String> {
    records.iter().map(|record| format!("r oai_dc {record}")).collect()
}

#[tokio::test]
async fn words_match_folded_or_by_the_stem_of_their_language() {
    let mut world = World::new();
    let german = oai_dc("<title xml:lang='de'>Die Häuser am Fluß</title><language>en</language>");
    let english = oai_dc("<title>Running rivers</title><language>eng</language>");
    let japanese = oai_dc("<title>東京大学の歴史</title><creator>Håkon Øye</creator>");
    world.commit("r", "oai_dc", &[("1", Some(&german)), ("2", Some(&english)), ("3", Some(&japanese))]).await;
    world.follow().await;
    for (query, expected) in [
        ("haus", vec!["1"]),
        ("HAUSER", vec!["1"]),
        ("fluss", vec!["1"]),
        ("runs", vec!["2"]),
        ("title:river", vec!["2"]),
        ("creator:river", vec![]),
        ("\"running river\"", vec![]),
        ("\"running rivers\"", vec!["2"]),
        ("title:\"die häuser\"", vec!["1"]),
        ("\"häuser fluß\"", vec![]),
        ("東京", vec!["3"]),
        ("大", vec!["3"]),
        ("東京大学", vec!["3"]),
        ("東大", vec![]),
        ("hakon", vec!["3"]),
        ("oye", vec!["3"]),
        ("-haus", vec!["2", "3"]),
        ("+river haus", vec!["2"]),
        ("river haus", vec!["1", "2"]),
    ] {
        assert_eq!(world.found_by(query), set(&expected), "{query}");
    }
    let unknown = SearchHits {
        query: odl("shelf:x"),
        filter: RecordFilter::default(),
        ranking: Ranking::Relevance,
        offset: 0,
        count_max: 1,
        with_facets: false,
    };
    let refused = world.index.search(&unknown);
    assert!(matches!(&refused, Err(IndexError::Query(QueryError::UnknownField(name))) if name == "shelf"));
}

#[tokio::test]
async fn changes_and_deletions_are_followed() {
    let mut world = World::new();
    let early = world.index.search(&SearchHits {
        query: Query::All,
        filter: RecordFilter::default(),
        ranking: Ranking::Recent,
        offset: 0,
        count_max: 1,
        with_facets: false,
    });
    assert!(matches!(early, Err(IndexError::Building)), "{early:?}");
    let (sea, land) = (oai_dc("<title>sea</title>"), oai_dc("<title>land</title>"));
    world.commit("r", "oai_dc", &[("1", Some(&sea)), ("2", Some(&sea)), ("3", Some(&sea))]).await;
    world.follow().await;
    assert_eq!(world.found_by("sea"), set(&["1", "2", "3"]));
    world.commit("r", "oai_dc", &[("1", Some(&land)), ("2", None)]).await;
    assert_eq!(world.index.status(&world.mirror).await.unwrap().behind, 2);
    world.follow().await;
    assert_eq!((world.found_by("sea"), world.found_by("land")), (set(&["3"]), set(&["1"])));
    let status = world.index.status(&world.mirror).await.unwrap();
    assert_eq!((status.records, status.behind, status.is_building), (2, 0, false));
    // After a restart, and after the repository was harvested from the start.
    world.index.close();
    world.index = open(world.folder.path());
    // Its files are not verified yet.
    assert!(matches!(world.index.complete_until_secs(), Err(IndexError::Building)));
    world.follow().await;
    assert_eq!(world.found_by("sea"), set(&["3"]));
    world.mirror.forget(RepositoryId("r")).await.unwrap();
    world.commit("r", "oai_dc", &[("4", Some(&sea))]).await;
    world.follow().await;
    assert_eq!((world.found_by("sea"), world.found_by("land")), (set(&["4"]), set(&[])));
    world.mirror.forget(RepositoryId("r")).await.unwrap();
    world.follow().await;
    assert_eq!(world.found_by("sea"), set(&[]));
}

/// A caller may drop a call, for example when a server stops.
#[tokio::test]
async fn an_interrupted_call_leaves_nothing_twice() {
    let mut world = World::new();
    let sea = oai_dc("<title>sea</title>");
    for number in 0..12 {
        world.commit("r", "oai_dc", &[(&number.to_string(), Some(&sea))]).await;
        let mut work = Box::pin(world.index.follow(&world.mirror, None));
        for _ in 0..number {
            let polled =
                std::future::poll_fn(|context| std::task::Poll::Ready(work.as_mut().poll(context))).await;
            if polled.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(work);
        world.follow().await;
        assert_eq!(world.found_by("sea").len(), number + 1);
        assert_eq!(world.index.status(&world.mirror).await.unwrap().records, number as u64 + 1);
    }
}

#[tokio::test]
async fn one_record_of_an_item_is_shown() {
    let mut world = World::new();
    let dc = oai_dc("<title>sea</title>");
    let other = "<x:a xmlns:x='urn:x'><x:Shelf>sea</x:Shelf></x:a>";
    let shown = |world: &World| world.found(&odl("sea"), None);
    world.commit("r", "xyz", &[("1", Some(other))]).await;
    world.follow().await;
    assert_eq!(shown(&world), ["r xyz 1"]);
    // The prefix that is preferred appears later, and goes again.
    world.commit("r", "oai_dc", &[("1", Some(&dc))]).await;
    world.follow().await;
    assert_eq!(shown(&world), ["r oai_dc 1"]);
    world.commit("r", "oai_dc", &[("1", None)]).await;
    world.follow().await;
    assert_eq!(shown(&world), ["r xyz 1"]);
    // Both formats in one pass.
    world.commit("r", "xyz", &[("2", Some(other))]).await;
    world.commit("r", "oai_dc", &[("2", Some(&dc)), ("1", Some(&dc))]).await;
    world.follow().await;
    let shown: BTreeSet<String> = shown(&world).into_iter().collect();
    assert_eq!(shown, set(&["1", "2"]));
    assert_eq!(world.found(&odl("shelf:sea"), Some("xyz")).len(), 2);
    assert!(world.index.fields().contains(&FieldName("shelf".to_owned())));
}

#[tokio::test]
async fn only_the_chosen_formats_are_indexed() {
    let mut world = World::new();
    let (sea, lake) = (oai_dc("<title>sea</title>"), oai_dc("<title>lake</title>"));
    world.commit("r", "oai_dc", &[("1", Some(&sea)), ("2", Some(&sea))]).await;
    world.commit("r", "x", &[("1", Some(&lake))]).await;
    world.commit("s", "x", &[("3", Some(&lake))]).await;
    world.follow().await;
    let records =
        |records: &[&str]| -> BTreeSet<String> { records.iter().map(|&name| name.into()).collect() };
    let behind = async |world: &World| world.index.status(&world.mirror).await.unwrap().behind;
    let both = records(&["r oai_dc 1", "r oai_dc 2", "s x 3"]);
    assert_eq!(world.found_by("sea lake"), both);
    // The record that the other format hid is found.
    let only = |prefix: &str| [("r".to_owned(), vec![prefix.to_owned()])].into();
    world.index.set_formats(only("x"));
    world.follow().await;
    assert_eq!(world.found_by("sea lake"), records(&["r x 1", "s x 3"]));
    assert_eq!(world.found(&odl("sea"), Some("oai_dc")), [""; 0]);
    world.commit("r", "oai_dc", &[("1", Some(&sea)), ("4", Some(&sea))]).await;
    world.commit("r", "x", &[("2", Some(&lake))]).await;
    world.follow().await;
    assert_eq!(world.found_by("sea lake"), records(&["r x 1", "r x 2", "s x 3"]));
    assert_eq!(behind(&world).await, 0);
    world.index.set_formats(only("oai_dc"));
    world.follow().await;
    assert_eq!(world.found_by("sea lake"), records(&["r oai_dc 1", "r oai_dc 2", "r oai_dc 4", "s x 3"]));
    assert_eq!(world.found(&Query::All, None).len(), 4);
    assert_eq!(world.found(&odl("lake"), Some("x")), ["s x 3"]);
    // An item begins to be shown in another format at the same time.
    world.commit("t", "oai_dc", &[("1", Some(&sea))]).await;
    world.commit("t", "x", &[("1", Some(&lake))]).await;
    world.commit("t", "y", &[("1", Some(&lake)), ("5", Some(&lake))]).await;
    world.follow().await;
    world.commit("t", "x", &[("5", Some(&lake))]).await;
    world.index.set_formats([("t".to_owned(), vec!["x".to_owned(), "y".to_owned()])].into());
    world.follow().await;
    assert_eq!(world.found(&odl("lake"), Some("y")).len(), 2);
    let shown: BTreeSet<String> =
        world.found_by("sea lake").into_iter().filter(|record| record.starts_with('t')).collect();
    assert_eq!(shown, records(&["t x 1", "t x 5"]));
    world.index.set_formats(BTreeMap::new());
    world.follow().await;
    assert_eq!(world.found(&odl("lake"), Some("x")).len(), 5);
    assert!(world.found_by("sea lake").contains("t oai_dc 1"));
    assert_eq!(behind(&world).await, 0);
}

#[tokio::test]
async fn lists_are_in_the_order_of_the_commits_and_continue() {
    let mut world = World::new();
    let (sea, land) = (oai_dc("<title>sea</title>"), oai_dc("<title>land</title>"));
    let names: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    for (number, name) in names.iter().enumerate() {
        let repository = ["a", "b", "c"][number % 3];
        world.commit(repository, "oai_dc", &[(name, Some(if number % 5 == 0 { &land } else { &sea }))]).await;
        // Commits in one second.
        world.now_secs -= i64::from(number % 2 == 0);
        if number % 20 == 0 {
            world.follow().await;
        }
    }
    world.follow().await;
    let mut request = ListHits {
        query: odl("sea"),
        repositories: None,
        prefix: "oai_dc".to_owned(),
        from_secs: Some(UnixSecs(1_003)),
        until_secs: Some(UnixSecs(1_020)),
        after: None,
        count_max: 1_000,
    };
    let all = world.index.list(&request).unwrap();
    assert_eq!(
        (all.total, all.complete_until_secs),
        (all.hits.len() as u64, Some(UnixSecs(world.now_secs - 1)))
    );
    let places: Vec<_> =
        all.hits.iter().map(|hit| (hit.stamp_secs, hit.repository.clone(), hit.sequence)).collect();
    assert!(places.is_sorted() && places.len() > 20, "{places:?}");
    let mut parts = Vec::new();
    request.count_max = 7;
    loop {
        let part = world.index.list(&request).unwrap();
        assert_eq!(part.total, all.total);
        let Some(last) = part.hits.last() else { break };
        request.after = Some((last.stamp_secs, last.repository.clone(), last.sequence));
        parts.extend(part.hits);
    }
    assert_eq!(parts, all.hits);
    // A repository that the index does not contain.
    let (stamp, ..) = places[10].clone();
    request.after = Some((stamp, "bb".to_owned(), 0));
    let next = world.index.list(&request).unwrap().hits.remove(0);
    assert!((next.stamp_secs, next.repository.as_str()) > (stamp, "bb"));
}

#[tokio::test]
async fn orcids_of_persons_are_found_but_are_no_values() {
    let mut world = World::new();
    let records =
        ["Doe, J. (ORCID: 0000-0002-1825-0097)", "https://orcid.org/0000-0002-1694-233X", "Doe, J."];
    let records = records.map(|creator| oai_dc(&format!("<title>sea</title><creator>{creator}</creator>")));
    let named: Vec<_> =
        ["1", "2", "3"].into_iter().zip(records.iter().map(|xml| Some(xml.as_str()))).collect();
    world.commit("r", "oai_dc", &named).await;
    world.follow().await;
    for (query, expected) in [
        ("0000-0002-1825-0097", "1"),
        ("https://orcid.org/0000-0002-1825-0097", "1"),
        ("creator:\"https://orcid.org/0000-0002-1825-0097\"", "1"),
        ("0000-0002-1694-233x", "2"),
    ] {
        assert_eq!(world.found(&odl(query), None), [format!("r oai_dc {expected}")], "{query}");
    }
    let all = Values {
        field: FieldName("creator".to_owned()),
        filter: RecordFilter::default(),
        start: String::new(),
        after: None,
        count_max: 9,
    };
    let values = world.index.values(&all).unwrap();
    assert!(values.iter().all(|value| !value.folded.contains("orcid.org/0000-0002-1825")), "{values:?}");
}

#[tokio::test]
async fn facets_and_years_are_counted() {
    let mut world = World::new();
    for (name, year, kind) in [("1", "2001", "thesis"), ("2", "2003", "article"), ("3", "2003", "thesis")] {
        let rights = if name == "1" { "info:eu-repo/semantics/openAccess" } else { "closed" };
        let record = oai_dc(&format!(
            "<title>sea</title><date>{year}</date><type>{kind}</type><rights>{rights}</rights><language>de</language>"
        ));
        world.commit("r", "oai_dc", &[(name, Some(&record))]).await;
    }
    let undated = oai_dc("<title>sea</title>");
    world.commit("s", "oai_dc", &[("4", Some(&undated))]).await;
    world.follow().await;
    let mut request = SearchHits {
        query: odl("sea"),
        filter: RecordFilter::default(),
        ranking: Ranking::Newest,
        offset: 0,
        count_max: 10,
        with_facets: true,
    };
    let found = world.index.search(&request).unwrap();
    let names = |hits: &[oaimend_search::Hit]| -> Vec<String> {
        hits.iter().map(|hit| hit.identifier.clone()).collect()
    };
    assert_eq!(names(&found.hits), ["3", "2", "1", "4"]);
    let facets = found.facets.unwrap();
    let counts = |facet: &[oaimend_search::FacetCount]| -> Vec<(String, u64)> {
        facet.iter().map(|count| (count.value.clone(), count.records)).collect()
    };
    let pairs = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        pairs.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect()
    };
    assert_eq!(counts(&facets.repositories), pairs(&[("r", 3), ("s", 1)]));
    assert_eq!(counts(&facets.types), pairs(&[("Thesis", 2), ("Article", 1), ("Record", 1)]));
    assert_eq!(counts(&facets.years), pairs(&[("2003", 2), ("2001", 1)]));
    assert_eq!(counts(&facets.languages), pairs(&[("de", 3)]));
    assert_eq!(counts(&facets.access), pairs(&[("other", 3), ("open", 1)]));
    assert!(!facets.is_estimate);
    assert_eq!(world.index.years(&RecordFilter::default()).unwrap(), [(2003, 2), (2001, 1)]);
    let other = RecordFilter { repositories: Some(vec!["s".to_owned()]), prefix: None };
    assert_eq!(world.index.years(&other).unwrap(), []);
    for (ranking, expected) in
        [(Ranking::Oldest, ["1", "3", "2", "4"]), (Ranking::Recent, ["4", "3", "2", "1"])]
    {
        request.ranking = ranking;
        assert_eq!(names(&world.index.search(&request).unwrap().hits), expected, "{ranking:?}");
    }
    request.offset = 1;
    request.count_max = 2;
    assert_eq!(names(&world.index.search(&request).unwrap().hits), ["3", "2"]);
}

#[tokio::test]
async fn an_index_of_another_format_or_a_damaged_one_is_built_again() {
    let mut world = World::new();
    let sea = oai_dc("<title>sea</title>");
    world.commit("r", "oai_dc", &[("1", Some(&sea))]).await;
    world.follow().await;
    let folder = world.folder.path().join("search");
    let damages: [&dyn Fn(); 3] = [
        &|| {
            let meta = std::fs::read(folder.join("meta.json")).unwrap();
            let mut meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
            let mut position: serde_json::Value =
                serde_json::from_str(meta["payload"].as_str().unwrap()).unwrap();
            assert!(position["format"].is_u64());
            position["format"] = 0.into();
            meta["payload"] = position.to_string().into();
            std::fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
        },
        &|| std::fs::write(folder.join("meta.json"), "{").unwrap(),
        &|| {
            for file in std::fs::read_dir(&folder).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "idx") {
                    let mut bytes = std::fs::read(&path).unwrap();
                    bytes[0] ^= 1;
                    std::fs::write(&path, bytes).unwrap();
                }
            }
        },
    ];
    for damage in damages {
        world.index.close();
        damage();
        world.index = open(world.folder.path());
        world.follow().await;
        assert_eq!(world.found_by("sea"), set(&["1"]));
    }
}

const WORDS: [&str; 16] = [
    "sea",
    "seas",
    "Häuser",
    "haus",
    "running",
    "run",
    "東京大学",
    "東京",
    "e-mail",
    "l'été",
    "Straße",
    "C++",
    "12",
    "été",
    "海",
    "x",
];
const FIELDS: [&str; 4] = ["title", "creator", "subject", "shelf"];
const LANGUAGES: [&str; 4] = ["", " xml:lang='en'", " xml:lang='de'", " xml:lang='fr'"];

fn words(random: &mut fastrand::Rng, count_max: usize) -> String {
    let words: Vec<&str> = (0..random.usize(1..=count_max)).map(|_| random.choice(WORDS).unwrap()).collect();
    words.join([" ", ", ", " - "][random.usize(..3)])
}

fn metadata(random: &mut fastrand::Rng) -> String {
    let mut elements = String::new();
    let is_dc = random.u8(..4) > 0;
    for _ in 0..random.usize(..5) {
        let name = FIELDS[random.usize(..FIELDS.len())];
        let language = LANGUAGES[random.usize(..LANGUAGES.len())];
        elements += &format!("<{name}{language}>{}</{name}>", words(random, 6));
    }
    if random.bool() {
        elements += &format!("<date>{}</date>", random.u16(1990..2000));
        elements += ["", "<language>en</language>", "<language>de</language>"][random.usize(..3)];
    }
    if is_dc { oai_dc(&elements) } else { format!("<other xmlns='urn:other'>{elements}</other>") }
}

fn query(random: &mut fastrand::Rng, depth: usize) -> Query {
    let field =
        if random.bool() { Some(FieldName(FIELDS[random.usize(..FIELDS.len())].to_owned())) } else { None };
    let some_year =
        |random: &mut fastrand::Rng| if random.bool() { Some(random.u16(1990..2000)) } else { None };
    match random.u8(..if depth == 0 { 12 } else { 16 }) {
        0..4 => Query::Word { field, word: words(random, 1) },
        4..7 => Query::Phrase { field, words: words(random, 3) },
        7 => {
            let word = words(random, 2);
            let chars = word.chars().count();
            Query::Prefix { field, start: word.chars().take(random.usize(..=chars)).collect() }
        }
        8 => {
            let name = FIELDS[random.usize(..FIELDS.len())];
            Query::Value { field: FieldName(name.to_owned()), value: words(random, 2) }
        }
        9 => Query::Years { from: some_year(random), until: some_year(random) },
        10 => Query::Identifier(random.u8(..100).to_string()),
        11 => [
            Query::All,
            Query::Language("en".into()),
            Query::Access("other".into()),
            Query::Type("Record".into()),
        ][random.usize(..4)]
        .clone(),
        _ => {
            let mut some = |count_max: usize| {
                (0..random.usize(..=count_max)).map(|_| query(random, depth - 1)).collect()
            };
            Query::Boolean { required: some(2), optional: some(3), excluded: some(1) }
        }
    }
}

/// The index and the evaluator of one record never disagree.
#[tokio::test]
async fn the_index_finds_the_records_that_match() {
    let seed = std::env::var("OAIMEND_SEED").map_or(39, |seed| seed.parse().unwrap());
    println!("OAIMEND_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut world = World::new();
    let mut records: BTreeMap<String, Option<String>> = BTreeMap::new();
    for round in 0..4 {
        for _ in 0..30 {
            let metadata = if random.u8(..6) == 0 { None } else { Some(metadata(&mut random)) };
            let identifier = random.u8(..100).to_string();
            world.commit("r", "oai_dc", &[(&identifier, metadata.as_deref())]).await;
            records.insert(identifier, metadata);
        }
        world.follow().await;
        let live: Vec<(&String, RecordTexts)> = records
            .iter()
            .filter_map(|(identifier, metadata)| Some((identifier, texts(identifier, metadata.as_ref()?))))
            .collect();
        let mut hits = 0;
        for _ in 0..200 {
            let query = query(&mut random, 3);
            let request = SearchHits {
                query: query.clone(),
                filter: RecordFilter { repositories: Some(vec!["r".into()]), prefix: Some("oai_dc".into()) },
                ranking: Ranking::Relevance,
                offset: 0,
                count_max: 1_000,
                with_facets: false,
            };
            let expected: BTreeSet<&str> = live
                .iter()
                .filter(|(_, texts)| query.matches(texts))
                .map(|(identifier, _)| identifier.as_str())
                .collect();
            match world.index.search(&request) {
                Ok(found) => {
                    let found: BTreeSet<&str> =
                        found.hits.iter().map(|hit| hit.identifier.as_str()).collect();
                    assert_eq!(found, expected, "round {round}: {query:?}");
                    hits += usize::from(!found.is_empty());
                }
                // No record has such an element yet.
                Err(IndexError::Query(QueryError::UnknownField(_))) => {}
                Err(IndexError::Query(_)) => assert!(expected.is_empty(), "{query:?}"),
                Err(error) => panic!("{error}"),
            }
        }
        assert!(hits > 60, "{hits} queries found something");
    }
}
