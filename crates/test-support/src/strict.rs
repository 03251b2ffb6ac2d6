//! The judge that is always available: quick-xml with all its strict checks, and our own for the
//! rest.
//!
//! It returns a tree, which [`envelope`](super::envelope) checks against the schema. It rejects
//! every document that XML 1.0 with namespaces does not allow, and document type declarations.
//! Names are those of the fourth edition.

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use super::names;

/// An element of a well-formed document.
#[derive(Debug, Default)]
pub struct Element {
    pub namespace: String,
    pub name: String,
    /// Namespace, local name and value; namespace declarations are left out.
    pub attributes: Vec<(String, String, String)>,
    pub children: Vec<Self>,
    /// The text between the children, references resolved.
    pub text: String,
}

/// Parses one document strictly.
pub fn read(document: &[u8]) -> Result<Element, String> {
    let text = std::str::from_utf8(document).map_err(|error| format!("no UTF-8: {error}"))?;
    if let Some((at, bad)) = text.char_indices().find(|(_, c)| !is_xml_char(*c)) {
        return Err(format!("U+{:04X} at {at}", u32::from(bad)));
    }
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if body.starts_with('\u{feff}') {
        return Err("two byte order marks".to_owned());
    }
    let mut reader = NsReader::from_str(body);
    let config = reader.config_mut();
    config.check_comments = true;
    config.check_end_names = true;
    config.expand_empty_elements = true;
    config.trim_markup_names_in_closing_tags = true;
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event().map_err(|error| format!("{error} at {at}"))?;
        match event {
            Event::Eof => break,
            Event::Start(tag) => {
                if root.is_some() {
                    return Err(format!("a second document element at {at}"));
                }
                open.push(element(&reader, &tag).map_err(|error| format!("{error} at {at}"))?);
            }
            Event::End(_) => {
                let closed = open.pop().ok_or(format!("nothing to close at {at}"))?;
                match open.last_mut() {
                    Some(parent) => parent.children.push(closed),
                    None => root = Some(closed),
                }
            }
            other => {
                let characters = content(&other, at).map_err(|error| format!("{error} at {at}"))?;
                match open.last_mut() {
                    Some(parent) => parent.text.push_str(&characters),
                    None if matches!(other, Event::CData(_) | Event::GeneralRef(_)) => {
                        return Err(format!("character data outside the document element at {at}"));
                    }
                    None if characters.trim_matches(BLANKS).is_empty() => {}
                    None => return Err(format!("text outside the document element at {at}")),
                }
            }
        }
    }
    if !open.is_empty() {
        return Err("an element is not closed".to_owned());
    }
    root.ok_or("no document element".to_owned())
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// The text of an event, after checking that it is legal.
fn content(event: &Event<'_>, at: u64) -> Result<String, String> {
    match event {
        Event::Text(text) if text.contains("]]>") => Err("]]> in text".to_owned()),
        Event::Text(text) => Ok(text.to_string()),
        Event::CData(text) => Ok(text.to_string()),
        Event::GeneralRef(name) => reference(name),
        Event::Comment(text) if text.ends_with('-') => Err("--- at the end of a comment".to_owned()),
        Event::Comment(_) => Ok(String::new()),
        Event::PI(pi) if pi.target().eq_ignore_ascii_case("xml") => {
            Err("an XML declaration inside".to_owned())
        }
        Event::PI(pi) if !is_name(pi.target()) => Err(format!("target {:?}", pi.target())),
        Event::PI(_) => Ok(String::new()),
        Event::Decl(_) if at > 0 => Err("an XML declaration that is not the first thing".to_owned()),
        Event::Decl(declaration) => {
            let text: &str = declaration;
            declaration_is_legal(text).then(String::new).ok_or(format!("declaration {text:?}"))
        }
        Event::DocType(_) => Err("a document type declaration".to_owned()),
        _ => Err("an event that should not come here".to_owned()),
    }
}

/// The name and the attributes, all prefixes resolved.
fn element(reader: &NsReader<&[u8]>, tag: &BytesStart<'_>) -> Result<Element, String> {
    let name = tag.name();
    let raw = name.as_ref();
    if !is_qname(raw) {
        return Err(format!("name {raw:?}"));
    }
    spacing_is_legal(tag.attributes_raw())?;
    let (namespace, local) = reader.resolver().resolve_element(name);
    let mut made =
        Element { namespace: known(namespace)?, name: local.as_ref().to_owned(), ..Element::default() };
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let key = attribute.key.as_ref();
        if !is_qname(key) {
            return Err(format!("attribute name {key:?}"));
        }
        if attribute.value.contains('<') {
            return Err(format!("< in attribute {key}"));
        }
        let value = attribute_value(&attribute.value)?;
        if let Some(prefix) = attribute.key.as_namespace_binding() {
            binding_is_legal(&format!("{prefix:?}"), key, &value)?;
            continue;
        }
        let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
        let entry = (known(namespace)?, local.as_ref().to_owned(), value);
        if made.attributes.iter().any(|other| other.0 == entry.0 && other.1 == entry.1) {
            return Err(format!("attribute {key} twice"));
        }
        made.attributes.push(entry);
    }
    Ok(made)
}

