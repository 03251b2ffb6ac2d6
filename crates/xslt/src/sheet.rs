//! The text of a sheet, checked before libxslt sees it.

use crate::limits::SHEET_BYTES_MAX;
use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use quick_xml::NsReader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use std::fmt;
use std::sync::Arc;

/// The namespace of XSLT 1.0.
const XSLT: &str = "http://www.w3.org/1999/XSL/Transform";

/// The name of a sheet: the hash of its text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SheetId([u8; Self::BYTES]);

impl SheetId {
    /// Its length in bytes.
    pub(crate) const BYTES: usize = 32;

    /// The hash, 32 bytes of BLAKE2b.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The id at the start of a message, and the rest.
    pub(crate) fn split_from(message: &[u8]) -> Option<(Self, &[u8])> {
        message.split_first_chunk().map(|(id, rest)| (Self(*id), rest))
    }
}

impl fmt::Debug for SheetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// An XSLT 1.0 stylesheet whose text is in order. Clones share the text.
///
/// It is XML in UTF-8 with a stylesheet as its root, refers to no other sheet and declares no document type.
/// Whether libxslt compiles it is a question to [`XsltWorker::check`](crate::XsltWorker::check).
#[derive(Clone, PartialEq, Eq)]
pub struct Sheet {
    id: SheetId,
    text: Arc<[u8]>,
}

/// Why a text is no sheet. The text of the error says what the operator should change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SheetFault {
    /// It is too long.
    #[error("the sheet has {0} bytes, and at most {SHEET_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// It is not UTF-8.
    #[error("the sheet is not UTF-8; convert it, for example with iconv")]
    NotUtf8,
    /// It is no well-formed XML.
    #[error("line {line}: the sheet is not well-formed: {reason}")]
    NotWellFormed {
        /// The line of the fault, from 1.
        line: usize,
        /// The fault that quick-xml found.
        reason: String,
    },
    /// Its root is no stylesheet.
    #[error("the root of the sheet is no stylesheet of XSLT 1.0")]
    NoStylesheet,
    /// It declares a document type, and so possibly entities.
    #[error("line {line}: sheets with a document type are refused; write its entities as text")]
    DocumentType {
        /// The line, from 1.
        line: usize,
    },
    /// It refers to another sheet.
    #[error("line {line}: xsl:{element} is refused; copy the templates of the other file into the sheet")]
    OtherSheet {
        /// The line, from 1.
        line: usize,
        /// `include` or `import`.
        element: &'static str,
    },
    /// It writes text that is not escaped, which can be broken XML.
    #[error(
        "line {line}: disable-output-escaping is refused; write elements, or copy nodes with xsl:copy-of"
    )]
    RawOutput {
        /// The line, from 1.
        line: usize,
    },
}

impl Sheet {
    /// Checks the text of a sheet.
    ///
    /// # Errors
    ///
    /// [`SheetFault`]: a fault of the operator's file.
    pub fn read(text: Vec<u8>) -> Result<Self, SheetFault> {
        if text.len() > SHEET_BYTES_MAX {
            return Err(SheetFault::TooLong(text.len()));
        }
        check(std::str::from_utf8(&text).map_err(|_| SheetFault::NotUtf8)?)?;
        let id = SheetId(Blake2b::<U32>::digest(&text).into());
        Ok(Self { id, text: text.into() })
    }

    /// The name of the sheet, which another text does not have.
    pub fn id(&self) -> SheetId {
        self.id
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

impl fmt::Debug for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheet").field("id", &self.id).finish_non_exhaustive()
    }
}

fn check(text: &str) -> Result<(), SheetFault> {
    let mut reader = NsReader::from_str(text);
    let line = |at: u64| {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
        1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    };
    let mut has_root = false;
    loop {
        let position = reader.buffer_position();
        let event = reader.read_event().map_err(|error| SheetFault::NotWellFormed {
            line: line(reader.error_position()),
            reason: error.to_string(),
        })?;
        match event {
            Event::Start(element) | Event::Empty(element) => {
                let refused = judge(&reader, &element, has_root);
                has_root = true;
                refused.map_err(|refusal| refusal.at(line(position)))?;
            }
            Event::DocType(_) => return Err(SheetFault::DocumentType { line: line(position) }),
            Event::Eof if has_root => return Ok(()),
            Event::Eof => return Err(SheetFault::NoStylesheet),
            _ => {}
        }
    }
}

