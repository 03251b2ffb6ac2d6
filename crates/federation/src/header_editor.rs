//! Edits the headers of a page while it streams: each record gets the set of its repository, its sets come below this
//! one, and everything else stays as it is.
//!
//! A page of a member is well-formed, because the repair engine or the mirror wrote it. So the editor only follows tags:
//! it counts the open elements, and looks at the names of those that belong to the envelope. Payloads, comments and
//! CDATA sections are never read. This costs less than a parser, which matters because the editor sees every byte of a
//! federation.
//!
//! Memory: a page is held up to its first item, the last item where it alone is delivered, a tag up to [`TAG_BYTES_MAX`], and the end of a page after its list.

use memchr::{memchr, memchr3, memmem};
use oaimend_oai::ErrorCode;
use oaimend_oai::datestamp::Granularity;
use oaimend_repository::{Failure, Reason};

/// Longest tag, in bytes. A record with a longer one cannot be delivered.
const TAG_BYTES_MAX: usize = 1 << 20;
/// Longest start of a page before its first item, and longest end after its list, in bytes.
const ENVELOPE_BYTES_MAX: usize = 1 << 20;
/// Longest text of a datestamp or an error that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The changes of a page.
#[derive(Clone, Debug)]
pub(crate) struct PageEdits {
    /// The set of the repository. It is added to each header, and precedes each set. `None`: sets stay as they are.
    pub(crate) set: Option<String>,
    /// The granularity of the datestamps in headers. Days are cut from seconds.
    pub(crate) granularity: Granularity,
    /// The responseDate.
    pub(crate) response_date: String,
    /// Elements before the first item.
    pub(crate) before_items: String,
    /// The items that are delivered.
    pub(crate) items: PageItems,
}

/// The items of a page that are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageItems {
    All,
    /// The last one alone. It is held until the list of the page ends, because only then it is known.
    Last,
}

/// Edits one page.
#[derive(Debug)]
pub(crate) struct PageEditor {
    edits: PageEdits,
    /// Received bytes that are not read yet: the start of a tag, or of the end of a comment.
    rest: Vec<u8>,
    /// The end of the comment, CDATA section or instruction that is open.
    inside: Option<&'static [u8]>,
    /// The number of open elements.
    depth: usize,
    /// The number of open elements inside the header that is open.
    header: Option<usize>,
    /// White space is left out here: at the start of a setSpec, which continues one.
    skips_space: bool,
    text: Captured,
    sink: Sink,
    output: Vec<u8>,
    /// The end of the page, from the end of its list on.
    tail: Vec<u8>,
    /// The prefix of the elements of the envelope, with its colon.
    prefix: String,
    items: u64,
    /// The length of the output before the first item.
    head_bytes: usize,
    error_code: Option<ErrorCode>,
    error_text: String,
}

/// Where the received bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sink {
    Output,
    Tail,
    Nowhere,
}

/// The text of the element that is being read.
#[derive(Debug, Default)]
struct Captured {
    is_on: bool,
    /// Whether it goes to the output too.
    is_kept: bool,
    bytes: Vec<u8>,
}

/// A start or end tag.
struct Tag<'t> {
    /// The text between `<` or `</` and `>` or `/>`.
    content: &'t [u8],
    is_end: bool,
    is_empty: bool,
}

impl Tag<'_> {
    /// The prefix with its colon, and the local name.
    fn name(&self) -> (&[u8], &[u8]) {
        let end = self.content.iter().position(|byte| byte.is_ascii_whitespace());
        let name = self.content.get(..end.unwrap_or(self.content.len())).unwrap_or_default();
        let local = memchr(b':', name).map_or(0, |colon| colon + 1);
        name.split_at(local)
    }

    /// The value of the attribute `code`, if it is an error code.
    fn error_code(&self) -> Option<ErrorCode> {
        let content = std::str::from_utf8(self.content).ok()?;
        let mut quoted = content.split(['"', '\'']).skip(1).step_by(2);
        quoted.find_map(ErrorCode::from_name)
    }
}

impl PageEditor {
    pub(crate) fn new(edits: PageEdits) -> Self {
        Self {
            edits,
            rest: Vec::new(),
            inside: None,
            depth: 0,
            header: None,
            skips_space: false,
            text: Captured::default(),
            sink: Sink::Output,
            output: Vec::new(),
            tail: Vec::new(),
            prefix: String::new(),
            items: 0,
            head_bytes: 0,
            error_code: None,
            error_text: String::new(),
        }
    }

