//! No item and no token is lost silently, wherever a page is damaged.
//!
//! Each item or token whose bytes are intact in the damaged page is sent, or counted as lost.

use oaimend_repair::{Ending, Outcome, RepairConfig};

use super::damage;
use super::harness::{Chunking, Run, excerpt, run};
use super::invariants::find;
use super::random::{Page, Random, list};

/// Text that damage leaves between items.
const PIECES: &[&str] = &[
    "</record>",
    "</header>",
    "</set>",
    "</ListRecords>",
    "</ListIdentifiers>",
    "</ListSets>",
    "</OAI-PMH>",
    "</ListRecords></OAI-PMH>",
    "</ListRecords>\n<ListRecords>",
    "<ListRecords>",
    "<OAI-PMH>",
    "<record>",
    "<header>",
    "<record><header>",
    "<metadata>",
    "</metadata></record>",
    "<resumptionToken>",
    "<resumptionToken/>",
    "</resumptionToken>",
    "<resumptionToken>cut",
    "<div>",
    "</div>",
    "<p class=\"x>",
    "<br />\n<b>Warning</b>: mysql_fetch_array() in <b>/var/www/oai.php</b> on line <b>7</b><br />\n",
    "Timeout",
    "<error code=\"badArgument\">",
    "<error code=\"noRecordsMatch\">none</error>",
    "<!-",
    "<!--",
    "-->",
    "<!",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE",
    "<?php",
    "<x y=\"",
    "<",
    "&",
    "\0\0\0",
    "\x1a",
    "<?xml version=\"1.0\"?>",
];

/// A page with damage anywhere, also in its items and its token.
pub fn damaged(seed: u64) -> (Page, Vec<u8>) {
    let random = &mut Random::new(seed);
    let page = list(random);
    let mut bytes = page.bytes();
    for _ in 0..1 + random.below(2) {
        match random.below(10) {
            0..=2 => damage::damage(random, &mut bytes),
            3..=6 => {
                let at = border(random, &page).min(bytes.len());
                let piece = random.pick(PIECES);
                bytes.splice(at..at, piece.bytes());
            }
            7 | 8 => {
                let at = border(random, &page).saturating_sub(random.below(16)).min(bytes.len());
                let end = (at + 1 + random.below(24)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                // A truncated first attempt, followed by the whole page.
                let cut = random.below(bytes.len() + 1);
                let again = bytes.clone();
                bytes.truncate(cut);
                bytes.extend_from_slice(&again);
            }
        }
    }
    (page, bytes)
}

/// A position between two parts of the page.
fn border(random: &mut Random, page: &Page) -> usize {
    let mut borders = vec![page.head.len()];
    let mut at = page.head.len();
    for (item, space) in &page.records {
        borders.push(at + item.len());
        at += item.len() + space.len();
        borders.push(at);
    }
    let tags = page.tail.match_indices(['<', '>']).map(|(offset, tag)| at + offset + usize::from(tag == ">"));
    borders.extend(tags);
    borders[random.below(borders.len())]
}

/// Checks that each intact item of `input` is sent or counted as lost.
pub fn nothing_is_lost(page: &Page, input: &[u8]) -> Result<(), String> {
    let out = run(input, &RepairConfig::default(), Chunking::Whole);
    let mut transfer = RepairConfig::default();
    transfer.ending = Ending::Abort;
    let sent = run(input, &transfer, Chunking::Whole);
    if out.exit_code() == 0 {
        all_left(page, input, &out)?;
    }
    let is_whole = matches!(sent.summary.outcome, Outcome::Clean | Outcome::Repaired);
    if is_whole && sent.summary.quarantined == 0 && sent.summary.lost == 0 {
        all_left(page, input, &sent).map_err(|error| format!("in a transfer, {error}"))?;
    }
    Ok(())
}

fn all_left(page: &Page, input: &[u8], out: &Run) -> Result<(), String> {
    for (item, _) in &page.records {
        let item = item.as_bytes();
        let identifier = identifier(item);
        let start = &item[..find(item, identifier).unwrap_or(0) + identifier.len()];
        let has_left = out.items.iter().any(|left| left.identifier == identifier);
        // A comment is removed with its element; items inside comments are not part of the list.
        let is_withdrawn = is_in(input, start, &SECTIONS[..1]);
        if !has_left && is_there(input, item) && !is_withdrawn && !is_in_section(&out.output, start) {
            return Err(format!("an item is lost without a word: {}", excerpt(item, 0)));
        }
    }
    let Some((element, value)) = token(&page.tail) else { return Ok(()) };
    // If there are several intact tokens, the last one is sent.
    let has_another =
        memchr::memmem::find_iter(input, b"</resumptionToken>").count() > 1 && !out.tokens.is_empty();
    let has_left = has_another || out.tokens.iter().any(|left| left == value);
    if !has_left && is_there(input, element) && !is_in_section(&out.output, element) {
        return Err(format!("the token is lost without a word, {:?} left", out.tokens.len()));
    }
    Ok(())
}

fn is_there(input: &[u8], part: &[u8]) -> bool {
    find(input, part).is_some()
}

/// The identifier of an item of [`list`].
fn identifier(item: &[u8]) -> &[u8] {
    let between = |open: &[u8]| {
        let rest = item.get(find(item, open)? + open.len()..)?;
        rest.get(..memchr::memchr(b'<', rest)?)
    };
    between(b"<identifier>").or_else(|| between(b"<setSpec>")).unwrap_or_default()
}

/// The token element of a tail, and its value.
fn token(tail: &str) -> Option<(&[u8], &[u8])> {
    const END: &str = "</resumptionToken>";
    let start = tail.find("<resumptionToken")?;
    let end = tail.find(END)?;
    let element = tail.get(start..end + END.len())?;
    let value = tail.get(start + element.find('>')? + 1..end)?;
    Some((element.as_bytes(), value.as_bytes()))
}

/// Whether a part of a well-formed document begins in a comment, a CDATA section or an instruction.
/// There it is content and stays unchanged.
fn is_in_section(document: &[u8], start: &[u8]) -> bool {
    is_in(document, start, &SECTIONS)
}

const SECTIONS: [(&[u8], &[u8]); 3] = [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")];

fn is_in(document: &[u8], start: &[u8], sections: &[(&[u8], &[u8])]) -> bool {
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'<', &document[at..]) {
        at += next;
        let rest = &document[at..];
        let section = sections.iter().find(|(mark, _)| rest.starts_with(mark));
        let len = section.and_then(|(mark, end)| {
            let inner = rest.get(mark.len()..)?;
            Some(mark.len() + find(inner, end)? + end.len())
        });
        if len.is_some_and(|len| find(&rest[..len], start).is_some()) {
            return true;
        }
        at += len.unwrap_or(1);
    }
    false
}
