//! Parses a document strictly, with namespaces, into a tree.
//!
//! quick-xml parses; this module adds the rules of XML 1.0 and namespaces that quick-xml does not
//! check. It repairs nothing.

use oaimend_oai::is_xml_char;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

/// An element of a well-formed document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    /// Empty for no namespace.
    pub(crate) namespace: String,
    /// Without its prefix.
    pub(crate) name: String,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) children: Vec<Self>,
    /// The text between the children, references resolved.
    pub(crate) text: String,
}

/// An attribute; namespace declarations are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// Empty for no namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Element {
    /// The value of an attribute without a namespace.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|other| other.namespace.is_empty() && other.name == name);
        found.map(|attribute| attribute.value.as_str())
    }

    /// The children of that name in the element's own namespace.
    pub(crate) fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name && child.namespace == self.namespace)
    }

    /// The first child of that name.
    pub(crate) fn child<'a>(&'a self, name: &'a str) -> Option<&'a Self> {
        self.children_named(name).next()
    }

    /// The text of the first child of that name, without surrounding blanks.
    pub(crate) fn child_text<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.child(name).map(|child| child.text.trim())
    }
}

/// Parses one document; `Err` contains the problem and its line.
pub(crate) fn parse(document: &[u8]) -> Result<Element, String> {
    let text = std::str::from_utf8(document).map_err(|error| {
        let at = error.valid_up_to();
        let byte = document.get(at).copied().unwrap_or_default();
        format!("line {}: byte {byte:02X} is not UTF-8", line_number(document, at))
    })?;
    if let Some((at, bad)) = text.char_indices().find(|(_, character)| !is_xml_char(*character)) {
        return Err(format!(
            "line {}: U+{:04X} is not an XML character",
            line_number(document, at),
            u32::from(bad)
        ));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = NsReader::from_str(text);
    let config = reader.config_mut();
    config.check_comments = true;
    config.expand_empty_elements = true;
    let mut building = TreeBuilder::default();
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let at_line =
            |error: &dyn std::fmt::Display| format!("line {}: {error}", line_number(text.as_bytes(), at));
        let event = reader.read_event().map_err(|error| match error {
            Error::IllFormed(IllFormedError::UnclosedReference) => at_line(&"a bare &"),
            error => at_line(&error),
        })?;
        match event {
            Event::Eof => return building.root(),
            Event::Start(tag) => {
                let element = read_element(&reader, &tag).map_err(|error| at_line(&error))?;
                building.open(element).map_err(|error| at_line(&error))?;
            }
            Event::End(_) => building.close().map_err(|error| at_line(&error))?,
            other => {
                let characters = event_text(&other, at).map_err(|error| at_line(&error))?;
                building.add(&characters).map_err(|error| at_line(&error))?;
            }
        }
    }
}

/// The line of a byte; the first line is 1.
fn line_number(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', text.get(..at).unwrap_or(text)).count() + 1
}

