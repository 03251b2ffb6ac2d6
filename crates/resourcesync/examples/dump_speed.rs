//! Measures resource dumps beside `zip -1` over the same files.
//!
//! `cargo run --profile dist -p oaimend-resourcesync --example dump_speed FOLDER` needs `zip` and 500 MB in FOLDER. The runs of
//! both alternate, and the medians are printed. The metadata are made from the stored records by the code of the server.

#[path = "../../../src/serve/pages/records/record_xml.rs"]
mod record_xml;

use oaimend_base::clock::uptime;
use oaimend_oai::UnixSecs;
use oaimend_resourcesync::{
    FormatAddress, Limits, ListDocument, ListKind, ListUrls, PartStream, Resources, SyncTarget,
    SyncedCollection,
};
use oaimend_store::{
    CompleteHarvest, MirrorError, MirrorStore, NewRecord, PageCommit, Prefix, RecordRepairs, RecordStatus,
    RepositoryId, StoredRecord,
};
use oaimend_store_local::RecordLog;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const RECORDS: usize = 50_000;
const PAGE_RECORDS: usize = 1_000;
const RUNS: usize = 3;
const STAMP: UnixSecs = UnixSecs(1_700_000_000);

#[derive(Debug)]
struct Metadata;

impl Resources for Metadata {
    fn url(&self, identifier: &str) -> String {
        format!("http://x.example/x/record/{identifier}?raw=oai_dc")
    }

    fn record_url(&self, identifier: &str) -> String {
        format!("http://x.example/x?verb=GetRecord&metadataPrefix=oai_dc&identifier={identifier}")
    }

    fn metadata(&self, record: &StoredRecord) -> Result<Option<String>, MirrorError> {
        record_xml::raw_metadata(record).map_err(|_| MirrorError::Damaged)
    }

    fn media_type(&self) -> &'static str {
        "application/xml"
    }
}

/// A record of about 2 KB. Its words differ from those of other records.
fn record(number: usize) -> NewRecord {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut words = |count: usize| -> String {
        (0..count).map(|_| format!("{} ", WORDS[random.usize(..WORDS.len())])).collect()
    };
    let xml = format!(
        "<record xmlns=\"http://www.openarchives.org/OAI/2.0/\"><header><identifier>oai:x:{number}</identifier>\
         <datestamp>2023-01-01</datestamp></header><metadata><oai_dc:dc \
         xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
         http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"><dc:title>{}</dc:title><dc:creator>{}</dc:creator>\
         <dc:description>{}</dc:description><dc:identifier>https://x.example/{number}</dc:identifier></oai_dc:dc></metadata></record>",
        words(10),
        words(2),
        words(180)
    );
    NewRecord {
        identifier: format!("oai:x:{number}"),
        datestamp_secs: STAMP,
        set_specs: Vec::new(),
        status: RecordStatus::Live,
        content_hash: number as u64,
        bytes: xml.into_bytes().into(),
        repairs: RecordRepairs::default(),
    }
}

const WORDS: &[&str] = &[
    "tides",
    "ferries",
    "harbour",
    "timetable",
    "analysis",
    "measurement",
    "method",
    "of",
    "the",
    "and",
    "in",
    "coastal",
    "erosion",
    "sediment",
    "transport",
    "model",
    "numerical",
    "results",
    "show",
    "that",
    "significant",
    "waves",
    "height",
    "period",
    "storm",
    "surge",
    "barrier",
    "design",
    "estuary",
    "salinity",
    "gradient",
    "mixing",
    "turbulence",
    "boundary",
    "layer",
    "flow",
    "velocity",
    "profile",
    "sensor",
    "data",
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("expected a folder")?;
    let folder = Path::new(&folder).join("dump-speed");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("files"))?;
    let store: Arc<dyn MirrorStore> = Arc::new(RecordLog::open(&folder)?);
    for first in (0..RECORDS).step_by(PAGE_RECORDS) {
        let mut progress = store.progress(RepositoryId("x"), Prefix("oai_dc")).await?;
        progress.last_complete = Some(CompleteHarvest { from_secs: STAMP, lead_secs: 0 });
        store
            .commit(PageCommit {
                repository: "x".to_owned(),
                prefix: "oai_dc".to_owned(),
                stamp_secs: STAMP,
                records: (first..first + PAGE_RECORDS).map(record).collect(),
                progress,
                occurrences: Vec::new(),
            })
            .await?;
    }
    let format = FormatAddress { repository: "x".to_owned(), prefix: "oai_dc".to_owned() };
    let urls = ListUrls { base: String::new(), format, repository: "http://x.example/x".to_owned() };
    let collection = SyncedCollection::open(store, ("x", "oai_dc"), STAMP, Limits::default()).await?;
    let bytes = write_files(&folder)?;
    let (mut ours, mut zips) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let start = uptime();
        let zipped = dump(&collection, &urls, &folder).await?;
        ours.push(uptime() - start);
        let start = uptime();
        let zip = folder.join("files.zip");
        let _ = fs::remove_file(&zip);
        let done = Command::new("zip")
            .args(["-1", "-q", "-r"])
            .arg(&zip)
            .arg("files")
            .current_dir(&folder)
            .status()?;
        zips.push(uptime() - start);
        println!("{zipped} bytes, zip: {} bytes, {done}", fs::metadata(&zip)?.len());
    }
    ours.sort();
    zips.sort();
    let rate = |secs: f64| bytes as f64 / 1e6 / secs;
    let (ours, zips) = (ours[RUNS / 2].as_secs_f64(), zips[RUNS / 2].as_secs_f64());
    println!("{RECORDS} records, {bytes} bytes");
    println!("dump {:.1} MB/s, zip -1 {:.1} MB/s, ratio {:.2}", rate(ours), rate(zips), zips / ours);
    Ok(())
}

/// Writes the metadata as files, and returns their length.
fn write_files(folder: &Path) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    for number in 0..RECORDS {
        let new = record(number);
        let stored = StoredRecord {
            identifier: new.identifier,
            datestamp_secs: new.datestamp_secs,
            stamp_secs: STAMP,
            sequence: 0,
            set_specs: [].into(),
            status: new.status,
            bytes: new.bytes,
            layout: None,
        };
        let metadata = record_xml::raw_metadata(&stored).map_err(|_| "unreadable")?.ok_or("no metadata")?;
        fs::write(folder.join(format!("files/{number}.xml")), &metadata)?;
        bytes += metadata.len() as u64;
    }
    Ok(bytes)
}

/// Writes all ZIP files of the dump, and returns their length.
async fn dump(collection: &SyncedCollection, urls: &ListUrls, folder: &Path) -> Result<u64, Box<dyn Error>> {
    let resources: Arc<dyn Resources> = Arc::new(Metadata);
    let list = ListDocument::of(collection, ListKind::ResourceDump, urls, Arc::clone(&resources)).await?;
    let ListDocument::Parts(xml) = list else { return Err("expected the names of ZIP files".into()) };
    let mut bytes = 0;
    for location in xml.split("<loc>").skip(1).filter_map(|rest| rest.split('<').next()) {
        let name = location.rsplit('/').next().unwrap_or_default();
        let Some(SyncTarget::Part(_, kind, part)) = SyncTarget::read("x", "oai_dc", name) else {
            return Err("expected a part".into());
        };
        let mut stream = PartStream::of_part(collection, (kind, part), urls, Arc::clone(&resources)).await?;
        let mut file = fs::File::create(folder.join("dump.zip"))?;
        while let Some(piece) = stream.next_piece().await? {
            bytes += piece.len() as u64;
            file.write_all(&piece)?;
        }
    }
    Ok(bytes)
}
