//! Reads a tape from front to back.

use crate::description::TapeDescription;
use crate::fault::{Fault, TapeError, of_io};
use crate::limits::RECORD_BYTES_MAX;
use crate::members::{Member, Members};
use crate::names::NAMESPACE;
use crate::record::TapeRecord;
use oaimend_repository::xml::{NamespaceReader, XmlEvent, XmlReader};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::ops::Range;
use std::path::Path;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Longest text before the first `tapeAdmin` or `tapeRecord`, in bytes.
const PROLOG_BYTES_MAX: usize = 1 << 20;

/// A part of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapePart {
    /// A `tapeAdmin` element.
    Admin,
    /// A `tapeRecord` element.
    Record,
}

/// A tape that is read from front to back. Memory is limited to the longest record.
pub struct Scan<R> {
    members: Members<R>,
    /// Text that is read and not used up.
    window: String,
    /// The used up part of the window.
    used: usize,
    /// The place of the window in the XML.
    window_at: u64,
    /// The start of a character whose rest is not read yet.
    rest: Vec<u8>,
    has_ended: bool,
    /// The start tag of the document element; empty before it is read.
    root: String,
    /// The prefix of the elements of the tape, with its colon.
    prefix: String,
    is_closed: bool,
    /// The last part, in the window.
    part: Range<usize>,
}

/// Opens a tape.
///
/// # Errors
///
/// The file cannot be read, or it is no tape.
pub fn open_scan(path: &Path) -> Result<Scan<BufReader<File>>, TapeError> {
    Scan::new(BufReader::with_capacity(READ_BYTES, File::open(path)?))
}

/// Opens a tape to make its index. Its gzip members must be taken after each part.
pub(crate) fn open_scan_with_members(path: &Path) -> Result<Scan<BufReader<File>>, TapeError> {
    let file = BufReader::with_capacity(READ_BYTES, File::open(path)?);
    Scan::over(Members::noting_starts(file).map_err(of_io)?)
}

/// What the window begins with.
enum Next {
    Element(TapePart, Range<usize>),
    Closed(usize),
    /// The window ends before the element does, or it is malformed. The bytes before this place are used up.
    Unclear(usize, String),
}

impl<R: BufRead> Scan<R> {
    /// Reads the XML of a tape, plain or gzip, up to the start tag of its document element.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or it is no tape.
    pub fn new(file: R) -> Result<Self, TapeError> {
        Self::over(Members::new(file).map_err(of_io)?)
    }

    fn over(members: Members<R>) -> Result<Self, TapeError> {
        let mut scan = Self {
            members,
            window: String::new(),
            used: 0,
            window_at: 0,
            rest: Vec::new(),
            has_ended: false,
            root: String::new(),
            prefix: String::new(),
            is_closed: false,
            part: 0..0,
        };
        scan.read_root()?;
        Ok(scan)
    }

    /// The start tag of the document element.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The gzip members that were begun since the last call; none for plain XML, and none if [`open_scan`] has opened it.
    pub(crate) fn take_members(&mut self) -> Vec<Member> {
        self.members.take_starts()
    }

    /// The number of bytes of XML so far.
    pub(crate) fn xml_bytes(&self) -> u64 {
        self.window_at + (self.window.len() + self.rest.len()) as u64
    }

    /// The next part; `None` after the end of a whole tape. [`text`](Self::text) has its text.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the tape is malformed or ends early.
    pub fn next_part(&mut self) -> Result<Option<TapePart>, TapeError> {
        self.used = self.part.end.max(self.used);
        if self.is_closed {
            return self.read_epilog().map(|()| None);
        }
        loop {
            match self.find_next()? {
                Next::Element(part, place) => {
                    self.part = place;
                    return Ok(Some(part));
                }
                Next::Closed(end) => {
                    (self.used, self.is_closed) = (end, true);
                    return self.read_epilog().map(|()| None);
                }
                Next::Unclear(passed, problem) => {
                    self.used = passed;
                    let held = self.window.len() - self.used;
                    if self.has_ended {
                        return Err(self
                            .fault(format!("the tape ends early or is malformed: {problem}"))
                            .into());
                    }
                    if held >= RECORD_BYTES_MAX {
                        let text = format!(
                            "no element ends within {} MiB, or the XML is malformed: {problem}",
                            RECORD_BYTES_MAX >> 20
                        );
                        return Err(self.fault(text).into());
                    }
                    self.fill(held.max(READ_BYTES))?;
                }
            }
        }
    }

    /// The text of the last part.
    pub fn text(&self) -> &str {
        self.window.get(self.part.clone()).unwrap_or_default()
    }

    /// The place of the last part in the XML.
    pub fn text_at(&self) -> u64 {
        self.window_at + self.part.start as u64
    }

