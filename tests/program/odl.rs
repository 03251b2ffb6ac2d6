//! ODL-Search, ODL-Browse, ODL-Recent and query sets, over a mirror and its index.

use crate::fixtures::mirror::{Answered, Mirror, ask, deleted, live, pages, runtime, source};
use oaimend_mirror::view::{AggregateRepository, AggregateSettings, Component, QuerySets, ViewOptions};
use oaimend_oai::{Request, UnixSecs};
use oaimend_search::{IndexSettings, SearchIndex, Searches};
use oaimend_store::NewRecord;
use oaimend_test_support::envelope::Strictness;
use oaimend_views::IndexQuerySets;
use oaimend_views::odl::{BrowseCategory, OdlBrowse, OdlRecent, OdlSearch};
use regex::Regex;
use std::sync::Arc;

/// 2023-11-14T22:13:20Z.
const START_SECS: i64 = 1_700_000_000;

/// A mirror of two repositories with an index.
struct Searched {
    mirror: Mirror,
    index: SearchIndex,
    searches: Searches,
    _folder: tempfile::TempDir,
}

impl Searched {
    /// The repositories `x` and `y`. Each commit is a day after the one before.
    fn new() -> Self {
        let mirror = Mirror::new(START_SECS);
        let folder = tempfile::tempdir().expect("a folder");
        let settings = IndexSettings { memory_max_bytes: 16 << 20 };
        let index = SearchIndex::open(folder.path(), settings).expect("a new index");
        let searches = Searches::new(|_, _| ());
        searches.set_index(Some(index.clone()));
        for id in ["x", "y"] {
            mirror.describe(id, &["oai_dc"], &[("a", "Set A")]);
        }
        Self { mirror, index, searches, _folder: folder }
    }

    /// Commits records of a repository.
    fn commit(&self, id: &str, records: Vec<NewRecord>) {
        self.mirror.pass_time(86_400);
        self.mirror.commit(id, "oai_dc", records, true);
    }

    /// Commits a record of a repository with this title.
    fn title(&self, id: &str, number: usize, title: &str) {
        self.commit(id, vec![live(&format!("oai:{id}:{number}"), &["a"], title)]);
    }

    /// Indexes all commits.
    fn follow(&self) {
        let settled_secs = Some(UnixSecs(seconds(&self.mirror)));
        let store = self.mirror.store();
        let followed = self.index.follow(&*store.mirror, settled_secs);
        runtime().block_on(followed).expect("a readable mirror");
    }

    fn repositories() -> Vec<String> {
        vec!["x".to_owned(), "y".to_owned()]
    }

    fn open(&self, component: Arc<dyn Component>, sets: Option<Arc<dyn QuerySets>>) -> AggregateRepository {
        let mut stores = self.mirror.stores();
        stores.query_sets = sets;
        let opened = AggregateRepository::open_component(stores, settings, component);
        runtime().block_on(opened).expect("a writable store")
    }

    fn search(&self) -> AggregateRepository {
        let component = OdlSearch { searches: self.searches.clone(), repositories: Self::repositories() };
        self.open(Arc::new(component), None)
    }

    fn recent(&self) -> AggregateRepository {
        let component = OdlRecent { searches: self.searches.clone(), repositories: Self::repositories() };
        self.open(Arc::new(component), None)
    }

    fn browse(&self, categories: Vec<BrowseCategory>) -> AggregateRepository {
        let browse = OdlBrowse::new(self.searches.clone(), categories).over(Self::repositories());
        self.open(Arc::new(browse.clone()), Some(Arc::new(browse)))
    }

    /// The view of all repositories with query sets.
    fn all(&self) -> AggregateRepository {
        let mut stores = self.mirror.stores();
        stores.query_sets = Some(Arc::new(IndexQuerySets { searches: self.searches.clone() }));
        runtime().block_on(AggregateRepository::open(stores, settings)).expect("a writable store")
    }
}