/// The fault of an element of a sheet.
enum Refusal {
    NoStylesheet,
    OtherSheet(&'static str),
    RawOutput,
    NotWellFormed(String),
}

impl Refusal {
    fn at(self, line: usize) -> SheetFault {
        match self {
            Self::NoStylesheet => SheetFault::NoStylesheet,
            Self::OtherSheet(element) => SheetFault::OtherSheet { line, element },
            Self::RawOutput => SheetFault::RawOutput { line },
            Self::NotWellFormed(reason) => SheetFault::NotWellFormed { line, reason },
        }
    }
}

/// Judges one element. `has_root`: another one came before.
fn judge(reader: &NsReader<&[u8]>, element: &BytesStart<'_>, has_root: bool) -> Result<(), Refusal> {
    let (namespace, name) = reader.resolver().resolve_element(element.name());
    let is_instruction = is_xslt(namespace);
    let name = name.as_ref();
    let mut is_root = is_instruction && ["stylesheet", "transform"].contains(&name);
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| Refusal::NotWellFormed(error.to_string()))?;
        let (namespace, attribute_name) = reader.resolver().resolve_attribute(attribute.key);
        // A simplified stylesheet (XSLT 1.0, section 2.3).
        is_root |= is_xslt(namespace) && attribute_name.as_ref() == "version";
        let is_raw = attribute_name.as_ref() == "disable-output-escaping" && &*attribute.value != "no";
        if is_instruction && is_raw {
            return Err(Refusal::RawOutput);
        }
    }
    match name {
        "include" if is_instruction => Err(Refusal::OtherSheet("include")),
        "import" if is_instruction => Err(Refusal::OtherSheet("import")),
        _ if !has_root && !is_root => Err(Refusal::NoStylesheet),
        _ => Ok(()),
    }
}

/// Whether a namespace is that of XSLT. quick-xml does not resolve references in declarations, and libxml2 does.
fn is_xslt(namespace: ResolveResult<'_>) -> bool {
    let ResolveResult::Bound(Namespace(name)) = namespace else { return false };
    unescape(name).is_ok_and(|name| name == XSLT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stylesheet with this content, which begins in its second line.
    fn sheet(content: &str) -> Result<Sheet, SheetFault> {
        let text = format!("<x:stylesheet version='1.0' xmlns:x='{XSLT}'>\n{content}</x:stylesheet>");
        Sheet::read(text.into_bytes())
    }

    #[test]
    fn a_sheet_is_named_by_its_text() {
        let (one, other) = (sheet("").expect("a sheet"), sheet("\n").expect("a sheet"));
        assert_eq!(one.id(), sheet("").expect("a sheet").id());
        assert_ne!(one.id(), other.id());
    }

    #[test]
    fn sheets_that_refer_to_others_are_refused() {
        for element in ["include", "import"] {
            let fault = Err(SheetFault::OtherSheet { line: 3, element });
            assert_eq!(sheet(&format!("\n<x:{element} href='a.xsl'/>")), fault);
            let other_prefix = format!("\n<y:{element} xmlns:y='{XSLT}' href='a.xsl'></y:{element}>");
            assert_eq!(sheet(&other_prefix), fault);
            // libxml2 resolves the reference in the declaration.
            let escaped = XSLT.replace('T', "&#84;");
            let hidden = format!("\n<{element} xmlns='{escaped}' href='a.xsl'/>");
            assert_eq!(sheet(&hidden), fault);
            let harmless = format!("<x:template match='/'><{element}/></x:template><!-- <x:{element}/> -->");
            assert!(sheet(&harmless).is_ok());
        }
    }

    #[test]
    fn sheets_with_a_document_type_are_refused() {
        let text = format!("\n<!DOCTYPE a [<!ENTITY e 'e'>]><a x:version='1.0' xmlns:x='{XSLT}'>&e;</a>");
        assert_eq!(Sheet::read(text.into_bytes()), Err(SheetFault::DocumentType { line: 2 }));
    }

    #[test]
    fn raw_output_is_refused() {
        let text =
            |value| format!("<x:template match='/'><x:text disable-output-escaping='{value}'/></x:template>");
        for value in ["yes", "&#121;es"] {
            assert_eq!(sheet(&text(value)), Err(SheetFault::RawOutput { line: 2 }), "{value}");
        }
        assert!(sheet(&text("no")).is_ok());
    }

    #[test]
    fn other_texts_are_no_sheets() {
        for (text, fault) in [
            (&b""[..], SheetFault::NoStylesheet),
            (b"<a/>", SheetFault::NoStylesheet),
            (b"<a version='1.0'/>", SheetFault::NoStylesheet),
            (b"\xff\xfe<\0a\0", SheetFault::NotUtf8),
        ] {
            assert_eq!(Sheet::read(text.to_vec()), Err(fault));
        }
        assert_eq!(
            Sheet::read(vec![b' '; SHEET_BYTES_MAX + 1]),
            Err(SheetFault::TooLong(SHEET_BYTES_MAX + 1))
        );
        let broken = sheet("\n<a></b>");
        assert!(matches!(broken, Err(SheetFault::NotWellFormed { line: 3, .. })), "{broken:?}");
        let simplified = format!("<a x:version='1.0' xmlns:x='{XSLT}'/>");
        assert!(Sheet::read(simplified.into_bytes()).is_ok());
    }
}