    /// The record that the last part is.
    ///
    /// # Errors
    ///
    /// It is malformed, or has no identifier or no legal date.
    pub fn record(&self) -> Result<TapeRecord, Fault> {
        TapeRecord::read(&self.root, self.text(), self.text_at())
    }

    /// The description that the last part is; `None` if it is none of ours.
    pub fn description(&self) -> Option<TapeDescription> {
        TapeDescription::read(&self.root, self.text())
    }

    fn fault(&self, text: impl Into<String>) -> Fault {
        Fault::xml(self.window_at + self.used as u64, text)
    }

    /// Reads about this many bytes more.
    fn fill(&mut self, count: usize) -> Result<(), TapeError> {
        self.window.drain(..self.used);
        self.window_at += self.used as u64;
        (self.part, self.used) = (0..0, 0);
        let mut bytes = std::mem::take(&mut self.rest);
        let read = (&mut self.members).take(count as u64).read_to_end(&mut bytes).map_err(of_io)?;
        self.has_ended = read == 0;
        let text = match str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() && !self.has_ended => {
                self.rest = bytes.split_off(error.valid_up_to());
                // The part before the error is valid.
                str::from_utf8(&bytes).unwrap_or_default()
            }
            Err(error) => {
                let at = self.window_at + (self.window.len() + error.valid_up_to()) as u64;
                return Err(Fault::xml(at, "the bytes are not UTF-8").into());
            }
        };
        self.window.push_str(text);
        Ok(())
    }

    fn read_root(&mut self) -> Result<(), TapeError> {
        loop {
            self.fill(READ_BYTES)?;
            match find_root(&self.window) {
                Ok((place, prefix)) => {
                    self.root = self.window.get(place.clone()).unwrap_or_default().to_owned();
                    (self.prefix, self.used) = (prefix, place.end);
                    return Ok(());
                }
                Err(problem) if self.has_ended || self.window.len() > PROLOG_BYTES_MAX => {
                    return Err(Fault::other_file(format!("this is no XMLtape: {problem}")).into());
                }
                Err(_) => {}
            }
        }
    }

    /// Finds the next element of the tape in the window.
    fn find_next(&self) -> Result<Next, TapeError> {
        let rest = self.window.get(self.used..).unwrap_or_default();
        let mut reader = XmlReader::of_part(rest);
        // White space and comments are used up, however long they are together.
        let mut passed = self.used;
        let unclear = |passed: usize, problem: &str| Ok(Next::Unclear(passed, problem.to_owned()));
        let (part, start) = loop {
            let event = reader.read();
            if matches!(event, Ok(Some(XmlEvent::Text(_) | XmlEvent::Other))) {
                passed = self.used + reader.span().end;
            }
            match event {
                Ok(Some(XmlEvent::Start(tag))) => {
                    let Some(local) = tag.name().strip_prefix(self.prefix.as_str()) else {
                        return Err(self
                            .fault(format!("the tape contains the element {}", tag.name()))
                            .into());
                    };
                    let start = reader.span().start;
                    match local {
                        "tapeAdmin" => break (TapePart::Admin, start),
                        "tapeRecord" => break (TapePart::Record, start),
                        _ => {
                            let text = format!("the tape contains the element {}", tag.name());
                            return Err(self.fault(text).into());
                        }
                    }
                }
                Ok(Some(XmlEvent::End(tag))) if tag.local_name() == "tape" => {
                    return Ok(Next::Closed(self.used + reader.span().end));
                }
                Ok(Some(XmlEvent::End(_))) => return Err(self.fault("an end tag has no start tag").into()),
                Ok(Some(XmlEvent::Text(text))) => {
                    let is_blank = text.resolve().is_ok_and(|text| text.trim_ascii().is_empty());
                    if !is_blank {
                        return Err(self.fault("text is between the records").into());
                    }
                }
                Ok(Some(XmlEvent::Doctype)) => return Err(self.fault("a document type is declared").into()),
                Ok(Some(XmlEvent::Other)) => {}
                Ok(None) => return unclear(passed, "the end tag of the tape is missing"),
                Err(error) => return unclear(passed, &error.to_string()),
            }
        };
        // The names of end tags are checked inside the element.
        let Some(element) = rest.get(start..) else { return unclear(passed, "it is cut") };
        let mut reader = XmlReader::new(element);
        loop {
            match reader.read() {
                Ok(Some(XmlEvent::End(_))) if reader.depth() == 0 => {
                    let end = start + reader.span().end;
                    return Ok(Next::Element(part, self.used + start..self.used + end));
                }
                Ok(Some(_)) => {}
                Ok(None) => return unclear(passed, "an element has no end tag"),
                Err(error) => return unclear(passed, &error.to_string()),
            }
        }
    }

    /// Reads the rest of the file after the end tag: only comments, instructions and white space may follow.
    fn read_epilog(&mut self) -> Result<(), TapeError> {
        while !self.has_ended {
            if self.window.len() - self.used > PROLOG_BYTES_MAX {
                return Err(self.fault("much text follows the end tag of the tape").into());
            }
            self.fill(READ_BYTES)?;
        }
        let mut reader = XmlReader::new(self.window.get(self.used..).unwrap_or_default());
        loop {
            match reader.read() {
                Ok(None) => return Ok(()),
                Ok(Some(XmlEvent::Other)) => {}
                Ok(Some(XmlEvent::Text(text)))
                    if text.resolve().is_ok_and(|text| text.trim_ascii().is_empty()) => {}
                Ok(Some(_)) | Err(_) => {
                    return Err(self.fault("text follows the end tag of the tape").into());
                }
            }
        }
    }
}

