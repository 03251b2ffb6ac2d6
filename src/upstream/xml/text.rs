//! Reads texts and error codes from XML.

use quick_xml::events::Event;
use std::borrow::Cow;

/// The value of a text in XML, such as a token: references resolved, trimmed.
pub(crate) fn unescape_text(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let value = quick_xml::escape::unescape(&text).map_or_else(|_| text.to_string(), Cow::into_owned);
    value.trim().to_owned()
}

/// The code of the first error in a response.
pub(crate) fn error_code(response: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(response).ok()?;
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) if tag.local_name().as_ref() == "error" => {
                let code = tag.try_get_attribute("code").ok().flatten();
                return code.map(|code| code.value.into_owned());
            }
            Ok(Event::Eof) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// The text of the first element of that name.
pub(crate) fn element_text(document: &str, name: &str) -> Option<String> {
    let mut reader = quick_xml::Reader::from_str(document);
    let mut is_inside = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => is_inside = tag.local_name().as_ref() == name,
            Event::Text(text) if is_inside => return Some(text.trim().to_owned()),
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// The text from a place on, up to the next tag.
pub(crate) fn text_after(text: &str, at: u64) -> Option<String> {
    let rest = text.get(usize::try_from(at).ok()?..)?;
    Some(rest.get(..rest.find('<')?)?.trim().to_owned())
}
