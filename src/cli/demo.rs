//! `oaimend demo`: a broken provider and the proxy in front of it, to look at.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use oaimend::config::Config;
use oaimend::demo::{Provider, fetch};
use oaimend::error::Error;
use oaimend::server::{Running, Server};
use tokio::signal::unix::{SignalKind, signal};

use super::exit::{Exit, Failure, print};
use super::paint::Paint;

/// Where the proxy, its admin pages and the provider listen, if nobody else does.
const PORT: u16 = 8080;
const ADMIN_PORT: u16 = 8081;
const PROVIDER_PORT: u16 = 8082;
/// Repository id of the provider.
const ID: &str = "demo";
const FIRST_PAGE: &str = "verb=ListRecords&metadataPrefix=oai_dc";

/// Starts a broken data provider and the proxy in front of it, on loopback, and shows what to try
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Shows one page before and after, and ends
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(arguments: &DemoArguments) -> Result<Exit, Failure> {
    let loopback = Path::new("127.0.0.1");
    let provider =
        Provider::start(PROVIDER_PORT).map_err(|error| Failure::io("listen on", loopback, &error))?;
    let data = Data::new();
    let proxy = start_proxy(&data.0, &provider.base_url())?;
    let place = Place { base_url: format!("http://{}/{ID}", proxy.public_addr), proxy, provider };
    let paint = Paint::for_stream(&io::stdout());
    print(place.before_and_after(paint)?.as_bytes())?;
    print(place.what_to_try(paint).as_bytes())?;
    if !arguments.once {
        stay_until_signal()?;
    }
    place.proxy.stop();
    Ok(Exit::Success)
}

/// The proxy on its usual ports, or on free ones if those are taken.
fn start_proxy(data: &Path, base_url: &str) -> Result<Running, Failure> {
    let bind = |port, admin_port| {
        let mut config = Config::on_loopback(data);
        config.listen = SocketAddr::from(([127, 0, 0, 1], port));
        config.admin = Some(SocketAddr::from(([127, 0, 0, 1], admin_port)));
        config.map(ID, base_url)?;
        Server::bind(config)
    };
    let server = match bind(PORT, ADMIN_PORT) {
        Err(Error::Listen { .. }) => bind(0, 0),
        bound => bound,
    };
    Ok(server?.in_background())
}

/// Where everything runs.
struct Place {
    proxy: Running,
    provider: Provider,
    base_url: String,
}

impl Place {
    /// The lines of the first page that are different behind the proxy.
    fn before_and_after(&self, paint: Paint) -> Result<String, Failure> {
        let page = |base_url: &str| {
            let url = format!("{base_url}?{FIRST_PAGE}");
            fetch(&url).map_err(|error| Failure::io("fetch", Path::new(&url), &error))
        };
        let (before, after) = (page(&self.provider.base_url())?, page(&self.base_url)?);
        let mut text =
            String::from("The first page of a broken repository, and what a harvester gets of it:\n\n");
        for (was, is) in before.split(|byte| *byte == b'\n').zip(after.split(|byte| *byte == b'\n')) {
            let (was, is) = (show(was), show(is));
            // The proxy says its own URL in `request`; that is no repair.
            if was != is && !was.contains("<request") {
                writeln!(text, "  {}", paint.bad(format_args!("- {was}"))).expect("a String takes all text");
                writeln!(text, "  {}", paint.good(format_args!("+ {is}"))).expect("a String takes all text");
            }
        }
        Ok(text)
    }

    fn what_to_try(&self, paint: Paint) -> String {
        let (broken, mended) = (self.provider.base_url(), &self.base_url);
        let mut text = String::new();
        let mut line = |label: &str, what: &str| {
            writeln!(text, "  {}  {what}", paint.strong(format_args!("{label:<10}")))
                .expect("a String takes all text");
        };
        line("broken", &broken);
        line("mended", mended);
        line("by hand", &format!("curl '{mended}?{FIRST_PAGE}'"));
        line(
            "harvester",
            &format!(
                "python3 -c \"from sickle import Sickle; [print(r.metadata['title']) \
                 for r in Sickle('{mended}').ListRecords(metadataPrefix='oai_dc')]\""
            ),
        );
        if let Some(admin) = self.proxy.admin_addr {
            line("repairs", &format!("curl http://{admin}/-/repositories/{ID}/repairs"));
            line("put aside", &format!("curl http://{admin}/-/repositories/{ID}/quarantine"));
        }
        format!("\n{text}")
    }
}

/// A line as a terminal can show it: bytes that are no UTF-8 and control characters as `\xE9`.
fn show(line: &[u8]) -> String {
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
fn stay_until_signal() -> Result<(), Failure> {
    let waited = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        runtime.block_on(async {
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut terminate = signal(SignalKind::terminate())?;
            // Only now does a signal end it in good order; whoever reads this may send one.
            let told = print(b"\nCtrl-C ends it.\n");
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Ok(told)
        })
    });
    waited.map_err(|error| Failure::io("wait for", Path::new("Ctrl-C"), &error))??;
    Ok(())
}

/// A folder for the proxy's state that goes with the demonstration.
struct Data(PathBuf);

impl Data {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("oaimend-demo-{}", std::process::id())))
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder for temporary files, where it may.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
