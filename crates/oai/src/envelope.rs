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
    while let Some(at) = rest.find(needs_escape) {
        let (plain, from) = rest.split_at(at);
        xml.push_str(plain);
        let mut characters = from.chars();
        match characters.next().unwrap_or_default() {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\t' => xml.push_str("&#9;"),
            '\n' => xml.push_str("&#10;"),
            '\r' => xml.push_str("&#13;"),
            _ => xml.push('\u{FFFD}'),
        }
        rest = characters.as_str();
    }
    xml.push_str(rest);
}

/// Whether a character is written as a reference, or cannot be written at all.
fn needs_escape(character: char) -> bool {
    match character {
        '&' | '<' | '>' | '"' | '\t' | '\n' | '\r' => true,
        ' '..='~' => false,
        _ => !is_xml_char(character),
    }
}