fn known(namespace: ResolveResult<'_>) -> Result<String, String> {
    match namespace {
        ResolveResult::Bound(Namespace(uri)) => Ok(uri.to_owned()),
        ResolveResult::Unbound => Ok(String::new()),
        ResolveResult::Unknown(prefix) => Err(format!("prefix {prefix:?} is not declared")),
    }
}

/// A prefix may not be undeclared, and the two reserved ones may not be redeclared.
fn binding_is_legal(prefix: &str, key: &str, value: &str) -> Result<(), String> {
    let reserved = key == "xmlns:xmlns" || value == "http://www.w3.org/2000/xmlns/";
    let xml = (key == "xmlns:xml") != (value == "http://www.w3.org/XML/1998/namespace");
    let unbound = key != "xmlns" && value.is_empty();
    if reserved || xml || unbound { Err(format!("illegal binding of {prefix}")) } else { Ok(()) }
}

/// Resolves the references of an attribute value.
fn attribute_value(raw: &str) -> Result<String, String> {
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, behind)) = rest.split_once('&') {
        let (name, behind) = behind.split_once(';').ok_or("a bare & in an attribute")?;
        value.push_str(before);
        value.push_str(&reference(name)?);
        rest = behind;
    }
    value.push_str(rest);
    Ok(value)
}

/// The characters of a reference; `name` is the text between & and ;.
fn reference(name: &str) -> Result<String, String> {
    let illegal = || format!("reference &{name};");
    let number = match name.strip_prefix('#') {
        Some(number) => number,
        None => {
            let predefined = quick_xml::escape::resolve_xml_entity(name);
            return predefined.map(str::to_owned).ok_or_else(illegal);
        }
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    if digits.is_empty() || !digits.bytes().all(|digit| char::from(digit).is_digit(radix)) {
        return Err(illegal());
    }
    let character = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    character.filter(|c| is_xml_char(*c)).map(String::from).ok_or_else(illegal)
}

/// Checks for a blank between a name and an attribute, and between two attributes.
fn spacing_is_legal(attributes: &str) -> Result<(), String> {
    let mut rest = attributes;
    loop {
        let trimmed = rest.trim_start_matches(BLANKS);
        if trimmed.is_empty() {
            return Ok(());
        }
        if trimmed.len() == rest.len() {
            return Err("no blank before an attribute".to_owned());
        }
        let (_, value) = trimmed.split_once('=').ok_or("an attribute without a value")?;
        let value = value.trim_start_matches(BLANKS);
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'')).ok_or("no quotes")?;
        let inside = &value[1..];
        let end = inside.find(quote).ok_or("an attribute value without an end")?;
        rest = &inside[end + 1..];
    }
}

/// `xml version="1.0"`, then encoding and standalone, in that order and quoted.
fn declaration_is_legal(text: &str) -> bool {
    let Some(pseudo) = text.strip_prefix("xml") else { return false };
    if spacing_is_legal(pseudo).is_err() {
        return false;
    }
    let mut seen = Vec::new();
    let mut rest = pseudo.trim_matches(BLANKS);
    while let Some((name, behind)) = rest.split_once('=') {
        let behind = behind.trim_start_matches(BLANKS);
        let Some(quote) = behind.chars().next() else { return false };
        let Some((value, behind)) = behind[1..].split_once(quote) else { return false };
        seen.push((name.trim_matches(BLANKS), value.to_owned()));
        rest = behind.trim_start_matches(BLANKS);
    }
    let legal = |(name, value): &(&str, String)| match *name {
        "version" => value == "1.0",
        "encoding" => value.eq_ignore_ascii_case("utf-8"),
        "standalone" => value == "yes" || value == "no",
        _ => false,
    };
    let order: Vec<_> = seen
        .iter()
        .map(|(name, _)| ["version", "encoding", "standalone"].iter().position(|n| n == name))
        .collect();
    order.first() == Some(&Some(0)) && order.is_sorted() && seen.iter().all(legal)
}

fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn is_qname(name: &str) -> bool {
    let (prefix, local) = name.split_once(':').unwrap_or(("p", name));
    is_name(prefix) && is_name(local)
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(names::is_start) && characters.all(names::is_part)
}
