//! Where the header of a stored record is, how its header is served, and the hash of the served record.
//!
//! A view serves a record with a header of its own, and copies the bytes around it. Most records have the form that the
//! engine writes for them, so a store notes the place of the header once, and a page needs no search. A record of
//! another form is read as XML each time.

use memchr::{memchr_iter, memmem};
use oaimend_oai::escape;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// A SHA-256.
pub type Sha256 = [u8; SHA256_OUTPUT_LEN];

/// The place of the header in the bytes of a record.
///
/// Invariant: [`RecordLayout::of`] returns it only for valid UTF-8 that begins with `<record>`, or with a start tag of
/// this name with attributes, and ends with `</record>`. Only white space is between the start tag and the header, which
/// has no elements inside its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// The first byte of the header.
    pub header_start: u32,
    /// The first byte after the header.
    pub header_end: u32,
}

const HEADER_END: &[u8] = b"</header>";
const RECORD_END: &[u8] = b"</record>";
/// The tags of the fields of a header.
const FIELD_TAGS: [&[u8]; 6] =
    [b"<identifier>", b"</identifier>", b"<datestamp>", b"</datestamp>", b"<setSpec>", b"</setSpec>"];

impl RecordLayout {
    /// The layout of a record; `None` if it has another form.
    pub fn of(record: &[u8]) -> Option<Self> {
        if !record.ends_with(RECORD_END) {
            return None;
        }
        let root = record.strip_prefix(b"<record")?;
        let root_end = start_tag_end(root)?;
        let header_start = record.len() - root.len() + root_end;
        let header = record.get(header_start..)?;
        let blank = header.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let header = header.get(blank..)?;
        let content_start = start_tag_end(header.strip_prefix(b"<header")?)? + b"<header".len();
        let content_end = content_start + memmem::find(header.get(content_start..)?, HEADER_END)?;
        let content = header.get(content_start..content_end)?;
        let is_field_tag = |at: usize| {
            let rest = content.get(at..).unwrap_or_default();
            FIELD_TAGS.iter().any(|tag| rest.starts_with(tag))
        };
        let is_plain = memchr_iter(b'<', content).all(is_field_tag) && is_balanced(content);
        let header_start = header_start + blank;
        let layout = Self {
            header_start: u32::try_from(header_start).ok()?,
            header_end: u32::try_from(header_start + content_end + HEADER_END.len()).ok()?,
        };
        let is_apart = layout.header_end as usize + RECORD_END.len() <= record.len();
        (is_plain && is_apart && simdutf8::basic::from_utf8(record).is_ok()).then_some(layout)
    }

    /// The bytes before and after the header; `None` if this is not the layout of the record.
    pub fn split<'r>(&self, record: &'r [u8]) -> Option<(&'r [u8], &'r [u8])> {
        let (start, end) = (self.header_start as usize, self.header_end as usize);
        let is_header = record.get(start..end)?.starts_with(b"<header") && record.ends_with(RECORD_END);
        is_header.then_some((record.get(..start)?, record.get(end..)?))
    }
}

/// The first byte after a start tag, from the end of its name on. `None` if the tag may be of another name, or if it
/// has no content.
fn start_tag_end(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'>' => Some(1),
        b' ' | b'\t' | b'\n' | b'\r' => {
            let end = memchr::memchr(b'>', rest)?;
            let attributes = rest.get(..end)?;
            // A `>` in a value would end the tag too early.
            let quotes = |quote: u8| memchr_iter(quote, attributes).count();
            let is_whole = match (quotes(b'"'), quotes(b'\'')) {
                (double, 0) => double % 2 == 0,
                (0, single) => single % 2 == 0,
                _ => false,
            };
            (is_whole && !attributes.ends_with(b"/") && memchr::memchr(b'<', attributes).is_none())
                .then_some(end + 1)
        }
        _ => None,
    }
}

/// Whether each start tag of a field is followed by its end tag.
fn is_balanced(content: &[u8]) -> bool {
    let mut open: Option<&[u8]> = None;
    for at in memchr_iter(b'<', content) {
        let tag = content.get(at + 1..).unwrap_or_default();
        match (open, tag.strip_prefix(b"/")) {
            (None, None) => open = tag.split(|byte| *byte == b'>').next(),
            (Some(name), Some(end)) if end.strip_prefix(name).is_some_and(|end| end.starts_with(b">")) => {
                open = None;
            }
            _ => return false,
        }
    }
    open.is_none()
}

/// The fields of a served header.
#[derive(Clone, Copy, Debug)]
pub struct ServedHeader<'r> {
    /// The identifier.
    pub identifier: &'r str,
    /// The datestamp as text.
    pub datestamp: &'r str,
    /// Whether the record is deleted.
    pub is_deleted: bool,
    /// The setSpecs.
    pub set_specs: &'r [String],
}

