//! Random pages with misplaced parts, and random configurations of the engine.

use oaimend_oai::RequestEcho;
use oaimend_oai::datestamp::Granularity;
use oaimend_repair::catalog::CATALOG;
use oaimend_repair::{
    Ending, IdentifyValues, Origin, ProvenanceScope, RepairConfig, RepairId, RepairSet, RepositoryFacts,
};

use super::damage;
use super::random::{Random, response};
use super::v1::v1_page;

/// A random configuration: mostly with a request of our own, often with repairs off.
pub fn config(random: &mut Random) -> RepairConfig {
    let mut config = RepairConfig::default();
    config.off = off(random);
    config.enabled = if random.chance(10) { optional_repairs() } else { RepairSet::EMPTY };
    config.request = random.chance(80).then(|| own_request(random).into());
    config.repository = if random.chance(25) { facts(random) } else { RepositoryFacts::default() };
    config.response_date = random.chance(50).then(|| "2026-05-06T07:08:09Z".to_owned());
    config.provenance = random.chance(15).then(|| {
        let scope = if random.chance(50) { ProvenanceScope::All } else { ProvenanceScope::Altered };
        Origin::new(scope, "http://source.example.org/oai?a=1&b=2", "2026-01-02T03:04:05Z")
    });
    config.identify = if random.chance(15) { identify() } else { IdentifyValues::default() };
    config.ending = if random.chance(30) { Ending::Abort } else { Ending::Close };
    config.request_token = random.chance(30).then(|| random.pick(&["", "a&b", "t"]).to_owned());
    config
}

fn off(random: &mut Random) -> RepairSet {
    let some = match random.below(10) {
        0..=4 => return RepairSet::EMPTY,
        5..=8 => 1 + random.below(4),
        _ => 10 + random.below(20),
    };
    (0..some).map(|_| CATALOG[random.below(CATALOG.len())].id).collect()
}

fn optional_repairs() -> RepairSet {
    let all = CATALOG.iter().map(|entry| entry.id);
    all.filter(|id: &RepairId| id.is_optional()).collect()
}

const VERBS: &[&str] = &[
    "ListRecords",
    "ListRecords",
    "ListRecords",
    "GetRecord",
    "GetRecord",
    "ListIdentifiers",
    "ListSets",
    "ListMetadataFormats",
    "Identify",
];

fn own_request(random: &mut Random) -> RequestEcho {
    let mut arguments = Vec::new();
    if random.chance(90) {
        let verb = random.pick(VERBS);
        arguments.push(("verb".to_owned(), verb.to_owned()));
        let optional: &[(&str, &str, usize)] = match verb {
            "GetRecord" => &[("identifier", "", 90), ("metadataPrefix", "oai_dc", 90)],
            "ListRecords" | "ListIdentifiers" => &[
                ("metadataPrefix", "oai_dc", 60),
                ("from", "2025-01-01", 20),
                ("set", "maps", 20),
                ("resumptionToken", "a&b", 20),
            ],
            "ListMetadataFormats" => &[("identifier", "", 50)],
            _ => &[],
        };
        for (name, value, percent) in optional {
            if random.chance(*percent) {
                let number = random.below(4);
                let identifier = random.chance(80).then(|| format!("oai:example.org:{number}"));
                let identifier = identifier.unwrap_or_else(|| "oai:x:1".to_owned());
                let value = if *name == "identifier" { identifier } else { (*value).to_owned() };
                arguments.push(((*name).to_owned(), value));
            }
        }
    }
    RequestEcho { base_url: "http://proxy.example.org/x?y=1&z=2".into(), arguments }
}

fn facts(random: &mut Random) -> RepositoryFacts {
    let mut facts = RepositoryFacts::default();
    facts.granularity = Some(if random.chance(50) { Granularity::Day } else { Granularity::Second });
    facts.lowest_datestamp = random.chance(70).then(|| "2001-02-03".into());
    facts.oldest_seen = random.chance(50).then(|| "1999-12-31".into());
    facts
}

/// Values for all fields of Identify.
pub fn identify() -> IdentifyValues {
    let mut values = IdentifyValues::default();
    values.repository_name = Some("Maps & <Plans>".into());
    values.admin_email = Some("oai@example.org".into());
    values.earliest_datestamp = Some("2002-01-01".into());
    values.deleted_record = Some("persistent".into());
    values.granularity = Some("YYYY-MM-DD".into());
    values
}

/// A page of 2.0 or 1.1, alone or followed by another one, with misplaced parts.
pub fn page(random: &mut Random) -> Vec<u8> {
    let bytes = one_page(random);
    misplace_parts(random, bytes)
}

/// Misplaces parts of an existing page.
pub fn misplace_parts(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    disorder(random, &mut bytes);
    if random.chance(15) {
        let mut second = if random.chance(50) { bytes.clone() } else { one_page(random) };
        if random.chance(30) {
            disorder(random, &mut second);
        }
        bytes.extend_from_slice(&second);
    }
    if random.chance(30) {
        damage::damage(random, &mut bytes);
    }
    bytes
}