/// The tree of the part that is parsed so far.
#[derive(Default)]
struct TreeBuilder {
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl TreeBuilder {
    fn open(&mut self, element: Element) -> Result<(), String> {
        self.elements += 1;
        if self.root.is_some() {
            return Err(format!("<{}> follows the document element", element.name));
        }
        if self.open.len() >= DEPTH_MAX || self.elements > ELEMENTS_MAX {
            return Err(format!(
                "the document has more than {ELEMENTS_MAX} elements, or they are nested deeper than {DEPTH_MAX}"
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

/// The text of an event.
fn event_text(event: &Event<'_>, at: usize) -> Result<String, String> {
    match event {
        Event::Text(text) if text.contains("]]>") => Err("]]> in text".to_owned()),
        Event::Text(text) => Ok(text.to_string()),
        Event::CData(text) => Ok(text.to_string()),
        Event::GeneralRef(name) => resolve_reference(name),
        Event::Decl(_) if at > 0 => Err("an XML declaration that is not at the beginning".to_owned()),
        Event::DocType(_) => Err("a document type declaration, which is not supported".to_owned()),
        _ => Ok(String::new()),
    }
}

/// The element of a start tag, its prefixes resolved.
fn read_element(reader: &NsReader<&[u8]>, tag: &BytesStart<'_>) -> Result<Element, String> {
    let (namespace, local) = reader.resolver().resolve_element(tag.name());
    let name = local.as_ref().to_owned();
    let mut element = Element { namespace: resolved_namespace(namespace)?, name, ..Element::default() };
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        if attribute.value.contains('<') {
            return Err(format!("< in the attribute {}", attribute.key.as_ref()));
        }
        let value = read_attribute_value(&attribute.value)?;
        if attribute.key.as_namespace_binding().is_some() {
            continue;
        }
        let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
        element.attributes.push(Attribute {
            namespace: resolved_namespace(namespace)?,
            name: local.as_ref().to_owned(),
            value,
        });
    }
    Ok(element)
}

fn resolved_namespace(namespace: ResolveResult<'_>) -> Result<String, String> {
    match namespace {
        ResolveResult::Bound(Namespace(uri)) => Ok(uri.to_owned()),
        ResolveResult::Unbound => Ok(String::new()),
        ResolveResult::Unknown(prefix) => Err(format!("the prefix {prefix:?} is not declared")),
    }
}

/// Resolves the references of an attribute value.
fn read_attribute_value(raw: &str) -> Result<String, String> {
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('&') {
        let (name, after) = after.split_once(';').ok_or("a bare & in an attribute")?;
        value.push_str(before);
        value.push_str(&resolve_reference(name)?);
        rest = after;
    }
    value.push_str(rest);
    Ok(value)
}

/// The characters of a reference; `name` is the text between & and ;.
fn resolve_reference(name: &str) -> Result<String, String> {
    let illegal = || format!("&{name}; is not an XML reference");
    let Some(number) = name.strip_prefix('#') else {
        let predefined = quick_xml::escape::resolve_xml_entity(name);
        return predefined.map(str::to_owned).ok_or_else(illegal);
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    // The standard library accepts a sign; XML does not.
    let digits = Some(digits).filter(|digits| !digits.starts_with('+'));
    let code = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok());
    let character = code.and_then(char::from_u32).filter(|character| is_xml_char(*character));
    character.map(String::from).ok_or_else(illegal)
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
/// The deepest nesting of elements.
const DEPTH_MAX: usize = 256;
/// The number of elements of a document; it bounds the memory of the tree.
const ELEMENTS_MAX: usize = 500_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_documents_are_refused_with_the_line() {
        for (document, text) in [
            ("<a>\n<b></a>", "line 2: "),
            ("<a>\n&nbsp;</a>", "line 2: &nbsp; is not an XML reference"),
            ("<a>&#3;</a>", "line 1: &#3; is not an XML reference"),
            ("<a>a & b</a>", "line 1: a bare &"),
            ("<a>\u{3}</a>", "line 1: U+0003 is not an XML character"),
            ("<a>]]></a>", "line 1: ]]> in text"),
            ("<p:a/>", "line 1: the prefix \"p\" is not declared"),
            ("<a b='1' b='2'/>", "line 1: "),
            ("<a b='&x'/>", "line 1: a bare & in an attribute"),
            ("<a/><b/>", "line 1: <b> follows the document element"),
            ("x<a/>", "line 1: text outside the document element"),
            ("\n<?xml version='1.0'?><a/>", "line 2: an XML declaration that is not at the beginning"),
            ("<a><b>", "the document ends within <b>"),
            ("", "no document element"),
            ("<!DOCTYPE a><a/>", "line 1: a document type declaration, which is not supported"),
        ] {
            let error = parse(document.as_bytes()).err().unwrap_or_default();
            assert!(error.starts_with(text), "{document}: {error}");
        }
        assert_eq!(parse(b"<a>\n\xe9</a>"), Err("line 2: byte E9 is not UTF-8".to_owned()));
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        assert!(parse(deep.as_bytes()).is_err_and(|error| error.contains("nested deeper")));
    }

    #[test]
    fn the_tree_contains_namespaces_and_texts() {
        let root =
            parse(b"\xef\xbb\xbf<a xmlns='urn:x' b='&lt;1'><b> t&amp;<![CDATA[<]]></b><c xmlns=''/></a>");
        let root = root.expect("it is well-formed");
        assert_eq!((root.namespace.as_str(), root.attribute("b")), ("urn:x", Some("<1")));
        assert_eq!((root.child_text("b"), root.child("c")), (Some("t&<"), None));
    }
}
