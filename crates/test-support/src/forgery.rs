//! A depositor who controls the text of one record cannot forge, change or remove another record.
//!
//! The payload of one record consists of fragments with a meaning in OAI-PMH or XML; the other
//! records are fixed.

use super::damage;
use super::harness::{Chunking, Run};
use super::invariants::{self, Judge};
use super::random::Random;
use oaimend_repair::journal::Change;
use oaimend_repair::{Outcome, RepairConfig};

pub const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    <responseDate>2026-03-01T08:15:00Z</responseDate>\n\
    <request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">http://repository.example.org/oai</request>\n\
    <ListRecords>\n";
pub const TAIL: &str = "<resumptionToken>harbour-2</resumptionToken>\n</ListRecords>\n</OAI-PMH>\n";
pub const DC: &str = "<metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
    xmlns:dc=\"http://purl.org/dc/elements/1.1/\">";
pub const END: &str = "</oai_dc:dc></metadata></record>";

/// The fields of the records that must not change.
const OTHERS: [&str; 4] = [
    "<dc:title>Tide tables</dc:title>",
    "<dc:title><![CDATA[Fish & chips]]></dc:title><!-- checked -->",
    "<dc:title>Letters</dc:title><?note kept?><dc:creator><![CDATA[<b>]]></dc:creator>",
    "<dc:title>a -- b ]] c</dc:title>",
];

pub fn header(identifier: &str) -> String {
    format!("<header><identifier>{identifier}</identifier><datestamp>2025-06-03</datestamp></header>")
}

pub fn record(identifier: &str, fields: &str) -> String {
    format!("<record>{}{DC}{fields}{END}", header(identifier))
}

pub fn other(number: usize) -> String {
    record(&format!("oai:x:{number}"), OTHERS[number])
}

/// Fragments of a payload. `{}` becomes a number that is used once.
const FRAGMENTS: &[&[u8]] = &[
    b"]]",
    b"]",
    b">",
    b"]]>",
    b"]]\x03>",
    b"]\x00]>",
    b"]]\xef\xbf\xbe>",
    b"<![CDATA[",
    b"<!\x03[CDATA[",
    b"-",
    b"--",
    b"-\x03->",
    b"<!--",
    b"<!-\x01-",
    b"-->",
    b"?",
    b"?\x00>",
    b"<?x ",
    b"?>",
    b"\x03",
    b"\x0b",
    b"\x0c",
    b"\xff",
    b"\xe9",
    b"\xe2\x80",
    b"\xed\xa0\xbd",
    b"\xc1\x9d",
    b"&#3;",
    b"&#93;",
    b"&amp;",
    b"&lt;",
    b"</dc:title>",
    b"<dc:title>",
    b"</oai_dc:dc></metadata>",
    b"</record>",
    b"</oai_dc:dc></metadata></record>",
    b"<record>",
    b"<record><header status=\"deleted\"><identifier>oai:forged:{}</identifier><datestamp>2025-06-04</datestamp></header></record>",
    b"<record><header><identifier>oai:forged:{}</identifier><datestamp>2025-06-04</datestamp></header><metadata><oai_dc:dc \
      xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>",
    b"<header><identifier>oai:forged:{}</identifier><datestamp>2025-06-04</datestamp></header>",
    b"</ListRecords>",
    b"</OAI-PMH>",
    b"<resumptionToken>forged</resumptionToken>",
    b"<OAI-PMH>",
    b"<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><ListRecords>",
    b"\n",
    b" text ",
    b"<br>",
    b"<x a=\"",
    b"\"",
];

/// A defect in another field of the attacker's record.
const DEFECTS: &[&[u8]] = &[
    b"",
    b"one<br>two",
    b"A & B",
    b"&nbsp;",
    b"caf\xe9",
    b"<i>x</b>",
    b"x < y",
    b"a ]]> b",
    b"a\x01b",
    b"</b>",
    b"&eacute;<p>",
];

