//! The memory of `oaimend serve` with many clients and long pages.

use crate::fixtures::program::Program;
use crate::fixtures::source::{Harvester, Reply, Source, page_of};
use std::collections::BTreeSet;
use std::time::Duration;

const CLIENTS: usize = 40;
/// Each page is longer than the part of it that stays in memory.
const RECORDS: usize = 8_000;
/// Far below the length of all pages, and below one heap of 2 MiB for each thread that they could use.
const PEAK_MIB_MAX: u64 = 150;
/// The longest wait for the pages of all clients.
const SPOOLED_WITHIN: Duration = Duration::from_secs(120);

/// The peak resident memory of a process, in MiB.
pub(super) fn peak_mib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("digits") >> 10
}

/// Starts the program in front of a source, and sends the requests of all clients, each for another list.
fn requested(folder: &std::path::Path, source: &Source) -> (Program, Vec<Harvester>) {
    std::fs::create_dir(folder.join("mappings")).expect("a writable folder");
    let mapping = format!(
        "base_url = \"{}\"\nallow_private = true\npoliteness.list_requests_max = {CLIENTS}\nlimits.first_record_timeout_secs = 5\n",
        source.base_url()
    );
    std::fs::write(folder.join("mappings/x.toml"), mapping).expect("a writable folder");
    let program = Program::start(folder, &[]);
    let request = |day: usize| {
        let list = format!(
            "/x?verb=ListRecords&metadataPrefix=oai_dc&until=2026-{:02}-{:02}",
            day / 28 + 1,
            day % 28 + 1
        );
        Harvester::ask(program.address(), &format!("GET {list} HTTP/1.1\r\nHost: x\r\n\r\n"))
    };
    let clients = (0..CLIENTS).map(request).collect();
    (program, clients)
}

#[test]
fn clients_that_do_not_read_need_little_memory() {
    let page = page_of(RECORDS);
    let source = Source::start(move |_, _| Reply::xml(page.clone()));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (program, mut clients) = requested(folder.path(), &source);
    for client in &mut clients {
        assert_eq!(client.head().status, 200);
    }
    // The pages are complete in the data folder, although nobody reads them. On a busy machine the first clients may have
    // lost their connections before the last page is there.
    let mut spooled = BTreeSet::new();
    let until = oaimend_base::clock::uptime() + SPOOLED_WITHIN;
    while spooled.len() < CLIENTS {
        assert!(oaimend_base::clock::uptime() < until, "{} of {CLIENTS} pages", spooled.len());
        let files = oaimend_test_support::files_below(&folder.path().join("data/cache"));
        spooled.extend(
            files.into_iter().filter(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0)),
        );
        std::thread::yield_now();
    }
    let peak = peak_mib(program.id());
    println!("{peak} MiB");
    assert!(peak < PEAK_MIB_MAX, "{peak} MiB");
}

#[test]
fn pages_that_break_off_need_little_memory() {
    let page = page_of(RECORDS);
    let source = Source::start(move |_, _| {
        let whole = page.len();
        Reply::new(200, &format!("Content-Length: {whole}")).send(page.split_at(whole - 1000).0).reset()
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (program, mut clients) = requested(folder.path(), &source);
    for client in &mut clients {
        assert_eq!(client.head().status, 200);
    }
    let read_all = |mut client: Harvester| {
        let mut end = Vec::new();
        while let Some(chunk) = client.chunk().filter(|chunk| !chunk.is_empty()) {
            end = chunk;
        }
        String::from_utf8_lossy(&end).into_owned()
    };
    let threads: Vec<_> =
        clients.into_iter().map(|client| std::thread::spawn(move || read_all(client))).collect();
    for thread in threads {
        let end = thread.join().expect("the client reads");
        assert!(end.ends_with("</OAI-PMH>"), "the list is closed with a continuation token: {end}");
    }
    let peak = peak_mib(program.id());
    println!("{peak} MiB");
    assert!(peak < PEAK_MIB_MAX, "{peak} MiB");
}