/// The place of the start tag of the tape, and its prefix with the colon.
fn find_root(text: &str) -> Result<(Range<usize>, String), String> {
    let mut reader = NamespaceReader::new(XmlReader::new(text));
    loop {
        match reader.read() {
            Ok(Some(XmlEvent::Start(tag))) => {
                let namespace = reader.namespace(tag).map_err(|error| error.to_string())?;
                if tag.local_name() != "tape" || namespace != NAMESPACE {
                    let name = tag.name();
                    return Err(format!("its document element is {name} in the namespace \"{namespace}\""));
                }
                if tag.is_empty() {
                    return Err("it has no records".to_owned());
                }
                return Ok((reader.span(), tag.prefix().to_owned()));
            }
            Ok(Some(XmlEvent::Doctype)) => return Err("it declares a document type".to_owned()),
            Ok(Some(_)) => {}
            Ok(None) => return Err("it has no document element".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "<?xml version=\"1.0\"?>\n<!-- c --><t:tape xmlns:t=\"http://library.lanl.gov/2005-08/aDORe/XMLtape/\">";

    fn parts(text: &[u8]) -> Result<Vec<String>, String> {
        let read = || {
            let mut scan = Scan::new(text)?;
            let mut parts = Vec::new();
            while let Some(part) = scan.next_part()? {
                let is_here = str::from_utf8(text).unwrap_or_default().get(scan.text_at() as usize..);
                assert!(is_here.is_some_and(|rest| rest.starts_with(scan.text())));
                parts.push(format!("{part:?} {}", scan.text()));
            }
            Ok(parts)
        };
        read().map_err(|error: TapeError| error.to_string())
    }

    #[test]
    fn parts_are_found_at_any_length() {
        for length in [1, 100, READ_BYTES - 60, READ_BYTES, 3 * READ_BYTES + 17] {
            let long = "é".repeat(length);
            let admin = "<t:tapeAdmin/>".to_owned();
            let record = format!("<t:tapeRecord><x>{long}<t:tapeRecord/></x></t:tapeRecord>");
            let text = format!("{HEAD}{admin} <?p?> {record}\n{record}</t:tape >\n<!-- end -->\n");
            let expected = [format!("Admin {admin}"), format!("Record {record}"), format!("Record {record}")];
            assert_eq!(parts(text.as_bytes()), Ok(expected.to_vec()), "{length}");
        }
    }

    #[test]
    fn malformed_tapes_are_faults_with_their_place() {
        let at = |text: &str| format!("at byte {} of the XML: {text}", HEAD.len());
        for (body, expected) in [
            ("<t:tapeRecord>", at("the tape ends early or is malformed: an element has no end tag")),
            ("", at("the tape ends early or is malformed: the end tag of the tape is missing")),
            ("x</t:tape>", at("text is between the records")),
            ("<tapeRecord/></t:tape>", at("the tape contains the element tapeRecord")),
            ("<t:x/></t:tape>", at("the tape contains the element t:x")),
            ("<!DOCTYPE a></t:tape>", at("a document type is declared")),
        ] {
            assert_eq!(parts(format!("{HEAD}{body}").as_bytes()), Err(expected), "{body}");
        }
        let after = parts(format!("{HEAD}</t:tape>x").as_bytes()).expect_err("text follows");
        assert!(after.ends_with("text follows the end tag of the tape"), "{after}");
        let crossed = parts(format!("{HEAD}<t:tapeRecord><a></b></t:tapeRecord></t:tape>").as_bytes());
        assert!(crossed.expect_err("an end tag is wrong").contains("malformed"));
        let bytes = [HEAD.as_bytes(), b"<t:tapeRecord>\xff"].concat();
        assert_eq!(
            parts(&bytes),
            Err(format!("at byte {} of the XML: the bytes are not UTF-8", HEAD.len() + 14))
        );
        for other in ["", "<a/>", "text", "<tape/>", "<!DOCTYPE tape><tape/>"] {
            assert!(
                parts(other.as_bytes()).expect_err("no tape").starts_with("this is no XMLtape: "),
                "{other}"
            );
        }
    }
}
