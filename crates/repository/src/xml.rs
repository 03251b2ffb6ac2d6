//! A small reader of XML: elements and text with their depth and their places, and references resolved.
//!
//! [`XmlReader`] is for code that copies or cuts text, and compares only local names. [`NamespaceReader`] also knows the
//! namespaces of elements. Both read the text once, from front to back, and stop at the first place that is not
//! well-formed. Attributes are checked only when they are read. Pure: broken XML is an error, never a panic.

use memchr::memmem;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::attributes::{Attribute, Attributes};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceResolver, PrefixDeclaration, QName, ResolveResult};
use quick_xml::reader::Reader;
use std::borrow::Cow;
use std::fmt::{self, Display};
use std::ops::Range;

/// Maximum number of elements that are open at once. The repair engine allows fewer.
const DEPTH_MAX: usize = 1_000;
/// Maximum number of namespace declarations that are in scope at once.
const NAMESPACES_MAX: usize = 4_096;

/// Why XML cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlError(String);

impl XmlError {
    /// The error of a reader that expects more than well-formed XML.
    pub fn new(reason: impl Display) -> Self {
        Self(reason.to_string())
    }
}

impl Display for XmlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for XmlError {}

/// A part of XML.
#[derive(Clone, Copy, Debug)]
pub enum XmlEvent<'x> {
    /// A start tag. An empty element is one too, and its end follows.
    Start(StartTag<'x>),
    /// The end of an element.
    End(EndTag<'x>),
    /// Characters.
    Text(XmlText<'x>),
    /// A document type declaration. What it defines is not read.
    Doctype,
    /// A comment, a processing instruction or the XML declaration.
    Other,
}

/// Characters of a text. A text is one event up to the next reference or CDATA section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlText<'x> {
    /// Characters as they are, also those of a CDATA section.
    Plain(&'x str),
    /// The name of a reference, between `&` and `;`.
    Reference(&'x str),
}

impl<'x> XmlText<'x> {
    /// The characters.
    ///
    /// # Errors
    ///
    /// It is a reference to no character of Unicode, or to an entity that XML does not define.
    pub fn resolve(self) -> Result<Cow<'x, str>, XmlError> {
        let name = match self {
            Self::Plain(characters) => return Ok(Cow::Borrowed(characters)),
            Self::Reference(name) => name,
        };
        if let Some(character) = BytesRef::new(name).resolve_char_ref().map_err(XmlError::new)? {
            return Ok(Cow::Owned(character.into()));
        }
        let entity = resolve_xml_entity(name).map(Cow::Borrowed);
        entity.ok_or_else(|| XmlError(format!("the entity {name} is not defined")))
    }
}

/// The characters of a text of XML, which can be a part of a document without tags.
///
/// # Errors
///
/// It is malformed, or refers to a character or an entity that there is not.
pub fn unescape(text: &str) -> Result<String, XmlError> {
    let mut reader = XmlReader::new(text);
    let mut characters = String::new();
    while let Some(event) = reader.read()? {
        if let XmlEvent::Text(part) = event {
            characters.push_str(&part.resolve()?);
        }
    }
    Ok(characters)
}

/// The end of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTag<'x> {
    name: &'x str,
}

impl<'x> EndTag<'x> {
    /// The name of the element without its prefix.
    pub fn local_name(self) -> &'x str {
        local_name(self.name.trim_ascii_end())
    }

    /// The prefix of the name with its colon; empty for the default namespace.
    pub fn prefix(self) -> &'x str {
        prefix(self.name)
    }
}

/// A start tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartTag<'x> {
    /// The text between its angle brackets.
    content: &'x str,
    name_bytes: usize,
    is_empty: bool,
}

