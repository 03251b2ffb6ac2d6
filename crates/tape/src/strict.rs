//! Checks that a part of a tape is well-formed and correct in its namespaces, as strictly as other readers do.
//!
//! [`XmlReader`](oaimend_repository::xml::XmlReader) finds the parts of a tape, and leaves to this module what it does not
//! need for that: characters, names, attributes and prefixes.

use crate::fault::Fault;
use oaimend_oai::is_xml_char;
use oaimend_repository::xml::{
    NamespaceReader, StartTag, XmlError, XmlEvent, XmlReader, XmlText, declared_prefix,
};

/// Checks an element at `at` of a tape with this start tag.
pub(crate) fn check(root: &str, element: &str, at: u64) -> Result<(), Fault> {
    if let Some((place, character)) = element.char_indices().find(|(_, character)| !is_xml_char(*character)) {
        let text = format!("XML does not allow the character U+{:04X}", u32::from(character));
        return Err(Fault::xml(at + place as u64, text));
    }
    let whole = format!("{root}{element}");
    let mut reader = NamespaceReader::new(XmlReader::new(&whole));
    // The declared prefixes, each with the depth of its element.
    let mut declared: Vec<(usize, String)> = Vec::new();
    loop {
        let event = reader.read();
        let place = at + reader.span().start.saturating_sub(root.len()) as u64;
        let fault = |error: XmlError| Fault::xml(place, error.to_string());
        match event.map_err(fault)? {
            None => return Ok(()),
            Some(XmlEvent::Start(tag)) => {
                reader.namespace(tag).map_err(fault)?;
                let declarations = tag.declarations().into_iter();
                declared.extend(declarations.map(|(prefix, _)| (reader.depth(), prefix)));
                let written = whole.get(reader.span()).unwrap_or_default();
                check_tag(tag, written, &declared).map_err(|problem| Fault::xml(place, problem))?;
            }
            Some(XmlEvent::End(_)) => declared.retain(|(depth, _)| *depth < reader.depth()),
            Some(XmlEvent::Text(text)) => {
                let written = whole.get(reader.span()).unwrap_or_default();
                check_text(text, written).map_err(|problem| Fault::xml(place, problem))?;
            }
            Some(XmlEvent::Doctype) => return Err(Fault::xml(place, "a document type is declared")),
            Some(XmlEvent::Other) => {
                let written = whole.get(reader.span()).unwrap_or_default();
                check_other(written).map_err(|problem| Fault::xml(place, problem))?;
            }
        }
    }
}

fn check_tag(tag: StartTag<'_>, written: &str, declared: &[(usize, String)]) -> Result<(), String> {
    let is_qualified = |name: &str| match name.split_once(':') {
        None => is_name(name),
        Some((prefix, local)) => is_name(prefix) && is_name(local),
    };
    if !is_qualified(tag.name()) {
        return Err(format!("{} is no name of an element", tag.name()));
    }
    if written.get(1..).unwrap_or_default().contains('<') {
        return Err("an attribute contains <".to_owned());
    }
    for attribute in tag.attributes() {
        let (name, value) = attribute.map_err(|error| error.to_string())?;
        if !is_qualified(name) {
            return Err(format!("{name} is no name of an attribute"));
        }
        if !value.chars().all(is_xml_char) {
            return Err(format!("the attribute {name} contains a character that XML does not allow"));
        }
        if declared_prefix(name).is_some_and(|prefix| !prefix.is_empty() && value.is_empty()) {
            return Err(format!("{name} declares no namespace"));
        }
        let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
        let is_known = ["", "xml", "xmlns"].contains(&prefix);
        if !is_known && !declared.iter().any(|(_, known)| known == prefix) {
            return Err(format!("the prefix {prefix:?} is not declared"));
        }
    }
    Ok(())
}

fn check_text(text: XmlText<'_>, written: &str) -> Result<(), String> {
    let resolved = text.resolve().map_err(|error| error.to_string())?;
    match text {
        XmlText::Reference(name) if !resolved.chars().all(is_xml_char) => {
            Err(format!("XML does not allow the character &{name};"))
        }
        XmlText::Plain(_) if !written.starts_with("<![CDATA[") && written.contains("]]>") => {
            Err("]]> is in a text".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks a comment or a processing instruction.
fn check_other(written: &str) -> Result<(), String> {
    if let Some(comment) = written.strip_prefix("<!--") {
        let content = comment.strip_suffix("-->").unwrap_or(comment);
        let is_wrong = content.contains("--") || content.ends_with('-');
        return if is_wrong { Err("-- is in a comment".to_owned()) } else { Ok(()) };
    }
    let target = written.trim_start_matches("<?");
    let target = target.split(|character: char| character.is_ascii_whitespace() || character == '?').next();
    match target.unwrap_or_default() {
        target if target.eq_ignore_ascii_case("xml") => {
            Err("an XML declaration is inside the document".to_owned())
        }
        target if !is_name(target) => Err("a processing instruction has no target".to_owned()),
        _ => Ok(()),
    }
}

/// Whether a text is a name without a colon (Namespaces in XML 1.0, `NCName`).
fn is_name(text: &str) -> bool {
    let begins = |character: char| {
        matches!(character,
            'A'..='Z' | '_' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
            | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
            | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
            | '\u{10000}'..='\u{EFFFF}')
    };
    let continues = |character: char| {
        begins(character)
            || matches!(character, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
    };
    text.starts_with(begins) && text.chars().all(continues)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_elements_pass_and_others_are_faults() {
        let root = "<t:tape xmlns:t='t'>";
        for text in [
            "<t:a x=\"&lt;'\" t:y='1' xml:lang='en' xmlns:é='u'><é:b.-1/>&#x9;&amp;<![CDATA[]]]]><![CDATA[>]]></t:a>",
            "<a><!-- - --><?p ?><b xmlns=''/></a>",
        ] {
            assert_eq!(check(root, text, 0), Ok(()), "{text}");
        }
        for (text, expected) in [
            ("<a>\u{1}</a>", "at byte 10 of the XML: XML does not allow the character U+0001"),
            ("<a><x:b/></a>", "at byte 10 of the XML: the prefix \"x\" is not declared"),
            ("<a><b xmlns:x='1'/><c x:d=''/></a>", "at byte 26 of the XML: the prefix \"x\" is not declared"),
            ("<a b='1' b='2'/>", "at byte 7 of the XML: "),
            ("<a b='<'/>", "at byte 7 of the XML: an attribute contains <"),
            ("<a b='&nbsp;'/>", "at byte 7 of the XML: "),
            ("<a>&nbsp;</a>", "at byte 10 of the XML: the entity nbsp is not defined"),
            ("<a>&#1;</a>", "at byte 10 of the XML: "),
            ("<a>]]></a>", "at byte 10 of the XML: ]]> is in a text"),
            ("<a><!-- -- --></a>", "at byte 10 of the XML: "),
            ("<a><?xml version='1.0'?></a>", "at byte 10 of the XML: "),
            ("<a><1/></a>", "at byte 10 of the XML: 1 is no name of an element"),
            ("<a xmlns:b=''/>", "at byte 7 of the XML: "),
            ("<a></b>", "at byte 7 of the XML: "),
        ] {
            let fault = check(root, text, 7).expect_err(text).to_string();
            assert!(fault.starts_with(expected), "{text}: {fault}");
        }
    }
}
