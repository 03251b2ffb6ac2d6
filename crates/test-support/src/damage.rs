//! Damages documents at random, like broken providers and worse.

use oaimend_repair::{RepairConfig, RepairId};

use super::random::Random;

/// Damages the bytes once or a few times, some of them in the ways of software that writes OAI-PMH.
pub fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(3) {
        if random.chance(20) { damage_envelope(random, bytes) } else { one(random, bytes) }
    }
}

/// Damages the bytes once or a few times, at any place.
pub fn damage_bytes(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(3) {
        one(random, bytes);
    }
}

/// Makes one random change.
fn one(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() + 1);
    match random.below(12) {
        0 => flip(random, bytes),
        1 => {
            let end = (at + 1 + random.below(12)).min(bytes.len());
            bytes.drain(at..end);
        }
        2 | 3 => insert(bytes, at, random.pick(MARKS).as_bytes()),
        4 => insert(bytes, at, random.pick(BAD_CHARACTERS)),
        5 => {
            if let Some((start, end)) = tag(random, bytes) {
                bytes.drain(start..end);
            }
        }
        6 => {
            if let Some((start, end)) = tag(random, bytes) {
                let copy = bytes[start..end].to_vec();
                insert(bytes, end, &copy);
            }
        }
        7 => insert(bytes, at, random.pick(WORDS).as_bytes()),
        8 => {
            // Changes a letter of a tag name, so that the tags no longer match.
            if let Some((start, end)) = tag(random, bytes) {
                let place = start + 1 + random.below(end - start - 1);
                bytes[place] = random.pick(&[b"x".as_slice(), b"A", b"1", b"\"", b":"])[0];
            }
        }
        9 => {
            let end = (at + random.below(60)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            insert(bytes, end, &piece);
        }
        10 => insert(bytes, at, &[random.next().to_le_bytes()[0]]),
        _ => insert(bytes, at, random.pick(TAGS).as_bytes()),
    }
}

/// Adds what a file leaves before its payload, or HTML. Renames elements, or cuts an end tag after its prefix.
fn damage_envelope(random: &mut Random, bytes: &mut Vec<u8>) {
    match random.below(4) {
        0 => {
            let parents: Vec<usize> = PAYLOAD_PARENTS.iter().flat_map(|tag| ends_of(bytes, tag)).collect();
            if !parents.is_empty() {
                insert(bytes, parents[random.below(parents.len())], random.pick(LEFTOVERS).as_bytes());
            }
        }
        1 => {
            let (name, other) = RENAMED[random.below(RENAMED.len())];
            let places: Vec<usize> = ends_of(bytes, name).collect();
            let renamed = if random.chance(50) { places.len() } else { 1 };
            for &end in places.iter().take(renamed) {
                bytes[end - other.len()..end].copy_from_slice(other.as_bytes());
            }
        }
        2 => {
            let at = random.below(bytes.len() + 1);
            insert(bytes, at, random.pick(&["<p>a<br>b</p>", "<p>a <emph>b"]).as_bytes());
        }
        _ => {
            if let Some((start, end)) = tag(random, bytes)
                && bytes[start..end].starts_with(b"</")
                && let Some(colon) = memchr::memchr(b':', &bytes[start..end])
            {
                bytes.drain(start + colon..end - 1);
            }
        }
    }
}

/// Removes the end of the document.
pub fn truncate(random: &mut Random, bytes: &mut Vec<u8>) {
    bytes.truncate(random.below(bytes.len() + 1));
}