impl<'x> StartTag<'x> {
    /// The name as written.
    pub fn name(self) -> &'x str {
        self.content.get(..self.name_bytes).unwrap_or_default()
    }

    /// The name without its prefix.
    pub fn local_name(self) -> &'x str {
        local_name(self.name())
    }

    /// The prefix of the name with its colon; empty for the default namespace.
    pub fn prefix(self) -> &'x str {
        prefix(self.name())
    }

    /// Whether the tag is also the end of its element, as in `<a/>`.
    pub const fn is_empty(self) -> bool {
        self.is_empty
    }

    /// The value of an attribute, normalized. `name` is the name as written.
    ///
    /// # Errors
    ///
    /// The tag contains the name, and an attribute up to this one is not well-formed.
    pub fn attribute(self, name: &str) -> Result<Option<Cow<'x, str>>, XmlError> {
        let attributes = self.content.get(self.name_bytes..).unwrap_or_default();
        // Few tags have the attribute, and this search costs half of the time that reading all attributes costs.
        if memmem::find(attributes.as_bytes(), name.as_bytes()).is_none() {
            return Ok(None);
        }
        for attribute in Attributes::new(self.content, self.name_bytes).with_checks(false) {
            let attribute = attribute.map_err(XmlError::new)?;
            if attribute.key.into_inner() == name {
                return normalized(&attribute).map(Some);
            }
        }
        Ok(None)
    }

    /// All attributes: names as written, and normalized values.
    ///
    /// # Errors
    ///
    /// An item is an error if the attribute is not well-formed, or if it is the second one with its name.
    pub fn attributes(self) -> impl Iterator<Item = Result<(&'x str, Cow<'x, str>), XmlError>> {
        Attributes::new(self.content, self.name_bytes).map(|attribute| {
            let attribute = attribute.map_err(XmlError::new)?;
            Ok((attribute.key.into_inner(), normalized(&attribute)?))
        })
    }

    /// The namespace declarations: prefixes, the empty one for the default namespace, and URIs as written. Malformed
    /// attributes are left out.
    pub fn declarations(self) -> Vec<(String, String)> {
        let attributes = Attributes::new(self.content, self.name_bytes).filter_map(Result::ok);
        let declared = attributes.filter_map(|attribute| {
            Some((declared_prefix(attribute.key.into_inner())?.to_owned(), attribute.value.into_owned()))
        });
        declared.collect()
    }

    fn to_quick_xml(self) -> BytesStart<'x> {
        BytesStart::from_content(self.content, self.name_bytes)
    }
}

fn normalized<'x>(attribute: &Attribute<'x>) -> Result<Cow<'x, str>, XmlError> {
    attribute.normalized_value(XmlVersion::Implicit1_0).map_err(XmlError::new)
}

/// The prefix that an attribute with this name declares, empty for the default namespace. `None` if the attribute is no
/// declaration.
pub fn declared_prefix(attribute: &str) -> Option<&str> {
    if attribute == "xmlns" { Some("") } else { attribute.strip_prefix("xmlns:") }
}

fn prefix(name: &str) -> &str {
    name.strip_suffix(local_name(name)).unwrap_or_default()
}

fn local_name(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

/// Reads XML by places and local names.
#[derive(Clone, Debug)]
pub struct XmlReader<'x> {
    text: &'x str,
    reader: Reader<&'x [u8]>,
    /// Bytes before the text of `reader`.
    skipped_bytes: usize,
    span: Range<usize>,
    depth: usize,
    /// The number of elements that are open after the last event.
    open: usize,
    /// The end of an empty element, if it is the next event.
    next_end: Option<EndTag<'x>>,
}

impl<'x> XmlReader<'x> {
    /// Reads this text, which can be the start of a document.
    pub fn new(text: &'x str) -> Self {
        // quick-xml does not count a byte order mark.
        let content = text.trim_start_matches('\u{feff}');
        let skipped_bytes = text.len() - content.len();
        let (span, reader) = (skipped_bytes..skipped_bytes, Reader::from_str(content));
        Self { text, reader, skipped_bytes, span, depth: 0, open: 0, next_end: None }
    }

