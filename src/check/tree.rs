//! Reads a document strictly, with namespaces, into a tree.
//!
//! quick-xml reads; what it lets pass and XML 1.0 with namespaces does not is
//! checked here. Nothing is mended.

use crate::oai::is_xml_char;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

/// An element of a well-formed document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    /// Empty for none.
    pub(super) namespace: String,
    /// Without its prefix.
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) children: Vec<Self>,
    /// The characters between the children, references resolved.
    pub(super) text: String,
}

/// An attribute that declares no namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attribute {
    /// Empty for none.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) value: String,
}

impl Element {
    /// The value of an attribute without a namespace.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|other| other.namespace.is_empty() && other.name == name);
        found.map(|attribute| attribute.value.as_str())
    }

    /// The children of that name in the element's own namespace.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name && child.namespace == self.namespace)
    }

    /// The first of them.
    pub(super) fn first<'a>(&'a self, name: &'a str) -> Option<&'a Self> {
        self.all(name).next()
    }

    /// The text of the first child of that name, without blanks around it.
    pub(super) fn value<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.first(name).map(|child| child.text.trim())
    }
}

/// Reads one document; `Err` says what is wrong with it and in which line.
pub(super) fn read(document: &[u8]) -> Result<Element, String> {
    let text = std::str::from_utf8(document).map_err(|error| {
        let at = error.valid_up_to();
        let byte = document.get(at).copied().unwrap_or_default();
        format!("line {}: byte {byte:02X} is no UTF-8", line_of(document, at))
    })?;
    if let Some((at, bad)) = text.char_indices().find(|(_, character)| !is_xml_char(*character)) {
        return Err(format!(
            "line {}: U+{:04X} is no character of XML",
            line_of(document, at),
            u32::from(bad)
        ));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = NsReader::from_str(text);
    let config = reader.config_mut();
    config.check_comments = true;
    config.expand_empty_elements = true;
    let mut building = Building::default();
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let told = |error: &dyn std::fmt::Display| format!("line {}: {error}", line_of(text.as_bytes(), at));
        let event = reader.read_event().map_err(|error| match error {
            Error::IllFormed(IllFormedError::UnclosedReference) => told(&"a bare &"),
            error => told(&error),
        })?;
        match event {
            Event::Eof => return building.root(),
            Event::Start(tag) => {
                let element = element(&reader, &tag).map_err(|error| told(&error))?;
                building.open(element).map_err(|error| told(&error))?;
            }
            Event::End(_) => building.close().map_err(|error| told(&error))?,
            other => {
                let characters = content(&other, at).map_err(|error| told(&error))?;
                building.add(&characters).map_err(|error| told(&error))?;
            }
        }
    }
}

/// The line of a byte, from 1.
fn line_of(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', text.get(..at).unwrap_or(text)).count() + 1
}

/// The tree as far as it is read.
#[derive(Default)]
struct Building {
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Building {
    fn open(&mut self, element: Element) -> Result<(), String> {
        self.elements += 1;
        if self.root.is_some() {
            return Err(format!("<{}> stands behind the document element", element.name));
        }
        if self.open.len() >= DEPTH_MAX || self.elements > ELEMENTS_MAX {
            return Err(format!(
                "more than {ELEMENTS_MAX} elements, or {DEPTH_MAX} in each other, are not read"
            ));
        }
        self.open.push(element);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let closed = self.open.pop().ok_or("an end tag without a start")?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => self.root = Some(closed),
        }
        Ok(())
    }

    fn add(&mut self, characters: &str) -> Result<(), String> {
        match self.open.last_mut() {
            Some(parent) => parent.text.push_str(characters),
            None if characters.trim_matches(BLANKS).is_empty() => {}
            None => return Err("text outside the document element".to_owned()),
        }
        Ok(())
    }

    fn root(self) -> Result<Element, String> {
        match self.open.last() {
            Some(open) => Err(format!("the document ends within <{}>", open.name)),
            None => self.root.ok_or_else(|| "no document element".to_owned()),
        }
    }
}

/// The characters that an event stands for.
fn content(event: &Event<'_>, at: usize) -> Result<String, String> {
    match event {
        Event::Text(text) if text.contains("]]>") => Err("]]> in text".to_owned()),
        Event::Text(text) => Ok(text.to_string()),
        Event::CData(text) => Ok(text.to_string()),
        Event::GeneralRef(name) => reference(name),
        Event::Decl(_) if at > 0 => Err("an XML declaration that is not at the beginning".to_owned()),
        Event::DocType(_) => Err("a document type declaration, which is not read".to_owned()),
        _ => Ok(String::new()),
    }
}