    /// The number of items that were read.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// The code and the text of the error, if the page is one. The page is read to its end.
    pub(crate) fn error(&self) -> Option<(ErrorCode, String)> {
        Some((self.error_code?, unescape(self.error_text.trim())))
    }

    /// The prefix of the elements of the envelope, with its colon.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The output since the last call.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        if self.edits.items == PageItems::Last && self.sink == Sink::Output {
            return Vec::new();
        }
        std::mem::take(&mut self.output)
    }

    /// The end of the page, from the end tag of its list on, without the resumptionToken.
    pub(crate) fn into_tail(self) -> Vec<u8> {
        self.tail
    }

    /// Reads the next bytes of the page.
    ///
    /// # Errors
    ///
    /// The page is not well-formed, or a part of its envelope is too long.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Failure> {
        self.output.reserve(piece.len() + piece.len() / 8);
        // A tag that was cut is completed alone, so that the piece is not copied. It is tried once, because a value may
        // contain many `>`.
        let tag_end = if self.rest.is_empty() { 0 } else { memchr(b'>', piece).map_or(0, |end| end + 1) };
        let (tag_end, after) = piece.split_at(tag_end);
        self.read_after_rest(tag_end)?;
        self.read_after_rest(after)?;
        let is_long_start = self.items == 0 && self.output.len() > ENVELOPE_BYTES_MAX;
        if self.rest.len() > TAG_BYTES_MAX || is_long_start || self.tail.len() > ENVELOPE_BYTES_MAX {
            return Err(malformed("a part of its envelope, or a tag, is longer than a MiB"));
        }
        Ok(())
    }

    /// Reads bytes after those that are not read yet.
    fn read_after_rest(&mut self, piece: &[u8]) -> Result<(), Failure> {
        if self.rest.is_empty() {
            let read = self.read(piece)?;
            self.rest.extend_from_slice(piece.get(read..).unwrap_or_default());
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.rest);
        text.extend_from_slice(piece);
        let read = self.read(&text)?;
        text.drain(..read);
        self.rest = text;
        Ok(())
    }

    /// Reads as far as the tags are whole. Returns the number of bytes that were read.
    fn read(&mut self, text: &[u8]) -> Result<usize, Failure> {
        let (mut at, mut copied) = (0, 0);
        loop {
            if self.skips_space {
                let space = text.get(at..).unwrap_or_default();
                let space = space.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                (at, copied) = (at + space, at + space);
                if at == text.len() {
                    break;
                }
                self.skips_space = false;
            }
            let rest = text.get(at..).unwrap_or_default();
            if let Some(end) = self.inside {
                let Some(found) = memmem::find(rest, end) else {
                    at = at.max(text.len().saturating_sub(end.len() - 1));
                    break;
                };
                (at, self.inside) = (at + found + end.len(), None);
                continue;
            }
            let Some(found) = memchr(b'<', rest) else {
                at = text.len();
                break;
            };
            let start = at + found;
            match read_markup(text.get(start..).unwrap_or_default()) {
                Markup::Cut => {
                    at = start;
                    break;
                }
                Markup::Skipped { length, end } => (at, self.inside) = (start + length, Some(end)),
                Markup::Tag { length, tag } => {
                    at = start + length;
                    if self.is_of_payload(&tag) {
                        self.count(&tag)?;
                        continue;
                    }
                    self.copy(text.get(copied..start).unwrap_or_default());
                    copied = start;
                    if self.take_tag(&tag, text.get(start..at).unwrap_or_default())? {
                        copied = at;
                    }
                }
            }
        }
        self.copy(text.get(copied..at).unwrap_or_default());
        Ok(at)
    }

    /// Whether a tag cannot be one of the envelope, by its depth alone.
    fn is_of_payload(&self, tag: &Tag<'_>) -> bool {
        let depth = self.depth - usize::from(tag.is_end && self.depth > 0);
        match self.header {
            Some(header) => depth > header + 1,
            None => depth > 3,
        }
    }

    fn count(&mut self, tag: &Tag<'_>) -> Result<(), Failure> {
        match (tag.is_end, tag.is_empty) {
            (true, _) => {
                self.depth =
                    self.depth.checked_sub(1).ok_or_else(|| malformed("an end tag has no start tag"))?;
            }
            (false, false) => self.depth += 1,
            (false, true) => {}
        }
        Ok(())
    }

    fn copy(&mut self, bytes: &[u8]) {
        if self.text.is_on && self.text.bytes.len() <= TEXT_BYTES_MAX {
            self.text.bytes.extend_from_slice(bytes);
        }
        if self.text.is_on && !self.text.is_kept {
            return;
        }
        match self.sink {
            Sink::Output => self.output.extend_from_slice(bytes),
            Sink::Tail => self.tail.extend_from_slice(bytes),
            Sink::Nowhere => {}
        }
    }

    /// Takes a tag that may be one of the envelope. Returns whether its bytes are written.
    fn take_tag(&mut self, tag: &Tag<'_>, bytes: &[u8]) -> Result<bool, Failure> {
        let (prefix, name) = tag.name();
        if tag.is_end {
            self.count(tag)?;
            return Ok(self.end(name, bytes));
        }
        let is_written = self.start(tag, prefix, name, bytes);
        self.count(tag)?;
        if tag.is_empty {
            return Ok(self.end(name, b"") || is_written);
        }
        Ok(is_written)
    }

    fn start(&mut self, tag: &Tag<'_>, prefix: &[u8], name: &[u8], bytes: &[u8]) -> bool {
        match (self.depth, self.header) {
            (1, _) => match name {
                b"responseDate" => self.capture(bytes, false),
                b"error" if self.error_code.is_none() => {
                    self.error_code = tag.error_code();
                    self.capture(bytes, true)
                }
                _ => {
                    self.prefix = String::from_utf8_lossy(prefix).into_owned();
                    false
                }
            },
            (2, _) if name == b"resumptionToken" => {
                self.sink = Sink::Nowhere;
                true
            }
            (2, _) => {
                if self.items == 0 {
                    self.output.extend_from_slice(self.edits.before_items.as_bytes());
                    self.head_bytes = self.output.len();
                }
                if self.edits.items == PageItems::Last {
                    self.output.truncate(self.head_bytes);
                }
                self.items += 1;
                self.header = (name == b"header").then_some(2);
                false
            }
            (3, None) if name == b"header" => {
                self.header = Some(3);
                false
            }
            // The setSpec of a set.
            (3, None) if name == b"setSpec" => self.prefix_set(bytes),
            (depth, Some(header)) if depth == header + 1 => match name {
                b"datestamp" => self.capture(bytes, self.edits.granularity == Granularity::Second),
                b"setSpec" => self.prefix_set(bytes),
                _ => false,
            },
            _ => false,
        }
    }

    /// Writes a start tag, and keeps the text of its element.
    fn capture(&mut self, start_tag: &[u8], is_kept: bool) -> bool {
        self.copy(start_tag);
        self.text = Captured { is_on: true, is_kept, bytes: Vec::new() };
        true
    }

    /// Writes the start tag of a setSpec, and the set of the repository before its text.
    fn prefix_set(&mut self, start_tag: &[u8]) -> bool {
        let Some(set) = &self.edits.set else { return false };
        let before = format!("{set}:");
        self.copy(start_tag);
        self.copy(before.as_bytes());
        self.skips_space = true;
        true
    }

    /// Takes the end of an element. The depth is that of its start.
    fn end(&mut self, name: &[u8], bytes: &[u8]) -> bool {
        let is_captured = std::mem::take(&mut self.text.is_on);
        match (self.depth, self.header) {
            (1, _) if self.items > 0 || self.sink != Sink::Output => {
                // The end of the list.
                self.sink = Sink::Tail;
                false
            }
            (1, _) if is_captured => {
                let text = String::from_utf8_lossy(&self.text.bytes).into_owned();
                match name {
                    b"responseDate" => self.output.extend_from_slice(self.edits.response_date.as_bytes()),
                    _ => self.error_text = text,
                }
                false
            }
            (2, _) if self.sink == Sink::Nowhere => {
                self.sink = Sink::Tail;
                true
            }
            (depth, Some(header)) if depth == header => {
                self.header = None;
                false
            }
            (depth, Some(header)) if depth == header + 1 && is_captured => {
                self.end_datestamp(bytes);
                true
            }
            _ => false,
        }
    }

    /// Writes the rest of a datestamp, and the set of the repository after it.
    fn end_datestamp(&mut self, end_tag: &[u8]) {
        if !self.text.is_kept {
            let stamp = String::from_utf8_lossy(&self.text.bytes).trim().to_owned();
            let stamp = Granularity::Day.fitted(&stamp);
            self.output.extend_from_slice(stamp.as_bytes());
        }
        self.output.extend_from_slice(end_tag);
        if let Some(set) = &self.edits.set {
            let prefix = &self.prefix;
            self.output.extend_from_slice(format!("<{prefix}setSpec>{set}</{prefix}setSpec>").as_bytes());
        }
    }
}