fn fragments(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..1 + random.below(9) {
        let fragment = random.pick(FRAGMENTS);
        match memchr::memmem::find(fragment, b"{}") {
            Some(at) => {
                text.extend_from_slice(&fragment[..at]);
                text.extend_from_slice(number.to_string().as_bytes());
                text.extend_from_slice(&fragment[at + 2..]);
            }
            None => text.extend_from_slice(fragment),
        }
    }
    text
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    for found in memchr::memmem::find_iter(text, from) {
        out.extend_from_slice(&text[at..found]);
        out.extend_from_slice(to);
        at = found + from.len();
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// How a source writes the text of a depositor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Cdata,
    Comment,
    Instruction,
    Text,
    /// Unescaped: the text may be markup, and only content of closed sections must stay text.
    Raw,
    /// Well-formed elements with the names of the envelope, in an element that can wrap records.
    Wrapped,
    /// The same, with one byte damaged.
    Damaged,
}

/// Namespaces of elements in a payload: a prefix and its declaration.
const NAMESPACES: [(&str, &str); 5] = [
    ("", ""),
    ("", " xmlns=\"urn:x\""),
    ("", " xmlns=\"http://www.openarchives.org/OAI/2.0/\""),
    ("oai:", " xmlns:oai=\"http://www.openarchives.org/OAI/2.0/\""),
    ("x:", " xmlns:x=\"urn:x\""),
];

const WRAPPERS: [&str; 9] = [
    "ListRecords",
    "ListIdentifiers",
    "GetRecord",
    "OAI-PMH",
    "record",
    "metadata",
    "about",
    "mdWrap",
    "xmlData",
];

/// A well-formed element of a payload, with names of the envelope at any depth.
fn element(random: &mut Random, depth: usize, number: &mut usize) -> String {
    *number += 1;
    let (prefix, declaration) = NAMESPACES[random.below(NAMESPACES.len())];
    let within = |name: &str, text: &str| format!("<{prefix}{name}{declaration}>{text}</{prefix}{name}>");
    let target =
        if random.chance(50) { format!("oai:forged:{number}") } else { format!("oai:x:{}", *number % 4) };
    let header = |status: &str| {
        let field = |name: &str, text: &str| format!("<{prefix}{name}>{text}</{prefix}{name}>");
        let fields = field("identifier", &target) + &field("datestamp", "2030-01-01");
        format!("<{prefix}header{declaration}{status}>{fields}</{prefix}header>")
    };
    match random.below(if depth == 0 { 5 } else { 9 }) {
        0 => within("record", &header(" status=\"deleted\"")),
        1 => within("record", &(header("") + "<metadata><y xmlns=\"urn:y\">inner</y></metadata>")),
        2 => header(""),
        3 => within("resumptionToken", "forged"),
        4 => {
            within("note", ["the text", "<![CDATA[<record><header>]]>", "<!-- <record> -->"][random.below(3)])
        }
        _ => {
            let inner: String =
                (0..1 + random.below(3)).map(|_| element(random, depth - 1, number)).collect();
            within(WRAPPERS[random.below(WRAPPERS.len())], &inner)
        }
    }
}

/// A record whose payload wraps records. The defect is in the payload, or in a field beside the wrapper.
fn wrapping_record(random: &mut Random, defect: &[u8]) -> Vec<u8> {
    let inner: String = (0..1 + random.below(3)).map(|_| element(random, 3, &mut 0)).collect();
    let defect = [b"<m:note>", defect, b"</m:note>"].concat();
    let (before, after) =
        if random.chance(50) { (defect.as_slice(), &b""[..]) } else { (&b""[..], defect.as_slice()) };
    let (open, close) = match random.below(3) {
        0 => (
            "<metadata><m:mets xmlns:m=\"http://www.loc.gov/METS/\"><m:xmlData>",
            "</m:xmlData></m:mets></metadata>",
        ),
        1 => ("<metadata><m:mets xmlns:m=\"http://www.loc.gov/METS/\">", "</m:mets></metadata>"),
        _ => (
            "<metadata><y xmlns=\"urn:y\"/></metadata><about><m:mets xmlns:m=\"http://www.loc.gov/METS/\"><m:xmlData>",
            "</m:xmlData></m:mets></about>",
        ),
    };
    let start = format!("<record>{}{open}", header("oai:x:attacker"));
    [start.as_bytes(), before, inner.as_bytes(), after, close.as_bytes(), b"</record>"].concat()
}

/// Removes, replaces or inserts one byte, but not in the header of the record: its name must stay.
fn damage_byte(random: &mut Random, record: &mut Vec<u8>) {
    const BYTES: &[u8] = b"x<>/ &\"\xE9";
    let start_tag = b"<record>".len();
    let header = start_tag + header("oai:x:attacker").len();
    let at = random.below(record.len() - (header - start_tag));
    let at = if at < start_tag { at } else { at + header - start_tag };
    let byte = BYTES[random.below(BYTES.len())];
    match random.below(3) {
        0 => {
            record.remove(at);
        }
        1 => record[at] = byte,
        _ => record.insert(at, byte),
    }
}

fn written(place: Place, text: &[u8]) -> Vec<u8> {
    let around = |open: &[u8], text: &[u8], close: &[u8]| [open, text, close].concat();
    match place {
        Place::Cdata => {
            around(b"<dc:title><![CDATA[", &replaced(text, b"]]>", b"]]]]><![CDATA[>"), b"]]></dc:title>")
        }
        Place::Comment => around(b"<dc:title>t</dc:title><!--", &replaced(text, b"-", b"- "), b"-->"),
        Place::Instruction => around(b"<dc:title>t</dc:title><?note ", &replaced(text, b"?>", b"? >"), b"?>"),
        Place::Text => {
            let escaped = replaced(&replaced(text, b"&", b"&amp;"), b"<", b"&lt;");
            around(b"<dc:title>", &replaced(&escaped, b">", b"&gt;"), b"</dc:title>")
        }
        Place::Raw | Place::Wrapped | Place::Damaged => around(b"<dc:title>", text, b"</dc:title>"),
    }
}

/// A page with the record of an attacker.
pub struct Attack {
    pub place: Place,
    pub page: Vec<u8>,
}

pub fn attack(seed: u64) -> Attack {
    let mut random = Random::new(seed);
    const PLACES: [Place; 7] = [
        Place::Cdata,
        Place::Comment,
        Place::Instruction,
        Place::Text,
        Place::Raw,
        Place::Wrapped,
        Place::Damaged,
    ];
    let place = PLACES[random.below(PLACES.len())];
    let payload = written(place, &fragments(&mut random));
    let defect = random.pick(DEFECTS);
    let which = random.below(OTHERS.len() + 1);
    let mut page = HEAD.as_bytes().to_vec();
    for number in 0..=OTHERS.len() {
        if number == which {
            if matches!(place, Place::Wrapped | Place::Damaged) {
                let mut record = wrapping_record(&mut random, defect);
                if place == Place::Damaged {
                    damage_byte(&mut random, &mut record);
                }
                page.extend_from_slice(&record);
                page.push(b'\n');
                continue_with(&mut page, number);
                continue;
            }
            let whole = record("oai:x:attacker", "¦");
            let (before, after) = whole.split_once('¦').expect("just written");
            let field = [b"<dc:description>", defect, b"</dc:description>"].concat();
            let (first, second) = if random.chance(50) { (&payload, &field) } else { (&field, &payload) };
            for part in [before.as_bytes(), first, second, after.as_bytes(), b"\n"] {
                page.extend_from_slice(part);
            }
        }
        continue_with(&mut page, number);
    }
    page.extend_from_slice(TAIL.as_bytes());
    Attack { place, page }
}

/// Adds the record with this number, if there is one.
fn continue_with(page: &mut Vec<u8>, number: usize) {
    if number < OTHERS.len() {
        page.extend_from_slice(other(number).as_bytes());
        page.push(b'\n');
    }
}

/// The text of a page inside sections with an end mark. A section that a raw payload opens between records is
/// damage of the list: it contains other records whole, which must be sent, so no text in it is content.
fn in_sections(page: &[u8]) -> Vec<u8> {
    let marks: [(&[u8], &[u8]); 3] = [(b"<![CDATA[", b"]]>"), (b"<!--", b"-->"), (b"<?", b"?>")];
    let (mut inside, mut rest) = (Vec::new(), page);
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at..];
        let section = marks.iter().find(|(mark, _)| rest.starts_with(mark)).and_then(|(mark, end)| {
            Some(mark.len() + memchr::memmem::find(&rest[mark.len()..], end)? + end.len())
        });
        let text = &rest[..section.unwrap_or(0)];
        if (0..OTHERS.len()).all(|number| invariants::find(text, other(number).as_bytes()).is_none()) {
            inside.extend_from_slice(text);
        }
        rest = &rest[section.unwrap_or(1)..];
    }
    inside
}