/// The element of a start tag, its prefixes resolved.
fn element(reader: &NsReader<&[u8]>, tag: &BytesStart<'_>) -> Result<Element, String> {
    let (namespace, local) = reader.resolver().resolve_element(tag.name());
    let name = local.as_ref().to_owned();
    let mut made = Element { namespace: known(namespace)?, name, ..Element::default() };
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        if attribute.value.contains('<') {
            return Err(format!("< in the attribute {}", attribute.key.as_ref()));
        }
        let value = attribute_value(&attribute.value)?;
        if attribute.key.as_namespace_binding().is_some() {
            continue;
        }
        let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
        made.attributes.push(Attribute {
            namespace: known(namespace)?,
            name: local.as_ref().to_owned(),
            value,
        });
    }
    Ok(made)
}

fn known(namespace: ResolveResult<'_>) -> Result<String, String> {
    match namespace {
        ResolveResult::Bound(Namespace(uri)) => Ok(uri.to_owned()),
        ResolveResult::Unbound => Ok(String::new()),
        ResolveResult::Unknown(prefix) => Err(format!("the prefix {prefix:?} is not declared")),
    }
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

/// The characters of a reference, given what stands between & and ;.
fn reference(name: &str) -> Result<String, String> {
    let illegal = || format!("&{name}; is no reference of XML");
    let Some(number) = name.strip_prefix('#') else {
        let predefined = quick_xml::escape::resolve_xml_entity(name);
        return predefined.map(str::to_owned).ok_or_else(illegal);
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    // The standard library takes a sign, XML does not.
    let digits = Some(digits).filter(|digits| !digits.starts_with('+'));
    let code = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok());
    let character = code.and_then(char::from_u32).filter(|character| is_xml_char(*character));
    character.map(String::from).ok_or_else(illegal)
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
/// Most elements in each other.
const DEPTH_MAX: usize = 256;
/// Most elements of a document; bounds what the tree of a page may cost.
const ELEMENTS_MAX: usize = 500_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_well_formed_is_refused_with_its_line() {
        for (document, text) in [
            ("<a>\n<b></a>", "line 2: "),
            ("<a>\n&nbsp;</a>", "line 2: &nbsp; is no reference of XML"),
            ("<a>&#3;</a>", "line 1: &#3; is no reference of XML"),
            ("<a>a & b</a>", "line 1: a bare &"),
            ("<a>\u{3}</a>", "line 1: U+0003 is no character of XML"),
            ("<a>]]></a>", "line 1: ]]> in text"),
            ("<p:a/>", "line 1: the prefix \"p\" is not declared"),
            ("<a b='1' b='2'/>", "line 1: "),
            ("<a b='&x'/>", "line 1: a bare & in an attribute"),
            ("<a/><b/>", "line 1: <b> stands behind the document element"),
            ("x<a/>", "line 1: text outside the document element"),
            ("\n<?xml version='1.0'?><a/>", "line 2: an XML declaration that is not at the beginning"),
            ("<a><b>", "the document ends within <b>"),
            ("", "no document element"),
            ("<!DOCTYPE a><a/>", "line 1: a document type declaration, which is not read"),
        ] {
            let error = read(document.as_bytes()).err().unwrap_or_default();
            assert!(error.starts_with(text), "{document}: {error}");
        }
        assert_eq!(read(b"<a>\n\xe9</a>"), Err("line 2: byte E9 is no UTF-8".to_owned()));
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        assert!(read(deep.as_bytes()).is_err_and(|error| error.contains("are not read")));
    }

    #[test]
    fn a_tree_has_its_namespaces_and_texts() {
        let root =
            read(b"\xef\xbb\xbf<a xmlns='urn:x' b='&lt;1'><b> t&amp;<![CDATA[<]]></b><c xmlns=''/></a>");
        let root = root.expect("it is well-formed");
        assert_eq!((root.namespace.as_str(), root.attribute("b")), ("urn:x", Some("<1")));
        assert_eq!((root.value("b"), root.first("c")), (Some("t&<"), None));
    }
}