fn settings() -> AggregateSettings {
    AggregateSettings {
        options: ViewOptions { page_records_max: 2, ..ViewOptions::default() },
        sources: vec![source("x"), source("y")],
        repository_name: "All".to_owned(),
        admin_emails: vec!["all@proxy.example".to_owned()],
    }
}

fn seconds(mirror: &Mirror) -> i64 {
    let since = mirror.clock().now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    i64::try_from(since.expect("after 1970").as_secs()).expect("a time of this century")
}

/// The list of headers of a set.
fn headers(repository: &AggregateRepository, set: &str) -> Answered {
    let set: String = url::form_urlencoded::byte_serialize(set.as_bytes()).collect();
    ask(repository, &format!("verb=ListIdentifiers&metadataPrefix=oai_dc&set={set}"))
}

fn identifiers(answered: &Answered) -> Vec<String> {
    let parts = answered.body.split("<identifier>").skip(1);
    parts.filter_map(|part| Some(part.split_once('<')?.0.to_owned())).collect()
}

/// The text of the error, after its code was compared.
#[track_caller]
fn refused(answered: &Answered, code: &str) -> String {
    assert_eq!(answered.failure, None);
    let start = format!("<error code=\"{code}\">");
    let (_, text) = answered.body.split_once(&start).unwrap_or_else(|| panic!("{:.2000}", answered.body));
    text.split('<').next().unwrap_or_default().to_owned()
}

/// Five records on climate of decreasing relevance, and others.
fn climate() -> Searched {
    let searched = Searched::new();
    for number in 1..=5 {
        let other = "and other words ".repeat(number);
        searched.title(if number % 2 == 0 { "x" } else { "y" }, number, &format!("Climate {other}"));
    }
    searched.title("x", 6, "Ocean/land maps");
    searched.title("y", 7, "Tides &amp; waves");
    searched.follow();
    searched
}

#[test]
fn a_search_is_ranked_counted_and_cut_into_inclusive_ranges() {
    let searched = climate();
    let search = searched.search();
    let ranked = |set: &str| identifiers(&headers(&search, set));
    let all = ranked("odlsearch1/climate/1/10");
    assert_eq!(all, ["oai:y:1", "oai:x:2", "oai:y:3", "oai:x:4", "oai:y:5"]);
    assert_eq!(ranked("odsearch1/climate/1/2"), all[..2]);
    assert_eq!(ranked("odlsearch1/climate/3/5"), all[2..]);
    assert_eq!(ranked("odlsearch1/climate/5/1000"), all[4..]);
    assert_eq!(ranked("odlsearch1/+title:ocean/land/1/10"), ["oai:x:6"]);
    assert_eq!(ranked("odlsearch1/climate ocean -words/1/10"), ["oai:x:6"]);
    let answered = headers(&search, "odlsearch1/climate/2/3");
    let end = "  </ListIdentifiers>\n  <responseContainer>\n    <hits>5</hits>\n  </responseContainer>\n</OAI-PMH>\n";
    assert!(answered.body.ends_with(end), "{}", answered.body);
    let records = ask(&search, "verb=ListRecords&metadataPrefix=oai_dc&set=odlsearch1/tides/1/1");
    assert!(records.body.contains("<dc:title>Tides &amp; waves</dc:title>"), "{}", records.body);
    assert!(records.body.contains("<setSpec>y</setSpec>"), "{}", records.body);
}

#[test]
fn a_search_without_records_says_how_many_match() {
    let searched = climate();
    let search = searched.search();
    for (set, hits) in [("odlsearch1/volcano/1/10", 0), ("odlsearch1/climate/6/10", 5)] {
        let answered = headers(&search, set);
        refused(&answered, "noRecordsMatch");
        let end = format!(
            "</error>\n  <responseContainer>\n    <hits>{hits}</hits>\n  </responseContainer>\n</OAI-PMH>\n"
        );
        assert!(answered.body.ends_with(&end), "{}", answered.body);
    }
}