    /// Reads a part of a document: end tags may have no start tag, or one with another name.
    pub fn of_part(text: &'x str) -> Self {
        let mut part = Self::new(text);
        let config = part.reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        part
    }

    /// The next event; `None` at the end of the text, also inside an element.
    ///
    /// # Errors
    ///
    /// The text is not well-formed there, or more than 1,000 elements are open.
    // Each caller uses a part of the events. Inlined, the rest of them costs nothing.
    #[inline]
    pub fn read(&mut self) -> Result<Option<XmlEvent<'x>>, XmlError> {
        let start = self.span.end;
        if let Some(end) = self.next_end.take() {
            self.span = start..start;
            self.leave();
            return Ok(Some(XmlEvent::End(end)));
        }
        let event = self.reader.read_event().map_err(XmlError::new)?;
        let end = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
        self.span = start..self.skipped_bytes.saturating_add(end);
        self.depth = self.open;
        let written = self.text.get(self.span.clone()).unwrap_or_default();
        let inside = |before: &str, after: &str| {
            let end = written.len().saturating_sub(after.len());
            written.get(before.len()..end).unwrap_or_default()
        };
        Ok(Some(match event {
            Event::Start(tag) => {
                self.enter()?;
                let name_bytes = tag.name().into_inner().len();
                XmlEvent::Start(StartTag { content: inside("<", ">"), name_bytes, is_empty: false })
            }
            Event::Empty(tag) => {
                self.enter()?;
                let name_bytes = tag.name().into_inner().len();
                let tag = StartTag { content: inside("<", "/>"), name_bytes, is_empty: true };
                self.next_end = Some(EndTag { name: tag.name() });
                XmlEvent::Start(tag)
            }
            Event::End(_) => {
                self.leave();
                XmlEvent::End(EndTag { name: inside("</", ">") })
            }
            Event::Text(_) => XmlEvent::Text(XmlText::Plain(written)),
            Event::CData(_) => XmlEvent::Text(XmlText::Plain(inside("<![CDATA[", "]]>"))),
            Event::GeneralRef(_) => XmlEvent::Text(XmlText::Reference(inside("&", ";"))),
            Event::DocType(_) => XmlEvent::Doctype,
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => XmlEvent::Other,
            Event::Eof => return Ok(None),
        }))
    }

    fn enter(&mut self) -> Result<(), XmlError> {
        if self.open == DEPTH_MAX {
            return Err(XmlError(format!("more than {DEPTH_MAX} elements are open")));
        }
        self.open += 1;
        Ok(())
    }

    const fn leave(&mut self) {
        self.open = self.open.saturating_sub(1);
        self.depth = self.open;
    }

    /// The number of elements around the last event. It is the same for the start and the end of an element, and one more
    /// for its text.
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// The place of the last event in the text, in bytes. The places of all events are the text without gaps, up to a byte
    /// order mark. The end of an empty element is an empty place after its tag.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

/// Reads XML by the namespaces of its elements.
#[derive(Clone, Debug)]
pub struct NamespaceReader<'x> {
    xml: XmlReader<'x>,
    resolver: NamespaceResolver,
}

impl<'x> NamespaceReader<'x> {
    /// Reads on where `xml` is, outside of all elements.
    pub fn new(xml: XmlReader<'x>) -> Self {
        let mut resolver = NamespaceResolver::default();
        resolver.set_max_namespace_bindings(NAMESPACES_MAX);
        Self { xml, resolver }
    }