/// The markup at the start of a text.
enum Markup<'t> {
    /// Its end is not there yet.
    Cut,
    /// A comment, a CDATA section or an instruction, up to its content, and its end.
    Skipped {
        length: usize,
        end: &'static [u8],
    },
    Tag {
        length: usize,
        tag: Tag<'t>,
    },
}

fn read_markup(text: &[u8]) -> Markup<'_> {
    match text {
        [b'<', b'/', rest @ ..] => match memchr(b'>', rest) {
            Some(end) => {
                let content = rest.get(..end).unwrap_or_default();
                Markup::Tag { length: end + 3, tag: Tag { content, is_end: true, is_empty: false } }
            }
            None => Markup::Cut,
        },
        [b'<', b'?', ..] => Markup::Skipped { length: 2, end: b"?>" },
        [b'<', b'!', b'-', b'-', ..] => Markup::Skipped { length: 4, end: b"-->" },
        [b'<', b'!', b'[', ..] => Markup::Skipped { length: 3, end: b"]]>" },
        [b'<', b'!', _, _, ..] => Markup::Skipped { length: 2, end: b">" },
        [b'<', b'!', ..] | [b'<'] => Markup::Cut,
        _ => read_start_tag(text),
    }
}

fn read_start_tag(text: &[u8]) -> Markup<'_> {
    let mut at = 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(found) = memchr3(b'>', b'"', b'\'', rest) else { return Markup::Cut };
        at += found + 1;
        match rest.get(found) {
            Some(b'>') => {
                let content = text.get(1..at - 1).unwrap_or_default();
                let is_empty = content.last() == Some(&b'/');
                let content =
                    if is_empty { content.split_last().map_or(content, |(_, name)| name) } else { content };
                return Markup::Tag { length: at, tag: Tag { content, is_end: false, is_empty } };
            }
            Some(quote) => match memchr(*quote, text.get(at..).unwrap_or_default()) {
                Some(end) => at += end + 1,
                None => return Markup::Cut,
            },
            None => return Markup::Cut,
        }
    }
}