#[test]
fn the_dialect_of_joai_counts_in_the_resumption_token() {
    let searched = climate();
    let search = searched.search();
    let answered = headers(&search, "dleseodlsearch/climate words/null/1/2");
    assert_eq!(identifiers(&answered), ["oai:x:2", "oai:y:3"]);
    assert!(
        answered.body.contains("<resumptionToken completeListSize=\"5\" cursor=\"1\"/>"),
        "{}",
        answered.body
    );
    answered.valid(Strictness::Schema);
    assert_eq!(identifiers(&headers(&search, "dleseodlsearch/climate/x/0/10")), ["oai:x:2", "oai:x:4"]);
    refused(&headers(&search, "dleseodlsearch/climate+ocean/null/0/10"), "noRecordsMatch");
    let text = refused(&headers(&search, "dleseodlsearch/climate/z/0/10"), "badArgument");
    assert!(text.contains("write null"), "{text}");
}

#[test]
fn a_search_describes_itself_and_is_else_the_view_of_all_repositories() {
    let searched = climate();
    let (search, all) = (searched.search(), searched.all());
    let identify = ask(&search, "verb=Identify");
    identify.valid(Strictness::Schema);
    assert!(
        identify.body.contains("<protocol>ODL-Search</protocol><version>1.0</version>"),
        "{}",
        identify.body
    );
    refused(&ask(&search, "verb=ListSets"), "noSetHierarchy");
    for query in ["verb=ListMetadataFormats", "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:y:7"] {
        let content =
            |answered: Answered| answered.body.split_once("<request").map(|(_, rest)| rest.to_owned());
        assert_eq!(content(ask(&search, query)), content(ask(&all, query)), "{query}");
    }
    let whole: usize = pages(&search, "verb=ListIdentifiers&metadataPrefix=oai_dc", || ())
        .iter()
        .map(|page| page.items().len())
        .sum();
    assert_eq!(whole, 7);
    let query = Request::parse_odl(b"VERB=ListRecords&set=odlsearch1/climate/1/10")
        .expect("legal")
        .or_format("oai_dc");
    assert_eq!(identifiers(&ask(&search, query.query())).len(), 5);
}

#[test]
fn deleted_records_and_dates_are_left_out_of_a_search() {
    let searched = climate();
    searched.commit("x", vec![deleted("oai:x:2", &["a"])]);
    let search = searched.search();
    assert_eq!(identifiers(&headers(&search, "odlsearch1/climate/1/3")), ["oai:y:1", "oai:y:3"]);
    let dated = "verb=ListIdentifiers&metadataPrefix=oai_dc&set=odlsearch1/climate/1/3&from=2020-01-01";
    let text = refused(&ask(&search, dated), "badArgument");
    assert!(text.contains("from and until do not apply"), "{text}");
    refused(
        &ask(&search, "verb=ListIdentifiers&metadataPrefix=mods&set=odlsearch1/climate/1/3"),
        "cannotDisseminateFormat",
    );
}

#[test]
fn query_bombs_are_refused() {
    let searched = climate();
    let (search, all) = (searched.search(), searched.all());
    let encode = |query: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(query)
    };
    for query in [
        "a ".repeat(100_000),
        "(".repeat(100_000),
        "\"".repeat(99_999),
        "+-".repeat(50_000),
        "title:".repeat(20_000),
        "nofield:x".to_owned(),
        "title:".to_owned(),
        "\"open".to_owned(),
        " ".to_owned(),
        "/".repeat(100_000),
    ] {
        for answered in [
            headers(&search, &format!("odlsearch1/{query}/1/10")),
            headers(&all, &format!("q:{}", encode(&query))),
        ] {
            let text = refused(&answered, "badArgument");
            assert!(text.len() < 500, "{:.20}: {text:.600}", query);
        }
    }
    for set in ["q:", "q:%%%", "q:a", "q:_w"] {
        refused(&headers(&all, set), "badArgument");
    }
}

/// The query set of a query.
fn query_set(query: &str) -> String {
    use base64::Engine as _;
    format!("q:{}", base64::engine::general_purpose::URL_SAFE.encode(query))
}

