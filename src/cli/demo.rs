//! `oaimend demo`: runs a broken provider and the proxy in front of it.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use oaimend::config::{Config, Mapping, ServeFrom};
use oaimend::demo::{CATALOGUE, Fetched, Provider, fetch};
use oaimend::serve::{Running, Server};
use oaimend_base::clock::{Clock as _, SystemClock};
use oaimend_base::error::Error;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_pages::record::{RecordAddress, RepositoryAddress};
use oaimend_upstream::settings::Limits;
use tokio::signal::unix::{SignalKind, signal};

use super::exit::{Exit, Failure, print};
use super::paint::Paint;

/// The ports of the proxy, its admin listener and the provider, if they are free.
const PORT: u16 = 8080;
const ADMIN_PORT: u16 = 8081;
const PROVIDER_PORT: u16 = 8082;
/// Repository id of the provider.
const ID: &str = "demo";
/// Repository id of the catalogue.
const CATALOGUE_ID: &str = "catalogue";
/// A record whose page the demonstration names.
const RECORD: &str = "oai:demo.example.org:4";
/// A URL that this record has, and one of the catalogue names.
const NAMED: &str = "http%3A%2F%2Fdemo.example.org%2Farticle%3Fid%3D4%26view%3Dfull";
/// A word of this record.
const SEARCHED: &str = "harbour";
const FIRST_PAGE: &str = "verb=ListRecords&metadataPrefix=oai_dc";
/// How long the proxy retries a request before the mirror answers.
const FAILOVER_AFTER: Duration = Duration::from_secs(2);
/// Maximum number of attempts to find the mirror and the search index complete, and the time between two of them.
const LOOKS_MAX: usize = 200;
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Starts a broken data provider and the proxy in front of it, on loopback, and prints URLs to try
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Prints one page before and after repair, and a list during an outage, and exits
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(arguments: &DemoArguments) -> Result<Exit, Failure> {
    let loopback = Path::new("127.0.0.1");
    let provider =
        Provider::start(PROVIDER_PORT).map_err(|error| Failure::io("listen on", loopback, &error))?;
    let data = Data::new();
    let proxy = start_proxy(&data.0, &provider.base_url())?;
    let demo = Demo { base_url: format!("http://{}/{ID}", proxy.public_addr), proxy, provider };
    let paint = Paint::for_stream(&io::stdout());
    print(demo.compare_first_page(paint)?.as_bytes())?;
    print(demo.list_during_outage(paint)?.as_bytes())?;
    demo.wait_for_search()?;
    print(demo.list_urls(paint).as_bytes())?;
    if !arguments.once {
        wait_for_signal()?;
    }
    demo.proxy.stop();
    Ok(Exit::Success)
}

/// Starts the proxy on its default ports, or on free ones if those are taken.
fn start_proxy(data: &Path, base_url: &str) -> Result<Running, Failure> {
    let bind = |port, admin_port| {
        let mut config = Config::on_loopback(data);
        config.listen = SocketAddr::from(([127, 0, 0, 1], port));
        config.admin = Some(SocketAddr::from(([127, 0, 0, 1], admin_port)));
        config.repositories.add_fixed(mapping(base_url)?);
        config.repositories.add_fixed(catalogue(data)?);
        Server::bind(config)
    };
    let server = match bind(PORT, ADMIN_PORT) {
        Err(Error::Listen { .. }) => bind(0, 0),
        bound => bound,
    };
    Ok(server?.in_background())
}

/// The mapping of the provider: the mirror answers if it is down.
fn mapping(base_url: &str) -> Result<Mapping, Error> {
    let limits = Limits { first_record_timeout: FAILOVER_AFTER, ..Limits::default() };
    let mut mapping = Mapping::new(ID, base_url, &limits).map_err(Error::Usage)?;
    mapping.serve = ServeFrom::LiveThenMirror;
    mapping.mirror = Some(MirrorSettings::default());
    Ok(mapping)
}

/// The mapping of the catalogue, a static repository whose file is written into the data folder.
fn catalogue(data: &Path) -> Result<Mapping, Error> {
    let path = data.join("catalogue.xml");
    let written = std::fs::create_dir_all(data).and_then(|()| std::fs::write(&path, CATALOGUE));
    written.map_err(|error| Error::Usage(format!("{} cannot be written: {error}", path.display())))?;
    let mut mapping =
        Mapping::of_static_file(CATALOGUE_ID, &path, &Limits::default()).map_err(Error::Usage)?;
    mapping.mirror = Some(MirrorSettings::default());
    Ok(mapping)
}

/// The running provider and proxy.
struct Demo {
    proxy: Running,
    provider: Provider,
    base_url: String,
}

impl Demo {
    /// Lists the lines of the first page that the proxy changes.
    fn compare_first_page(&self, paint: Paint) -> Result<String, Failure> {
        let before = page(&self.provider.base_url(), FIRST_PAGE)?.body;
        let after = page(&self.base_url, FIRST_PAGE)?.body;
        let mut text = String::from("The first page of a broken repository, before and after repair:\n\n");
        for (was, is) in before.split(|byte| *byte == b'\n').zip(after.split(|byte| *byte == b'\n')) {
            let (was, is) = (escape_line(was), escape_line(is));
            // The proxy replaces the URL in `request`; that is a rewrite, not a repair.
            if was != is && !was.contains("<request") {
                writeln!(text, "  {}", paint.bad(format_args!("- {was}"))).expect("a String takes all text");
                writeln!(text, "  {}", paint.good(format_args!("+ {is}"))).expect("a String takes all text");
            }
        }
        Ok(text)
    }

