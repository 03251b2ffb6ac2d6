//! What the tests of the cache share: sources whose answers can be told apart,
//! and proxies that keep more or less of them.
#![allow(dead_code, reason = "each test binary uses its part")]

use oaimend::config::{Config, Limits, Mapping};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::proxy::Proxy;
use super::source::{Got, Harvester, Reply, Source, fetch, page_of, record};

pub(crate) const IDENTIFY: &str = "/x?verb=Identify";
pub(crate) const TOKEN_PAGE: &str = "/x?verb=ListRecords&resumptionToken=t1";

/// An answer to Identify; `name` tells one from another.
pub(crate) fn identify(name: &str) -> String {
    let page = page_of(0);
    let (head, _) = page.split_once("<request").expect("it has one");
    format!(
        "{head}<request verb=\"Identify\">http://source.example/oai</request>\n<Identify>\
         <repositoryName>{name}</repositoryName><baseURL>http://source.example/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>a@example.org</adminEmail>\
         <earliestDatestamp>2000-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>\
         <granularity>YYYY-MM-DD</granularity></Identify>\n</OAI-PMH>\n"
    )
}

/// A source whose answers are numbered by what it was asked.
pub(crate) fn numbered() -> Source {
    Source::start(|number, asked| match asked.target.contains("verb=Identify") {
        true => Reply::xml(identify(&format!("answer {number}"))),
        false => Reply::xml(page_of(number + 1)),
    })
}

pub(crate) fn map(config: &mut Config, source: &Source, tune: impl FnOnce(&mut Mapping)) {
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    tune(&mut mapping);
    config.repositories.fix(mapping);
}

/// A proxy whose pages are old at once.
pub(crate) fn forgetful(source: &Source) -> Proxy {
    Proxy::with(|config| {
        config.cache.fresh = Duration::ZERO;
        map(config, source, |_| {});
    })
}

pub(crate) fn in_flight(proxy: &Proxy) -> usize {
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("oaimend_requests_in_flight "));
    line.and_then(|count| count.parse().ok()).expect("it is counted")
}

pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// The files that the cache keeps for a repository.
pub(crate) fn kept(proxy: &Proxy) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(proxy.data().join("cache/x"));
    listed.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

pub(crate) fn purge(proxy: &Proxy, path: &str) -> Got {
    let request = format!("PURGE {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    Harvester::ask(proxy.admin(), &request).rest()
}

pub(crate) fn request(address: SocketAddr, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
}

/// A long page whose first record is sent at once, and the rest when it is told to.
pub(crate) fn long_in_two(count: usize) -> (Sender<()>, Source) {
    let (go, wait): (_, Receiver<()>) = channel();
    let wait = Mutex::new(Some(wait));
    let source = Source::start(move |_, _| {
        let page = page_of(count);
        let at = page.find(&record(1)).expect("it is there");
        let wait = wait.lock().expect("no panic").take().expect("asked once");
        let (first, rest) = (page[..at].to_owned(), page[at..].to_owned());
        Reply::new(200, &format!("Content-Length: {}", page.len())).send(first).wait(wait).send(rest)
    });
    (go, source)
}