fn one_page(random: &mut Random) -> Vec<u8> {
    if random.chance(30) { v1_page(random).bytes() } else { response(random) }
}

/// Inserts parts of the envelope at wrong positions, a few times.
fn disorder(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.below(6) {
        match random.below(10) {
            0 | 1 => rename(random, bytes),
            2 => take_out(random, bytes),
            3 => {
                // Repeats a part, also an item.
                if let Some((start, end)) = element(random, bytes) {
                    let copy = bytes[start..end].to_vec();
                    let at = place(random, bytes);
                    bytes.splice(at..at, copy);
                }
            }
            _ => {
                let at = place(random, bytes);
                bytes.splice(at..at, random.pick(STRAYS).bytes());
            }
        }
    }
}

const STRAYS: &[&str] = &[
    "<error code=\"noRecordsMatch\">none</error>",
    "<error code=\"badArgument\">no</error>",
    "<error code=\"idDoesNotExist\"/>",
    "<error code=\"serviceUnavailable\">out of memory</error>",
    "<error>no such argument</error>",
    "<error code=\"noRecordsMatch\">none",
    "Warning: timeout in /var/www/oai.php",
    "<b>Fatal error</b>: out of memory",
    "<foo/>",
    "<foo>",
    "</foo>",
    "<foo><record/></foo>",
    "<!-- a -->",
    "<!-- a -- b -->",
    "<?php x ?>",
    "<![CDATA[x]]>",
    "<resumptionToken>a</resumptionToken>",
    "<resumptionToken/>",
    "<request verb=\"GetRecord\" identifier=\"oai:example.org:1\">http://example.org/oai</request>",
    "<request/>",
    "<responseDate>2026-03-01</responseDate>",
    "<ListRecords>",
    "</ListRecords>",
    "<GetRecord>",
    "</GetRecord>",
    "<ListRecords/>",
    "<ListIdentifiers>",
    "</ListIdentifiers>",
    "</OAI-PMH>",
    "<OAI-PMH>",
    "<record>",
    "</record>",
    "<header><identifier>oai:example.org:9</identifier><datestamp>2025-01-01</datestamp></header>",
    "<identifier>oai:example.org:9</identifier>",
    "<record><header><identifier>oai:example.org:8</identifier><datestamp>2025-01-01</datestamp></header></record>",
    "<set><setSpec>a</setSpec><setName>a</setName></set>",
];

/// Element names of the envelope.
const NAMES: &[&str] = &[
    "OAI-PMH",
    "responseDate",
    "requestURL",
    "request",
    "ListRecords",
    "GetRecord",
    "ListIdentifiers",
    "ListSets",
    "ListMetadataFormats",
    "Identify",
    "error",
    "resumptionToken",
    "record",
    "header",
    "set",
    "metadataFormat",
];

fn find_all(bytes: &[u8], needle: &str) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, needle.as_bytes()).collect()
}

/// The position before or after some tag of the envelope.
fn place(random: &mut Random, bytes: &[u8]) -> usize {
    let name = random.pick(NAMES);
    let open = if random.chance(50) { "</" } else { "<" };
    let tags = find_all(bytes, &format!("{open}{name}"));
    if tags.is_empty() {
        return random.below(bytes.len() + 1);
    }
    let at = tags[random.below(tags.len())];
    let behind = memchr::memchr(b'>', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
    if random.chance(50) { at } else { behind }
}

/// A complete element of the envelope.
fn element(random: &mut Random, bytes: &[u8]) -> Option<(usize, usize)> {
    let name = random.pick(NAMES);
    let tags = find_all(bytes, &format!("<{name}"));
    let start = *tags.get(random.below(tags.len()))?;
    let close = format!("</{name}>");
    let end = memchr::memmem::find(&bytes[start..], close.as_bytes())?;
    Some((start, start + end + close.len()))
}

fn take_out(random: &mut Random, bytes: &mut Vec<u8>) {
    let name = random.pick(&["responseDate", "request", "requestURL", "record", "header"]);
    let Some(start) = find_all(bytes, &format!("<{name}")).first().copied() else { return };
    let close = format!("</{name}>");
    if let Some(end) = memchr::memmem::find(&bytes[start..], close.as_bytes()) {
        bytes.drain(start..start + end + close.len());
    }
}

/// Renames the verb element.
fn rename(random: &mut Random, bytes: &mut Vec<u8>) {
    let verb = random.pick(VERBS);
    let name = random.pick(&[
        "ListRecords",
        "GetRecord",
        "ListIdentifiers",
        "ListSets",
        "ListMetadataFormats",
        "ListRecord",
        "GetRecords",
        "ListIdentifier",
        "Records",
    ]);
    for mark in ["<", "</"] {
        let from = format!("{mark}{verb}>");
        for at in find_all(bytes, &from).into_iter().rev() {
            let to = format!("{mark}{name}>");
            bytes.splice(at..at + from.len(), to.bytes());
        }
    }
}