/// Checks that the record of the attacker changes no other one.
pub fn holds(attack: &Attack, judge: Judge) -> Result<(), String> {
    let config = RepairConfig::default();
    let out = invariants::all(&attack.page, &config, judge)?;
    [Chunking::Bytes, Chunking::Random { seed: 5 }]
        .into_iter()
        .try_for_each(|way| invariants::chunk_invariant(&attack.page, &out, &config, way))?;
    nothing_is_forged(attack, &out)?;
    (0..OTHERS.len()).try_for_each(|number| is_untouched(attack, &out, number))
}

fn nothing_is_forged(attack: &Attack, out: &Run) -> Result<(), String> {
    let inside = in_sections(&attack.page);
    for item in &out.items {
        let name = String::from_utf8_lossy(&item.identifier).into_owned();
        let is_marked = memchr::memmem::find(&inside, format!(">{name}<").as_bytes()).is_some();
        let is_own = name == "oai:x:attacker" || (0..OTHERS.len()).any(|n| name == format!("oai:x:{n}"));
        if !is_own && (attack.place != Place::Raw || is_marked) {
            return Err(format!("{name} is forged"));
        }
        if item.deleted && is_own {
            return Err(format!("{name} is deleted"));
        }
    }
    let escaped = !matches!(attack.place, Place::Raw | Place::Damaged);
    if escaped && out.summary.outcome != Outcome::Truncated && out.tokens != [b"harbour-2"] {
        return Err(format!("the token is {:?}", out.tokens));
    }
    Ok(())
}