#[test]
fn a_query_set_is_harvested_like_any_set() {
    let searched = climate();
    let all = searched.all();
    let set: String = url::form_urlencoded::byte_serialize(query_set("climate").as_bytes()).collect();
    let list = format!("verb=ListRecords&metadataPrefix=oai_dc&set={set}");
    let listed = pages(&all, &list, || ());
    assert_eq!(listed.len(), 3);
    assert_eq!(listed[0].summary.page.progress, (Some(0), Some(5)));
    listed.iter().for_each(|page| drop(page.valid(Strictness::Schema)));
    let found: Vec<String> = listed.iter().flat_map(identifiers).collect();
    assert_eq!(found, ["oai:y:1", "oai:x:2", "oai:y:3", "oai:x:4", "oai:y:5"], "in the order of the commits");
    let from = listed[1].items()[1].datestamp.clone();
    let later = pages(&all, &format!("{list}&from={from}"), || ());
    assert_eq!(later.iter().flat_map(identifiers).collect::<Vec<_>>(), ["oai:x:4", "oai:y:5"]);
    let identify = ask(&all, "verb=Identify");
    identify.valid(Strictness::Schema);
    assert!(identify.body.contains("<protocol>oaimend-query-sets</protocol>"), "{}", identify.body);
    assert_eq!(identifiers(&headers(&all, "x:a")).len(), 2, "other sets are those of the sources");
}

#[test]
fn a_query_set_ends_where_the_index_does() {
    let searched = climate();
    let indexed = searched.mirror.now();
    searched.title("x", 8, "Climate later");
    let all = searched.all();
    let list = |from: &str| {
        let set: String = url::form_urlencoded::byte_serialize(query_set("later").as_bytes()).collect();
        ask(&all, &format!("verb=ListIdentifiers&metadataPrefix=oai_dc&set={set}{from}"))
    };
    let early = list("");
    refused(&early, "noRecordsMatch");
    let date = early.summary.page.response_date.clone().expect("a date");
    assert!(date <= indexed, "{date} {indexed}");
    searched.follow();
    assert_eq!(identifiers(&list(&format!("&from={date}"))), ["oai:x:8"], "the next harvest misses nothing");
}