    /// Stops the provider after the first page of a list, and lists the pages that a harvester receives.
    fn list_during_outage(&self, paint: Paint) -> Result<String, Failure> {
        self.wait_for_mirror()?;
        let mut text = String::from("\nA list while the repository is down:\n\n");
        let (mut query, mut number) = (FIRST_PAGE.to_owned(), 1);
        loop {
            let Fetched { head, body } = page(&self.base_url, &query)?;
            let body = String::from_utf8_lossy(&body);
            let records = body.matches("<header").count();
            let origin = if head.contains("detail=mirror") { "mirror" } else { "repository" };
            writeln!(
                text,
                "  {}  {records} records from the {origin}",
                paint.strong(format_args!("page {number}"))
            )
            .expect("a String takes all text");
            let Some(token) = token_of(&body) else { break };
            query = format!("verb=ListRecords&resumptionToken={token}");
            if number == 1 {
                self.provider.stop();
                text.push_str("  (the repository stops)\n");
            }
            number += 1;
        }
        self.provider.resume();
        Ok(text)
    }

    /// Waits until the first harvest of the mirror is complete.
    fn wait_for_mirror(&self) -> Result<(), Failure> {
        let mirror = format!("http://{}/_mirror/{ID}?{FIRST_PAGE}", self.proxy.public_addr);
        wait_for(&mirror, "the first harvest did not end", |fetched| {
            fetched.head.split(' ').nth(1) == Some("200")
        })
    }

    /// Waits until the search finds the record whose page the demonstration names.
    fn wait_for_search(&self) -> Result<(), Failure> {
        let search = format!("http://{}/_search.json?q={SEARCHED}", self.proxy.public_addr);
        let is_found = |fetched: &Fetched| String::from_utf8_lossy(&fetched.body).contains(RECORD);
        wait_for(&search, "the mirror was not indexed", is_found)
    }

    fn list_urls(&self, paint: Paint) -> String {
        let (broken, repaired) = (self.provider.base_url(), &self.base_url);
        let mut text = String::new();
        let mut line = |label: &str, value: &str| {
            writeln!(text, "  {}  {value}", paint.strong(format_args!("{label:<10}")))
                .expect("a String takes all text");
        };
        line("broken", &broken);
        line("repaired", repaired);
        let site = format!("http://{}", self.proxy.public_addr);
        let repository = RepositoryAddress { repository: ID };
        line("overview", &format!("{site}/"));
        line("repository", &repository.page(&site));
        line("records", &repository.records(&site));
        line("record", &RecordAddress { repository: ID, identifier: RECORD, format: None }.page(&site));
        line("search", &format!("{site}/_search?q={SEARCHED}"));
        line("index", &format!("curl '{site}/_index?{FIRST_PAGE}'"));
        line("resolver", &format!("{site}/_resolve/{NAMED}"));
        line("federation", &format!("curl '{site}/_federation?{FIRST_PAGE}'"));
        line("curl", &format!("curl '{repaired}?{FIRST_PAGE}'"));
        line("sickle", "python3 -m pip install Sickle");
        line(
            "harvester",
            &format!(
                "python3 -c \"from sickle import Sickle; [print(r.metadata['title']) for r in \
                 Sickle('{repaired}').ListRecords(metadataPrefix='oai_dc', ignore_deleted=True)]\""
            ),
        );
        if let Some(admin) = self.proxy.admin_addr {
            line("operators", &format!("http://{admin}/"));
            line("repairs", &format!("curl http://{admin}/-/repositories/{ID}/repairs"));
            line("quarantine", &format!("curl http://{admin}/-/repositories/{ID}/quarantine"));
        }
        format!("\n{text}")
    }
}

/// Fetches a URL until the response is the expected one.
fn wait_for(url: &str, problem: &str, is_expected: impl Fn(&Fetched) -> bool) -> Result<(), Failure> {
    let failure = |error: io::Error| Failure::io("read", Path::new(url), &error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failure)?;
    for _ in 0..LOOKS_MAX {
        if is_expected(&fetch(url).map_err(failure)?) {
            return Ok(());
        }
        runtime.block_on(async { SystemClock.pause(LOOK_INTERVAL).await });
    }
    Err(failure(io::Error::other(problem)))
}

fn page(base_url: &str, query: &str) -> Result<Fetched, Failure> {
    let url = format!("{base_url}?{query}");
    fetch(&url).map_err(|error| Failure::io("fetch", Path::new(&url), &error))
}

/// The resumptionToken of a page, if the list continues.
fn token_of(page: &str) -> Option<&str> {
    let (_, element) = page.split_once("<resumptionToken")?;
    let (tag, rest) = element.split_once('>')?;
    let (token, _) = rest.split_once("</resumptionToken>")?;
    (!tag.ends_with('/') && !token.is_empty()).then_some(token)
}

/// Escapes bytes that are not UTF-8, and control characters, as `\xE9`.
fn escape_line(line: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in line.trim_ascii().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                write!(shown, "\\x{:02X}", u32::from(c)).expect("a String takes all text");
            } else {
                shown.push(c);
            }
        }
        for byte in chunk.invalid() {
            write!(shown, "\\x{byte:02X}").expect("a String takes all text");
        }
    }
    shown
}

/// Waits for Ctrl-C or SIGTERM.
fn wait_for_signal() -> Result<(), Failure> {
    let waited = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            // Only from here on does a signal end the program in order, so the line is printed now.
            let printed = print(b"\nPress Ctrl-C to stop.\n");
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Ok(printed)
        })
    });
    waited.map_err(|error| Failure::io("wait for", Path::new("Ctrl-C"), &error))??;
    Ok(())
}

/// A data folder that is removed at the end.
struct Data(PathBuf);

impl Data {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("oaimend-demo-{}", std::process::id())))
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // A folder that cannot be removed is in the folder for temporary files and does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