fn is_untouched(attack: &Attack, out: &Run, number: usize) -> Result<(), String> {
    let (name, bytes) = (format!("oai:x:{number}"), other(number));
    let left: Vec<_> = out.items.iter().filter(|item| item.identifier == name.as_bytes()).collect();
    if let [item] = left.as_slice()
        && item.bytes == bytes.as_bytes()
    {
        return Ok(());
    }
    if !matches!(attack.place, Place::Raw | Place::Damaged) || !left.is_empty() {
        return Err(format!("{name} left {} times, but not as it came", left.len()));
    }
    if damage::affects_other_records(&attack.page[HEAD.len()..attack.page.len() - TAIL.len()]) {
        // Here the text of the list itself changes.
        return Ok(());
    }
    let lost = out.summary.lost > 0 || matches!(out.summary.outcome, Outcome::Truncated | Outcome::NotOai(_));
    let mut removed = out.journal.iter().filter(|entry| matches!(entry.change, Change::Quarantined(_)));
    let is_in = |text: &[u8]| invariants::find(text, name.as_bytes()).is_some();
    let is_reported =
        out.swallowed.iter().any(|(_, names)| names.iter().any(|swallowed| swallowed == name.as_bytes()));
    if lost || is_reported || removed.any(|entry| is_in(&entry.original)) {
        Ok(())
    } else {
        Err(format!("{name} is lost, and nothing says so"))
    }
}
