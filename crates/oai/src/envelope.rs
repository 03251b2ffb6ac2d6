//! The head of our own responses, and texts in XML.

use crate::request_echo::RequestEcho;

/// Writes a response up to the end of its `request` element, and a line break.
///
/// `response_date` has the form `YYYY-MM-DDThh:mm:ssZ` and is not checked.
pub fn response_head(request: &RequestEcho, response_date: &str, has_attributes: bool) -> String {
    let mut xml = String::from(concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"",
        " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
        " xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/",
        " http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n",
        "  <responseDate>",
    ));
    escape(response_date, &mut xml);
    xml.push_str("</responseDate>\n  <request");
    if has_attributes {
        for (name, value) in &request.arguments {
            xml.push(' ');
            xml.push_str(name);
            xml.push_str("=\"");
            escape(value, &mut xml);
            xml.push('"');
        }
    }
    xml.push('>');
    escape(&request.base_url, &mut xml);
    xml.push_str("</request>\n");
    xml
}

/// Whether XML 1.0 allows the character.
pub fn is_xml_char(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// Escapes text for content and attributes. Characters that XML does not allow become U+FFFD.
pub fn escape(text: &str, xml: &mut String) {
    let mut rest = text;
    while let Some((plain, from)) = rest.split_at_checked(plain_bytes(rest.as_bytes())) {
        xml.push_str(plain);
        if from.is_empty() {
            return;
        }
        let mut characters = from.chars();
        match characters.next().unwrap_or_default() {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\t' => xml.push_str("&#9;"),
            '\n' => xml.push_str("&#10;"),
            '\r' => xml.push_str("&#13;"),
            other if is_xml_char(other) => xml.push(other),
            _ => xml.push('\u{FFFD}'),
        }
        rest = characters.as_str();
    }
}

/// The number of bytes of a text before the first one that may need a reference.
fn plain_bytes(text: &[u8]) -> usize {
    // The processor compares all bytes of a chunk at once.
    const CHUNK_BYTES: usize = 32;
    let is_plain = |chunk: &[u8]| !chunk.iter().fold(false, |found, byte| found | may_need_escape(*byte));
    let plain = text.chunks(CHUNK_BYTES).take_while(|chunk| is_plain(chunk)).map(<[u8]>::len).sum::<usize>();
    let rest = text.get(plain..).unwrap_or_default();
    plain + rest.iter().position(|byte| may_need_escape(*byte)).unwrap_or(rest.len())
}

/// Whether a byte begins a character that is written as a reference, or that may be one which XML does not allow. These are
/// controls, U+FFFE and U+FFFF.
const fn may_need_escape(byte: u8) -> bool {
    matches!(byte, ..b' ' | b'&' | b'<' | b'>' | b'"' | 0xEF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_written_as_it_is_or_as_a_reference() {
        let expected = |character: char| match character {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            '\t' | '\n' | '\r' => format!("&#{};", u32::from(character)),
            _ if is_xml_char(character) => character.to_string(),
            _ => '\u{FFFD}'.to_string(),
        };
        for character in '\0'..=char::MAX {
            // In the first bytes, and at the end of a chunk.
            for before in ["", "é", &"x".repeat(30)] {
                let mut xml = String::new();
                escape(&format!("{before}{character}{before}"), &mut xml);
                assert_eq!(xml, [before, &expected(character), before].concat(), "{character:?}");
            }
        }
    }
}