impl ServedHeader<'_> {
    /// Writes the element. `prefix` is the prefix of the OAI namespace with its colon, or empty.
    pub fn write(&self, prefix: &str, xml: &mut String) {
        let status = if self.is_deleted { " status=\"deleted\"" } else { "" };
        push(xml, &["<", prefix, "header", status, ">"]);
        let set_specs = self.set_specs.iter().map(|set_spec| ("setSpec", set_spec.as_str()));
        let fields = [("identifier", self.identifier), ("datestamp", self.datestamp)];
        for (name, value) in fields.into_iter().chain(set_specs) {
            push(xml, &["<", prefix, name, ">"]);
            escape(value, xml);
            push(xml, &["</", prefix, name, ">"]);
        }
        push(xml, &["</", prefix, "header>"]);
    }
}

fn push(xml: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| xml.push_str(part));
}

/// The hash of a record as the view of its repository serves it, without the stamp, so that a harvester can compute it
/// from what it received.
///
/// It is the SHA-256 of the `record` element, from its start tag to its end tag, with the header that the view writes.
/// The text of the `datestamp` element is left out, and its tags stay. A container of provenance that a view adds is left
/// out too. A record without a layout has the hash of its stored bytes, because only a view knows how it is served.
pub fn served_hash(
    header: &ServedHeader<'_>,
    layout: Option<&RecordLayout>,
    record: &[u8],
    scratch: &mut String,
) -> Sha256 {
    let mut hash = Context::new(&SHA256);
    match layout.and_then(|layout| layout.split(record)) {
        Some((before, after)) => {
            scratch.clear();
            ServedHeader { datestamp: "", ..*header }.write("", scratch);
            hash.update(before);
            hash.update(scratch.as_bytes());
            hash.update(after);
        }
        None => hash.update(record),
    }
    let mut sum = [0; SHA256_OUTPUT_LEN];
    sum.copy_from_slice(hash.finish().as_ref());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_of(record: &str) -> Option<&str> {
        let layout = RecordLayout::of(record.as_bytes())?;
        record.get(layout.header_start as usize..layout.header_end as usize)
    }

    #[test]
    fn the_header_of_a_usual_record_is_found() {
        let fields = "\n<identifier>a&lt;b</identifier> <datestamp>2020</datestamp><setSpec>a:b</setSpec>";
        for (root, status) in [
            ("<record>\n\t", ""),
            ("<record xmlns:a=\"urn:a\" b=\"'\">", ""),
            ("<record>", " status='deleted'"),
        ] {
            let header = format!("<header{status}>{fields}</header>");
            let record = format!("{root}{header}\n<metadata><header></header></metadata></record>");
            let expected = if root.contains('\'') { None } else { Some(header.as_str()) };
            assert_eq!(header_of(&record), expected, "{record}");
        }
    }

    #[test]
    fn other_forms_have_no_layout() {
        for record in [
            "",
            "<record>",
            "<record></record>",
            "<record/>",
            "<recorder><header></header></recorder></record>",
            "<record a=\">\"><header></header></record>",
            "<record><!-- --><header></header></record>",
            "<record><headers></header></record>",
            "<record><header/></record>",
            "<record><header><!--</header>--></header></record>",
            "<record><header><x></x></header></record>",
            "<record><header><identifier><setSpec></identifier></setSpec></header></record>",
            "<record><header><identifier></header></record>",
            "<record><header></header></record> ",
            "<o:record><o:header></o:header></o:record>",
        ] {
            assert_eq!(header_of(record), None, "{record}");
        }
        assert_eq!(RecordLayout::of(b"<record><header></header>\xff</record>"), None);
    }

    #[test]
    fn the_hash_is_that_of_the_served_record_without_its_stamp() {
        let record = "<record> <header><identifier>a</identifier>\n<datestamp>2020-01-01</datestamp></header>x</record>";
        let sets = ["b".to_owned()];
        let header = ServedHeader {
            identifier: "a",
            datestamp: "2026-01-01T00:00:00Z",
            is_deleted: false,
            set_specs: &sets,
        };
        let layout = RecordLayout::of(record.as_bytes());
        let served = "<record> <header><identifier>a</identifier><datestamp></datestamp><setSpec>b</setSpec></header>x</record>";
        let sum = served_hash(&header, layout.as_ref(), record.as_bytes(), &mut String::new());
        assert_eq!(sum.as_slice(), ring::digest::digest(&SHA256, served.as_bytes()).as_ref());
        let sum = served_hash(&header, None, record.as_bytes(), &mut String::new());
        assert_eq!(sum.as_slice(), ring::digest::digest(&SHA256, record.as_bytes()).as_ref());
    }
}
