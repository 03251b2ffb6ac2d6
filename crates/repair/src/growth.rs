//! The work of the engine grows linearly with its input, for every shape of hostile input.
//!
//! Work is the number of bytes that searches and lexemes read. It does not depend on the machine.

use crate::lex::search::bytes_read;
use crate::{RepairConfig, Repairer, Sink};
use oaimend_oai::RequestEcho;
use oaimend_test_support::hostile_pages::{page, series};
use oaimend_test_support::{each, report};

/// The longer input has this many times the bytes of the shorter one.
const TIMES: usize = 4;
/// The largest factor by which its work may be greater.
const GROWTH_MAX: u64 = 6;
/// Maximum number of bytes that are read for one byte of the longer input. Growth alone does not notice work that is
/// quadratic up to a limit, such as that of the head.
const READS_PER_BYTE_MAX: u64 = 2_000;

struct DiscardSink;

impl Sink for DiscardSink {
    fn write(&mut self, _: &[u8]) {}
}

/// The bytes of damage in the shorter input. The longer one stays below the limits of its place.
fn damage_bytes(place: &str) -> usize {
    match place {
        "before the root" => 14 << 10,
        "head" | "head without request" | "error" => 50 << 10,
        _ => 128 << 10,
    }
}

fn work(input: &[u8], config: &RepairConfig, piece: usize) -> u64 {
    let before = bytes_read();
    let mut engine = Repairer::new(config);
    input.chunks(piece).for_each(|piece| engine.push(piece, &mut DiscardSink));
    engine.finish(&mut DiscardSink);
    bytes_read() - before
}

#[test]
fn work_is_linear_in_page_length() {
    let request = RequestEcho {
        base_url: "http://repository.example.org/oai".to_owned(),
        arguments: vec![("verb".to_owned(), "ListRecords".to_owned())],
    };
    let with_request = RepairConfig { request: Some(request.into()), ..RepairConfig::default() };
    let series = series();
    let failures = each(&series, |(place, fragment)| {
        let short = page(place, fragment, damage_bytes(place));
        let long = page(place, fragment, TIMES * damage_bytes(place));
        let ways = [("alone", &RepairConfig::default()), ("with the request", &with_request)];
        ways.into_iter().flat_map(|way| [(way, usize::MAX), (way, 4 << 10)]).find_map(
            |((about, config), piece)| {
                let (less, more) = (work(&short, config, piece), work(&long, config, piece));
                let per_byte = more / long.len() as u64;
                (more > GROWTH_MAX * less || per_byte > READS_PER_BYTE_MAX).then(|| {
                    format!(
                        "{place} {}, {about}, in pieces of {piece} bytes: {less} to {more} bytes read, {per_byte} per byte",
                        fragment.escape_ascii()
                    )
                })
            },
        )
    });
    report("shapes", series.len(), &failures);
}