#[test]
fn a_record_that_stops_matching_leaves_a_query_set_silently() {
    let searched = climate();
    searched.title("x", 2, "Weather");
    searched.commit("x", vec![deleted("oai:x:4", &["a"])]);
    searched.follow();
    let all = searched.all();
    assert_eq!(
        pages(
            &all,
            &format!(
                "verb=ListIdentifiers&metadataPrefix=oai_dc&set={}",
                query_set("climate").replace('=', "%3D")
            ),
            || ()
        )
        .iter()
        .flat_map(identifiers)
        .collect::<Vec<_>>(),
        ["oai:y:1", "oai:y:3", "oai:y:5"]
    );
    let record = ask(&all, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:2");
    assert!(record.body.contains("<dc:title>Weather</dc:title>"), "{}", record.body);
}

#[test]
fn recent_records_are_the_latest_first() {
    let searched = climate();
    let recent = searched.recent();
    assert_eq!(identifiers(&headers(&recent, "odlrecent1/3")), ["oai:y:7", "oai:x:6", "oai:y:5"]);
    assert_eq!(identifiers(&headers(&recent, "odlrecent1/1000")).len(), 7);
    headers(&recent, "odlrecent1/3").valid(Strictness::Schema);
    refused(&headers(&recent, "odlrecent1/0"), "badArgument");
    refused(&ask(&recent, "verb=ListSets"), "noSetHierarchy");
}

/// A record with these elements of Dublin Core after its title.
fn described(identifier: &str, elements: &str) -> NewRecord {
    let record = live(identifier, &["a"], &format!("T</dc:title>{elements}<dc:title>"));
    assert!(String::from_utf8_lossy(&record.bytes).contains(elements));
    record
}

#[test]
fn categories_have_values_with_counts_and_lists() {
    let searched = Searched::new();
    for (number, elements) in [
        "<dc:subject>Maps: new</dc:subject><dc:date>1999-05-01</dc:date><dc:type>A / B</dc:type>",
        "<dc:subject>maps: new</dc:subject><dc:date>1999</dc:date><dc:type>A / C</dc:type>",
        "<dc:subject>Ships</dc:subject><dc:date>2001-01</dc:date><dc:type>A</dc:type>",
        "<dc:subject>Ships/boats</dc:subject><dc:date>n.d.</dc:date><dc:type>D</dc:type>",
    ]
    .into_iter()
    .enumerate()
    {
        searched.commit("x", vec![described(&format!("oai:x:{number}"), elements)]);
    }
    searched.follow();
    let class = BrowseCategory {
        name: "class".to_owned(),
        separator: Some("/".to_owned()),
        ..BrowseCategory::of_field("type")
    };
    let vessels = BrowseCategory {
        name: "vessels".to_owned(),
        pattern: Some(Regex::new("^Ships.*").expect("legal")),
        replacement: "Vessel".to_owned(),
        ..BrowseCategory::of_field("subject")
    };
    let browse = searched.browse(vec![
        BrowseCategory::of_field("subject"),
        BrowseCategory::of_field("year"),
        class,
        vessels,
    ]);
    let sets = pages(&browse, "verb=ListSets", || ());
    sets.iter().for_each(|page| drop(page.valid(Strictness::Schema)));
    let text: String = sets.iter().map(|page| page.body.clone()).collect();
    let listed: Vec<(String, String)> = text
        .split("<setSpec>")
        .skip(1)
        .map(|set| {
            let spec = set.split('<').next().unwrap_or_default().to_owned();
            let count = set.split("<dc:description>").nth(1).and_then(|rest| rest.split('<').next());
            (spec, count.unwrap_or_default().to_owned())
        })
        .collect();
    let expected = [
        ("odlbrowse1:subject:Maps~x3A.~x20.new", "2 records"),
        ("odlbrowse1:subject:Ships", "1 record"),
        ("odlbrowse1:subject:Ships~x2F.boats", "1 record"),
        ("odlbrowse1:year:1999", "2 records"),
        ("odlbrowse1:year:2001", "1 record"),
        ("odlbrowse1:class:A", "3 records"),
        ("odlbrowse1:class:A:B", "1 record"),
        ("odlbrowse1:class:A:C", "1 record"),
        ("odlbrowse1:class:D", "1 record"),
        ("odlbrowse1:vessels:Vessel", "2 records"),
    ];
    assert_eq!(listed, expected.map(|(spec, count)| (spec.to_owned(), count.to_owned())));
    for (set, count) in expected {
        let pages = pages(&browse, &format!("verb=ListIdentifiers&metadataPrefix=oai_dc&set={set}"), || ());
        let found: usize = pages.iter().map(|page| page.items().len()).sum();
        assert!(count.starts_with(&format!("{found} ")), "{set}: {found}");
    }
    assert_eq!(identifiers(&headers(&browse, "odlbrowse1/subject/Ships/boats")), ["oai:x:3"]);
    assert_eq!(identifiers(&headers(&browse, "odlbrowse1/class/A/B")), ["oai:x:0"]);
    refused(&headers(&browse, "odlbrowse1/subject/Planes"), "noRecordsMatch");
    refused(&headers(&browse, "odlbrowse1/author/x"), "badArgument");
    refused(&headers(&browse, "x:a"), "badArgument");
    // A list of a value sees the texts of later commits.
    searched.commit("y", vec![described("oai:y:9", "<dc:subject>Ships again</dc:subject>")]);
    searched.follow();
    let vessels =
        pages(&browse, "verb=ListIdentifiers&metadataPrefix=oai_dc&set=odlbrowse1:vessels:Vessel", || ());
    assert_eq!(vessels.iter().flat_map(identifiers).collect::<Vec<_>>(), ["oai:x:2", "oai:x:3", "oai:y:9"]);
}