    /// Reads on where `xml` is: inside the element of `root`. `around` are the declarations around this element, prefixes
    /// and URIs.
    ///
    /// # Errors
    ///
    /// The element declares a reserved prefix, or more than 4,096 namespaces.
    pub fn inside<'n>(
        root: StartTag<'_>,
        around: impl Iterator<Item = (&'n str, &'n str)>,
        xml: XmlReader<'x>,
    ) -> Result<Self, XmlError> {
        let mut reader = Self::new(xml);
        for (prefix, uri) in around {
            let prefix = match prefix {
                "" => PrefixDeclaration::Default,
                prefix => PrefixDeclaration::Named(prefix),
            };
            reader.resolver.add(prefix, Namespace(uri)).map_err(XmlError::new)?;
        }
        reader.resolver.push(&root.to_quick_xml()).map_err(XmlError::new)?;
        Ok(reader)
    }

    /// The next event, as [`XmlReader::read`] returns it.
    ///
    /// # Errors
    ///
    /// Those of [`XmlReader::read`]; and an element declares a reserved prefix, or more than 4,096 declarations are in
    /// scope.
    #[inline]
    pub fn read(&mut self) -> Result<Option<XmlEvent<'x>>, XmlError> {
        let event = self.xml.read()?;
        match &event {
            Some(XmlEvent::Start(tag)) => self.resolver.push(&tag.to_quick_xml()).map_err(XmlError::new)?,
            Some(XmlEvent::End(_)) => self.resolver.pop(),
            _ => {}
        }
        Ok(event)
    }

    /// The namespace of the element whose start tag is the last event, as its declaration is written; empty for none.
    ///
    /// # Errors
    ///
    /// Its prefix is not declared.
    pub fn namespace(&self, tag: StartTag<'_>) -> Result<&str, XmlError> {
        match self.resolver.resolve_element(QName(tag.name())).0 {
            ResolveResult::Bound(Namespace(uri)) => Ok(uri),
            ResolveResult::Unbound => Ok(""),
            ResolveResult::Unknown(prefix) => Err(XmlError(format!("the prefix {prefix:?} is not declared"))),
        }
    }

    /// As [`XmlReader::depth`].
    pub const fn depth(&self) -> usize {
        self.xml.depth()
    }

    /// As [`XmlReader::span`].
    pub fn span(&self) -> Range<usize> {
        self.xml.span()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events with their depths and places.
    fn events(mut reader: XmlReader<'_>) -> String {
        let mut events = String::new();
        loop {
            let event = match reader.read() {
                Ok(Some(XmlEvent::Start(tag))) => format!("<{}>", tag.local_name()),
                Ok(Some(XmlEvent::End(tag))) => format!("</{}>", tag.local_name()),
                Ok(Some(XmlEvent::Text(text))) => format!("{:?}", text.resolve().unwrap_or_default()),
                Ok(Some(XmlEvent::Doctype)) => "doctype".to_owned(),
                Ok(Some(XmlEvent::Other)) => "other".to_owned(),
                Ok(None) => return events,
                Err(_) => return events + "error",
            };
            let Range { start, end } = reader.span();
            events.push_str(&format!("{}{event}{start}-{end} ", reader.depth()));
        }
    }

    #[test]
    fn events_have_their_depth_and_place() {
        for (text, expected) in [
            (
                "<a>é<p:b c='>'/>&amp;<![CDATA[<x>]]></a >",
                "0<a>0-3 1\"é\"3-5 1<b>5-17 1</b>17-17 1\"&\"17-22 1\"<x>\"22-37 0</a>37-42 ",
            ),
            ("\u{feff}<a/>", "0<a>3-7 0</a>7-7 "),
            (
                "<?xml version='1.0'?><!DOCTYPE a><!-- > --><a>",
                "0other0-21 0doctype21-33 0other33-43 0<a>43-46 ",
            ),
            ("<a>&#x263a;&x;", "0<a>0-3 1\"☺\"3-11 1\"\"11-14 "),
            ("<a></b>", "0<a>0-3 error"),
            ("<a", "error"),
            ("", ""),
        ] {
            assert_eq!(events(XmlReader::new(text)), expected, "{text}");
        }
        assert_eq!(events(XmlReader::of_part("<a></b></c>")), "0<a>0-3 0</b>3-7 0</c>7-11 ");
    }

    #[test]
    fn no_text_is_a_panic_and_the_places_have_no_gaps() {
        let whole = "\u{feff}<?x?><!DOCTYPE a [<!ENTITY b 'c'>]><a b='&lt;' c><é:d xmlns:é='u'/>t&#9;&y;<![CDATA[]]></z></a><<";
        for (end, _) in whole.char_indices() {
            let mut reader = NamespaceReader::new(XmlReader::of_part(whole.get(..end).unwrap_or_default()));
            let mut read = "\u{feff}".len().min(end);
            while let Ok(Some(event)) = reader.read() {
                assert_eq!(reader.span().start, read, "{end}");
                read = reader.span().end;
                if let XmlEvent::Start(tag) = event {
                    let _ =
                        (tag.prefix(), tag.declarations(), tag.attributes().count(), reader.namespace(tag));
                }
            }
            assert!(read <= end, "{end}");
        }
    }

    #[test]
    fn references_are_resolved_or_an_error() {
        for (name, expected) in [("amp", Some("&")), ("#65", Some("A")), ("#x41", Some("A"))] {
            assert_eq!(XmlText::Reference(name).resolve().ok().as_deref(), expected);
        }
        for name in ["nbsp", "", "#", "#0", "#x110000", "#+1"] {
            assert!(XmlText::Reference(name).resolve().is_err(), "{name}");
        }
    }

    #[test]
    fn tags_have_names_attributes_and_declarations() {
        let text = "<p:a\nxmlns:p='u&amp;' b=' 1&#10;&lt;\n' xmlns = \"d\"/>";
        let Ok(Some(XmlEvent::Start(tag))) = XmlReader::new(text).read() else { panic!("a start tag") };
        assert_eq!((tag.name(), tag.prefix(), tag.local_name()), ("p:a", "p:", "a"));
        assert!(tag.is_empty());
        assert_eq!(tag.attribute("b"), Ok(Some(" 1\n< ".into())));
        assert_eq!(tag.attribute("x"), Ok(None));
        let owned = |pairs: [(&str, &str); 2]| pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(tag.declarations(), owned([("p", "u&amp;"), ("", "d")]));
        let twice = XmlReader::new("<a b='1' b='2'>").read();
        let Ok(Some(XmlEvent::Start(tag))) = twice else { panic!("a start tag") };
        assert!(tag.attributes().any(|attribute| attribute.is_err()));
    }

    #[test]
    fn elements_have_the_namespace_of_the_nearest_declaration() {
        let text = "<r xmlns:p='1'><p:a><b xmlns='2'/><p:c xmlns:p='3'/></p:a><d/><q:e/></r>";
        let mut reader = XmlReader::new(text);
        let Ok(Some(XmlEvent::Start(root))) = reader.read() else { panic!("a start tag") };
        let around = [("", "0"), ("p", "other")];
        let mut reader =
            NamespaceReader::inside(root, around.into_iter(), reader).expect("legal declarations");
        let mut namespaces = Vec::new();
        while let Ok(Some(event)) = reader.read() {
            if let XmlEvent::Start(tag) = event {
                let namespace = reader.namespace(tag).map_or("undeclared".to_owned(), str::to_owned);
                namespaces.push(format!("{} {namespace}", tag.local_name()));
            }
        }
        assert_eq!(namespaces, ["a 1", "b 2", "c 3", "d 0", "e undeclared"]);
    }

    #[test]
    fn the_depth_and_the_declarations_are_limited() {
        let deep = |depth| "<a>".repeat(depth);
        assert!(!events(XmlReader::new(&deep(DEPTH_MAX))).ends_with("error"));
        assert!(events(XmlReader::new(&deep(DEPTH_MAX + 1))).ends_with("error"));
        let declared: String = (0..=NAMESPACES_MAX).map(|number| format!(" xmlns:n{number}='u'")).collect();
        let text = format!("<a{declared}/>");
        assert!(NamespaceReader::new(XmlReader::new(&text)).read().is_err());
    }
}
