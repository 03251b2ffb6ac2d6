//! What the routes answer while the index is built, and that commits are indexed in time.

use super::SearchService;
use super::indexing::{SearchIndexing, settled_secs};
use crate::config::{Config, Mapping, SearchPolicy};
use crate::serve::oai::mirror_views::view_stores;
use crate::serve::run::Server;
use crate::serve::served::ServedRepositories;
use oaimend_base::clock::SystemClock;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_oai::UnixSecs;
use oaimend_search::{IndexError, Query, Ranking, RecordFilter, SearchHits};
use oaimend_store::{
    Catalog, CompleteHarvest, ListedFormat, NewRecord, PageCommit, Prefix, RecordRepairs, RecordStatus,
    RepositoryId, content_hash,
};
use oaimend_upstream::settings::Limits;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long after its commit a record can be found at the latest, as the documentation says.
const FOUND_WITHIN: Duration = Duration::from_secs(5);

/// All routes that need the index, with a text of their response when two records are indexed.
const ROUTES: [(&str, &str); 17] = [
    ("/_search?q=lake", "/x/record/oai%3Ax%3A1"),
    ("/_search.json?q=lake", "\"total\": 2"),
    ("/_search.atom?q=lake", "Lake 1"),
    ("/_recent", "/x/record/oai%3Ax%3A1"),
    ("/_recent.json", "\"total\": 2"),
    ("/_recent.atom", "Lake 1"),
    ("/_search/suggest?q=lake", "Lake 1"),
    ("/_sru?operation=searchRetrieve&version=1.2&query=lake", "numberOfRecords>2<"),
    ("/_sru?operation=scan&version=1.2&scanClause=dc.title%3Dlake", "lake"),
    ("/x/browse/titles/", "Lake 1"),
    ("/x/browse/years/", "browse"),
    ("/_search?verb=ListIdentifiers&metadataPrefix=oai_dc&set=odlsearch1/lake/1/10", "<hits>2</hits>"),
    ("/_browse?verb=ListSets", "odlbrowse1:creator:Berg"),
    ("/_browse?verb=ListIdentifiers&metadataPrefix=oai_dc&set=odlbrowse1/creator/Berg", "oai:x:2"),
    ("/_recent?verb=ListIdentifiers&metadataPrefix=oai_dc&set=odlrecent1/5", "oai:x:2"),
    ("/_all?verb=ListIdentifiers&metadataPrefix=oai_dc&set=q:bGFrZQ", "oai:x:2"),
    ("/_mirror/x?verb=ListIdentifiers&metadataPrefix=oai_dc&set=q:bGFrZQ", "oai:x:2"),
];

/// The configuration with the mirrored repository `x`, whose source never answers.
fn config(data: &Path) -> Config {
    let mut config = Config::on_loopback(data);
    let mut mapping = Mapping::new("x", "http://127.0.0.1:9/oai", &Limits::default()).expect("legal");
    mapping.mirror = Some(MirrorSettings::default());
    config.repositories.add_fixed(mapping);
    config
}

/// Commits a record of `x` in a complete harvest.
async fn commit(served: &ServedRepositories, number: usize) {
    const OAI_DC: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
    let (stores, id, prefix) =
        (view_stores(served).await.expect("readable"), RepositoryId("x"), Prefix("oai_dc"));
    let format = ListedFormat {
        prefix: prefix.0.to_owned(),
        schema: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd".to_owned(),
        namespace: OAI_DC.to_owned(),
    };
    let catalog = Catalog { formats: vec![format], ..Catalog::default() };
    stores.store.save_catalog(id, catalog).await.expect("writable");
    let xml = format!(
        "<record><header><identifier>oai:x:{number}</identifier><datestamp>2020-01-01</datestamp></header>\
         <metadata><oai_dc:dc xmlns:oai_dc=\"{OAI_DC}\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
         <dc:title>Lake {number}</dc:title><dc:creator>Berg</dc:creator><dc:date>2001</dc:date>\
         </oai_dc:dc></metadata></record>"
    );
    let record = NewRecord {
        identifier: format!("oai:x:{number}"),
        datestamp_secs: UnixSecs(1_577_836_800),
        set_specs: Vec::new(),
        status: RecordStatus::Live,
        content_hash: content_hash(RecordStatus::Live, &[], &[xml.as_bytes()]),
        bytes: xml.into(),
        repairs: RecordRepairs::default(),
    };
    let now_secs = served.clock.now_secs();
    let mut progress = stores.store.progress(id, prefix).await.expect("readable");
    progress.last_complete = Some(CompleteHarvest { from_secs: now_secs, lead_secs: 0 });
    let (repository, prefix) = (id.0.to_owned(), prefix.0.to_owned());
    let page = PageCommit { repository, prefix, records: vec![record], progress, ..PageCommit::default() };
    stores.stamps.commit(page, now_secs).await.expect("the commit is in order");
}

/// The head and the body of a response.
fn fetch(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    )
    .expect("it reads");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("it answers");
    let response = String::from_utf8_lossy(&response).into_owned();
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

