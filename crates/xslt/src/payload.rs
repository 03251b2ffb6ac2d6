//! Checks payloads before a transformation, and outputs after it.
//!
//! Pure: no I/O.

use crate::failure::{FailureKind, SheetFailure};
use crate::limits::PAYLOAD_BYTES_MAX;
use oaimend_oai::is_xml_char;
use quick_xml::NsReader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use std::ops::Range;

/// Checks that a payload begins with an element and declares no document type, so that libxml2 sees no entity. libxml2
/// reads the rest strictly.
pub(crate) fn check_payload(payload: &[u8]) -> Result<(), SheetFailure> {
    let refused = |why: String| SheetFailure::new(FailureKind::PayloadRefused, why);
    if payload.len() > PAYLOAD_BYTES_MAX {
        let length = payload.len();
        return Err(refused(format!(
            "the payload has {length} bytes, and at most {PAYLOAD_BYTES_MAX} are transformed"
        )));
    }
    let text = std::str::from_utf8(payload).map_err(|_| refused("the payload is not UTF-8".to_owned()))?;
    let mut reader = NsReader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(_) | Event::Empty(_)) => return Ok(()),
            Ok(Event::Decl(_) | Event::Comment(_) | Event::PI(_)) => {}
            Ok(Event::Text(text)) if is_blank(&text) => {}
            Ok(Event::DocType(_)) => return Err(refused("the payload declares a document type".to_owned())),
            Ok(_) => return Err(refused("the payload is no element".to_owned())),
            Err(error) => return Err(refused(format!("the payload is not well-formed: {error}"))),
        }
    }
}

/// The place of the one element of an output. What is around it, such as the XML declaration, is no part of a payload.
pub(crate) fn element_of(output: &[u8]) -> Result<Range<usize>, SheetFailure> {
    let invalid = |why: String| SheetFailure::new(FailureKind::OutputInvalid, format!("the output {why}"));
    let text = std::str::from_utf8(output).map_err(|_| invalid("is not UTF-8".to_owned()))?;
    read_element(text).map_err(invalid)
}

fn read_element(text: &str) -> Result<Range<usize>, String> {
    if let Some(character) = text.chars().find(|character| !is_xml_char(*character)) {
        return Err(format!("contains U+{:04X}, which is no character of XML", u32::from(character)));
    }
    let mut reader = NsReader::from_str(text);
    let at = |position: u64| usize::try_from(position).unwrap_or(text.len());
    let mut root: Option<Range<usize>> = None;
    // Number of elements that are open.
    let mut depth = 0_usize;
    loop {
        let start = at(reader.buffer_position());
        let event = reader.read_event().map_err(|error| format!("is not well-formed: {error}"))?;
        match event {
            Event::Start(element) => {
                check_element(&reader, &element)?;
                if depth == 0 && root.replace(start..start).is_some() {
                    return Err("contains more than one element".to_owned());
                }
                depth += 1;
            }
            Event::Empty(element) => {
                check_element(&reader, &element)?;
                let end = at(reader.buffer_position());
                if depth == 0 && root.replace(start..end).is_some() {
                    return Err("contains more than one element".to_owned());
                }
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                if let (0, Some(root)) = (depth, &mut root) {
                    root.end = at(reader.buffer_position());
                }
            }
            Event::GeneralRef(name) if depth > 0 => {
                unescape(&format!("&{};", &*name)).map_err(|error| format!("is not well-formed: {error}"))?;
            }
            Event::Text(text) if depth == 0 && !is_blank(&text) => {
                return Err("contains text outside its element".to_owned());
            }
            Event::GeneralRef(_) | Event::CData(_) if depth == 0 => {
                return Err("contains text outside its element".to_owned());
            }
            Event::Eof if depth > 0 => return Err("contains an element that does not end".to_owned()),
            Event::Eof => return root.ok_or_else(|| "contains no element".to_owned()),
            // libxslt writes it for `doctype-system` of xsl:output. It has no declarations.
            Event::DocType(_) | Event::GeneralRef(_) => {}
            Event::Text(_) | Event::CData(_) | Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
        }
    }
}