fn unescape(text: &str) -> String {
    quick_xml::escape::unescape(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

fn malformed(problem: &str) -> Failure {
    Failure::new(Reason::Incomplete, format!("a page of a repository cannot be edited: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<?xml version=\"1.0\"?><!-- <record> --><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
        <responseDate>2020-01-01T00:00:00Z</responseDate><request verb=\"ListRecords\" x='>'>u</request>";
    const LIST: &str = "<ListRecords><record><header><identifier>a&amp;1</identifier>\
        <datestamp>2020-02-03T04:05:06Z</datestamp><setSpec> s:t</setSpec></header><metadata><x><header><setSpec>no\
        </setSpec><datestamp>no</datestamp></header><![CDATA[<setSpec>]]><resumptionToken/></x></metadata></record>\
        <record><header status=\"deleted\"><identifier>b</identifier><datestamp>2020-02-03T04:05:06Z</datestamp></header>\
        </record><resumptionToken cursor=\"0\">t</resumptionToken></ListRecords></OAI-PMH>\n";

    fn edits(granularity: Granularity) -> PageEdits {
        PageEdits {
            set: Some("x".to_owned()),
            granularity,
            response_date: "2021-01-01T00:00:00Z".to_owned(),
            before_items: String::new(),
            items: PageItems::All,
        }
    }

    /// The output and the tail of a page that arrives in pieces of this length.
    fn edited(page: &str, edits: &PageEdits, piece_bytes: usize) -> (String, String, PageEditor) {
        let mut editor = PageEditor::new(edits.clone());
        let mut output = Vec::new();
        for piece in page.as_bytes().chunks(piece_bytes) {
            editor.push(piece).expect("a well-formed page");
            output.extend(editor.take_output());
        }
        let tail = String::from_utf8(editor.tail.clone()).expect("UTF-8");
        (String::from_utf8(output).expect("UTF-8"), tail, editor)
    }

    #[test]
    fn headers_gain_the_set_of_their_repository_and_payloads_stay() {
        let page = format!("{HEAD}{LIST}");
        for piece_bytes in [1, 2, 3, 7, 64, page.len()] {
            let (output, tail, editor) = edited(&page, &edits(Granularity::Second), piece_bytes);
            let expected = page
                .replace("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
                .replace("06Z</datestamp>", "06Z</datestamp><setSpec>x</setSpec>")
                .replace("<setSpec> s:t", "<setSpec>x:s:t")
                .replace("<resumptionToken cursor=\"0\">t</resumptionToken>", "");
            assert_eq!(output + &tail, expected, "{piece_bytes}");
            assert_eq!(tail, "</ListRecords></OAI-PMH>\n");
            assert_eq!(editor.items(), 2);
        }
    }

    #[test]
    fn datestamps_become_days_and_prefixes_are_kept() {
        let page = "<o:OAI-PMH xmlns:o='u'><o:responseDate>x</o:responseDate><o:request>u</o:request><o:ListIdentifiers>\
            <o:header><o:identifier>a&amp;1</o:identifier><o:datestamp> 2020-02-03T04:05:06Z\n</o:datestamp><o:setSpec>\n\
            s</o:setSpec></o:header></o:ListIdentifiers></o:OAI-PMH>";
        for piece_bytes in [1, 5, page.len()] {
            let (output, tail, editor) = edited(page, &edits(Granularity::Day), piece_bytes);
            let header =
                "<o:datestamp>2020-02-03</o:datestamp><o:setSpec>x</o:setSpec><o:setSpec>x:s</o:setSpec>";
            assert!(output.contains(header), "{output}");
            assert_eq!((tail.as_str(), editor.prefix()), ("</o:ListIdentifiers></o:OAI-PMH>", "o:"));
        }
    }

    #[test]
    fn the_last_item_can_be_delivered_alone() {
        let header = |id: &&str| {
            format!("<o:header><o:identifier>{id}</o:identifier><o:datestamp>x</o:datestamp></o:header>\n")
        };
        let list = |ids: &[&str]| {
            let headers: String = ids.iter().map(header).collect();
            format!("<o:OAI-PMH><o:request>u</o:request><o:ListIdentifiers>\n{headers}")
        };
        let tail = "</o:ListIdentifiers></o:OAI-PMH>";
        for (token, ids) in
            [("<o:resumptionToken>t</o:resumptionToken>", ["a", "b", "c"]), ("", ["b", "a", "c"])]
        {
            let page = format!("{}{token}{tail}", list(&ids));
            for piece_bytes in [1, 4, page.len()] {
                let edits = PageEdits { set: None, items: PageItems::Last, ..edits(Granularity::Second) };
                let (output, end, editor) = edited(&page, &edits, piece_bytes);
                assert_eq!((output, end.as_str()), (list(&["c"]), tail));
                assert_eq!(editor.items(), 3);
            }
        }
    }

    #[test]
    fn sets_and_errors_are_read() {
        let sets = format!(
            "{HEAD}<ListSets><set><setSpec>a</setSpec><setName>A</setName><setDescription><x><setSpec>n</setSpec></x>\
             </setDescription></set><resumptionToken/></ListSets></OAI-PMH>"
        );
        let edits = PageEdits { before_items: "<set/>".to_owned(), ..edits(Granularity::Second) };
        let (output, tail, _) = edited(&sets, &edits, 9);
        assert!(output.contains("<ListSets><set/><set><setSpec>x:a</setSpec>"), "{output}");
        assert!(output.contains("<x><setSpec>n</setSpec></x>"), "{output}");
        assert_eq!(tail, "</ListSets></OAI-PMH>");
        let error = format!("{HEAD}<error code=\"noRecordsMatch\">a &lt; b</error></OAI-PMH>");
        let (_, _, editor) = edited(&error, &edits, 5);
        assert_eq!(editor.error(), Some((ErrorCode::NoRecordsMatch, "a < b".to_owned())));
        assert_eq!(editor.items(), 0);
    }

    #[test]
    fn a_page_that_is_not_well_formed_or_has_an_endless_tag_is_a_failure() {
        let mut editor = PageEditor::new(edits(Granularity::Second));
        assert!(editor.push(b"<a></a></b>").is_err());
        let mut editor = PageEditor::new(edits(Granularity::Second));
        let pushed =
            (0..40).try_for_each(|_| editor.push(&[b"<a b='".as_slice(), &[b'x'; 64 << 10]].concat()));
        assert!(pushed.is_err());
    }
}