#[track_caller]
fn check_built(address: SocketAddr, when: &str) {
    let mut wrong = Vec::new();
    for (path, text) in ROUTES {
        let (head, body) = fetch(address, path);
        if !head.starts_with("http/1.1 200") || !body.contains(text) {
            wrong.push(format!("{path}: {head}\n{body}"));
        }
    }
    assert!(wrong.is_empty(), "{when}: {}", wrong.join("\n\n"));
}

#[track_caller]
fn check_building(address: SocketAddr, when: &str) {
    for (path, _) in ROUTES {
        let (head, body) = fetch(address, path);
        assert!(head.starts_with("http/1.1 503"), "{when}: {path}: {head}\n{body}");
        assert!(head.contains("\r\nretry-after: 60"), "{when}: {path}: {head}");
    }
    // The others answer.
    for path in ["/_all?verb=ListIdentifiers&metadataPrefix=oai_dc", "/x/record/oai:x:2", "/-/readyz", "/"] {
        let (head, body) = fetch(address, path);
        assert!(head.starts_with("http/1.1 200"), "{when}: {path}: {head}\n{body}");
    }
}

/// Ends the writer, as at the end of a process.
fn end(search: &SearchService) {
    if let Ok(index) = search.searches.index() {
        search.searches.set_index(None);
        index.close();
    }
}

/// Changes the first half of files of the index.
fn damage(search: &SearchService, is_damaged: impl Fn(&str) -> bool) {
    for file in std::fs::read_dir(&search.folder).expect("an index").flatten() {
        if is_damaged(&file.file_name().to_string_lossy()) {
            let mut bytes = std::fs::read(file.path()).expect("readable");
            let half = bytes.len() / 2;
            bytes.iter_mut().take(half).for_each(|byte| *byte ^= 0x55);
            // In place: searches may have mapped the file.
            let mut file = OpenOptions::new().write(true).open(file.path()).expect("writable");
            file.write_all(&bytes).expect("writable");
        }
    }
}

/// What happens to an index before it is opened again.
type Damage = (&'static str, fn(&SearchService));

#[test]
fn every_route_that_needs_the_index_waits_until_it_is_built() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let data = tempfile::tempdir().expect("a folder");
    let server = Server::bind_with(config(data.path()), Arc::new(SystemClock)).expect("free ports");
    let served = server.served();
    let search = Arc::clone(served.search_service.as_ref().expect("it is on"));
    let mirror = Arc::clone(&served.store.mirror);
    runtime.block_on(async {
        commit(&served, 1).await;
        commit(&served, 2).await;
    });
    // Nothing is written while the test has the turn.
    let turn = runtime.block_on(search.turn.lock());
    let running = server.in_background();
    let address = running.public_addr;
    check_building(address, "before the first build");
    let turn_over = |turn| {
        drop(turn);
        let settled_secs = runtime.block_on(settled_secs(&served));
        runtime.block_on(search.follow(&mirror, settled_secs)).expect("writable");
    };
    turn_over(turn);
    check_built(address, "after the first build");
    let damages: [Damage; 4] = [
        ("a rebuild", |search| search.remove().expect("writable")),
        ("an earlier format", |search| {
            end(search);
            std::fs::write(search.folder.join("meta.json"), b"{\"version\": 0}").expect("writable");
        }),
        ("other bytes", |search| {
            end(search);
            damage(search, |name| name.ends_with(".idx") || name.ends_with(".store"));
        }),
        ("a damaged list of files", |search| {
            end(search);
            damage(search, |name| name == "meta.json");
        }),
    ];
    for (name, damage) in damages {
        let turn = runtime.block_on(search.turn.lock());
        damage(&search);
        check_building(address, name);
        search.opened().expect("a writable folder");
        check_building(address, &format!("{name}, opened"));
        turn_over(turn);
        check_built(address, &format!("after {name}"));
    }
    let settled_secs = runtime.block_on(settled_secs(&served));
    runtime.block_on(search.rebuild(&mirror, settled_secs)).expect("writable");
    check_built(address, "after a rebuild on request");
    running.stop();
}

/// The number of records that a search finds.
async fn found(search: &SearchService) -> Result<u64, IndexError> {
    let request = SearchHits {
        query: Query::All,
        filter: RecordFilter::default(),
        ranking: Ranking::Recent,
        offset: 0,
        count_max: 1,
        with_facets: false,
    };
    let found = search.searches.run(move |index| index.search(&request)).await?;
    Ok(found.total.records)
}

#[tokio::test]
async fn a_commit_is_found_after_one_interval_and_one_write() {
    let data = tempfile::tempdir().expect("a folder");
    let server = Server::bind_with(config(data.path()), Arc::new(SystemClock)).expect("free ports");
    let served = server.served();
    let search = Arc::clone(served.search_service.as_ref().expect("it is on"));
    let indexing = SearchIndexing { served: Arc::clone(&served), search: Arc::clone(&search) };
    // The rest of the time is for the harvest's last write and for that of the index.
    let interval = SearchPolicy::default().commit_interval;
    assert!(2 * interval < FOUND_WITHIN, "{interval:?}");
    let mut failures = 0;
    for number in 1..=3 {
        commit(&served, number).await;
        assert_eq!(indexing.run_once(&mut failures).await, Some(interval));
        assert_eq!(found(&search).await.expect("it is built"), number as u64);
    }
    search.begin_closing();
    assert_eq!(indexing.run_once(&mut failures).await, None, "another process has the folder");
}