/// Checks that all prefixes are declared and that no attribute comes twice.
fn check_element(reader: &NsReader<&[u8]>, element: &BytesStart<'_>) -> Result<(), String> {
    let declared = |namespace: ResolveResult<'_>| match namespace {
        ResolveResult::Unknown(prefix) => Err(format!("uses the prefix {prefix} without declaring it")),
        ResolveResult::Bound(_) | ResolveResult::Unbound => Ok(()),
    };
    declared(reader.resolver().resolve_element(element.name()).0)?;
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| format!("is not well-formed: {error}"))?;
        if attribute.key.as_namespace_binding().is_none() {
            declared(reader.resolver().resolve_attribute(attribute.key).0)?;
        }
        unescape(&attribute.value).map_err(|error| format!("is not well-formed: {error}"))?;
    }
    Ok(())
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_an_element_without_a_document_type() {
        for payload in
            ["<a/>", "<?xml version='1.0'?>\n<!-- c --><?p?><a>", "<a><![CDATA[<!DOCTYPE a>]]></a>"]
        {
            assert_eq!(check_payload(payload.as_bytes()), Ok(()), "{payload}");
        }
        for (payload, message) in [
            (&b"<!DOCTYPE a [<!ENTITY e 'e'>]><a>&e;</a>"[..], "the payload declares a document type"),
            (b"<!-- c --><!DOCTYPE a><a/>", "the payload declares a document type"),
            (b"text", "the payload is no element"),
            (b"", "the payload is no element"),
            (b"\xff\xfe<\0a\0", "the payload is not UTF-8"),
            (b"<a", "the payload is not well-formed: "),
        ] {
            let failure = check_payload(payload).expect_err(message);
            assert_eq!(failure.kind, FailureKind::PayloadRefused);
            assert!(failure.message.starts_with(message), "{failure}");
        }
        let failure = check_payload(&vec![b' '; PAYLOAD_BYTES_MAX + 1]).expect_err("it is too long");
        assert!(failure.message.contains("16777217 bytes"), "{failure}");
    }

    #[test]
    fn the_output_is_one_element() {
        for (output, element) in [
            ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a>\n</a>\n", "<a>\n</a>"),
            ("<!DOCTYPE a SYSTEM \"a.dtd\"><!-- c --><a/><?p?>", "<a/>"),
            (
                "<p:a xmlns:p='urn:p' p:b='&lt;'>&amp;&#233;<p:a/><![CDATA[&]]></p:a>",
                "<p:a xmlns:p='urn:p' p:b='&lt;'>&amp;&#233;<p:a/><![CDATA[&]]></p:a>",
            ),
        ] {
            let range = element_of(output.as_bytes()).expect(output);
            assert_eq!(output.get(range), Some(element));
        }
    }

    #[test]
    fn any_other_output_is_refused() {
        for (output, message) in [
            ("", "the output contains no element"),
            ("<?xml version='1.0'?>text", "the output contains text outside its element"),
            ("<a/>&amp;", "the output contains text outside its element"),
            ("<a/><![CDATA[]]>", "the output contains text outside its element"),
            ("<a/><b/>", "the output contains more than one element"),
            ("<a></a><b></b>", "the output contains more than one element"),
            ("<p:a/>", "the output uses the prefix p without declaring it"),
            ("<a p:b='1'/>", "the output uses the prefix p without declaring it"),
            ("<a b='1' b='2'/>", "the output is not well-formed: "),
            ("<a b='&nbsp;'/>", "the output is not well-formed: "),
            ("<a>&nbsp;</a>", "the output is not well-formed: "),
            ("<a><b></a>", "the output is not well-formed: "),
            ("<a>", "the output contains an element that does not end"),
            ("<a>\u{1}</a>", "the output contains U+0001, which is no character of XML"),
        ] {
            let failure = element_of(output.as_bytes()).expect_err(output);
            assert_eq!(failure.kind, FailureKind::OutputInvalid);
            assert!(failure.message.starts_with(message), "{output}: {failure}");
        }
        assert!(element_of(b"<a>\xff</a>").is_err());
    }
}