fn flip(random: &mut Random, bytes: &mut [u8]) {
    let at = random.below(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let at = at.min(bytes.len());
    bytes.splice(at..at, piece.iter().copied());
}

/// Finds some tag, from its < to after its >.
fn tag(random: &mut Random, bytes: &[u8]) -> Option<(usize, usize)> {
    let opens: Vec<usize> = memchr::memchr_iter(b'<', bytes).collect();
    let start = *opens.get(random.below(opens.len()))?;
    let end = start + memchr::memchr(b'>', &bytes[start..])? + 1;
    Some((start, end))
}

/// The ends of all occurrences of a text.
fn ends_of(bytes: &[u8], text: &str) -> impl Iterator<Item = usize> {
    let len = text.len();
    let starts: Vec<usize> = memchr::memmem::find_iter(bytes, text).collect();
    starts.into_iter().map(move |at| at + len)
}

const PAYLOAD_PARENTS: &[&str] = &["<metadata>", "<about>", "<setDescription>"];
const LEFTOVERS: &[&str] = &[
    ">",
    "?>",
    "\u{feff}",
    "\u{feff}<?xml version=\"1.0\"?>\n",
    "<?xml version=\"1.0\" encoding=\"UTF-8\">",
    "<?xml version=\"1.0\"",
    "encoding=\"UTF-8\"?>\n",
    "-8'?>",
    "ï»¿",
    "See: ",
    "title=\"1.0\">",
];
/// Names of the envelope, and the same names in another case.
const RENAMED: &[(&str, &str)] = &[
    ("datestamp>", "dateStamp>"),
    ("identifier>", "Identifier>"),
    ("setSpec>", "setspec>"),
    ("setName>", "SETNAME>"),
    ("header>", "Header>"),
    ("metadata>", "Metadata>"),
    ("<request", "<Request"),
    ("responseDate", "responsedate"),
    ("metadataPrefix", "metadataprefix"),
    ("status", "Status"),
];
const MARKS: &[&str] = &[
    "<",
    "&",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    ">",
    "\"",
    "'",
    "<?",
    "?>",
    "</",
    "/>",
    "&#",
    "&#x",
    ";",
    "=",
    "<!",
    "<![",
    "--",
    ":",
];
const BAD_CHARACTERS: &[&[u8]] = &[
    b"\xe9",
    b"\x93quoted\x94",
    b"\x00",
    b"\x0b",
    b"\x0c",
    b"\x1a",
    b"\xc3",
    b"\xe2\x80",
    b"\xc0\xbc",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xed\xa0\xbd",
    b"\xef\xbf\xbe",
    b"\xf8\x88\x80\x80\x80",
    b"\xf4\x90\x80\x80",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x81",
];
const WORDS: &[&str] = &[
    "AT&T",
    "p < 0.05",
    "caf&eacute;",
    "&nbsp;",
    "&foo;",
    "&#233 ",
    "&#1;",
    "&#xFFFE;",
    "&#55357;&#56832;",
    "&#55357;",
    "Warning: timeout in /var/www/oai.php on line 7\n",
    "<b>Fatal error</b>: out of memory",
    " status=deleted ",
    " a=b",
    " checked ",
    " xmlns:dc=\"x\"",
    "<br>",
    "<i>x</b>",
    "&amp;amp;",
];
const TAGS: &[&str] = &[
    "</record>",
    "<record>",
    "<metadata>",
    "</metadata>",
    "</header>",
    "<header>",
    "</dc:title>",
    "<dc:title>",
    "</oai_dc:dc>",
    "<x:y>",
    "<error code=\"noRecordsMatch\">none</error>",
    "<?xml version=\"1.0\"?>",
    "<!DOCTYPE html>",
    "<!DOCTYPE a [<!ENTITY foo \"bar\"><!ENTITY nbsp ']]>'>]>",
    "<leader>0\u{14}</leader>",
    "<controlfield tag=\"008\">&#1; ",
    "<datafield ind1='\u{1f}'>",
    "<metadata/>",
    "<setDescription/>",
    "<identifier>",
    "</datestamp>",
    "<setSpec>",
    "<about/>",
    "<foo/>",
    "<!-- a -- b -->",
    "</subfield>",
    "<record><header>",
    "<resumptionToken",
    "</ListRecords",
    "</OAI-PMH",
];

/// Whether the record contains an unclosed section. If a later record contains an end mark, a
/// strict parser reads everything up to there as content.
pub fn leaves_section_open(record: &[u8]) -> bool {
    let marks: [(&[u8], &[u8]); 3] = [(b"<![CDATA[", b"]]>"), (b"<!--", b"-->"), (b"<?", b"?>")];
    let mut rest = record;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at..];
        let Some((mark, end)) = marks.iter().find(|(mark, _)| rest.starts_with(mark)) else {
            rest = &rest[1..];
            continue;
        };
        match memchr::memmem::find(&rest[mark.len()..], end) {
            Some(len) => rest = &rest[mark.len() + len + end.len()..],
            None => return true,
        }
    }
    false
}

/// The configuration that keeps the neighbours of such a record separate.
pub fn config_for(record: &[u8]) -> RepairConfig {
    let guesses = leaves_section_open(record).then_some(RepairId::TornSection);
    let mut config = RepairConfig::default();
    config.enabled = guesses.into_iter().collect();
    config
}

/// Whether another record begins in a damaged one.
pub fn begins_record(record: &[u8]) -> bool {
    const START: &[u8] = b"<record>";
    memchr::memmem::find_iter(record, START)
        .any(|at| at > 0 && record[at + START.len()..].trim_ascii_start().starts_with(b"<header"))
}

/// Whether a damaged record affects the list around it. Then the page is a different one, and other
/// records may change too.
pub fn affects_other_records(record: &[u8]) -> bool {
    let is_token_or_like_it = record.split(|byte| b"</".contains(byte)).skip(1).any(is_like_token);
    is_token_or_like_it
        || [b"ListRecords".as_slice(), b"OAI-PMH"].iter().any(|name| {
            memchr::memmem::find_iter(record, name).any(|at| at > 0 && matches!(record[at - 1], b'<' | b'/'))
        })
}

/// Whether a tag has a name that the repair `misspelt-token` may take for `resumptionToken`.
fn is_like_token(tag: &[u8]) -> bool {
    let name: Vec<u8> =
        tag.iter().take_while(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect();
    let has = |part: &[u8]| memchr::memmem::find(&name, part).is_some();
    name.len().abs_diff("resumptionToken".len()) <= 3 && (has(b"sump") || has(b"toke"))
}
