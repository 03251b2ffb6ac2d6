//! The envelope of OAI-PMH 2.0 as tables: the children, the occurrences and the text of each element.
//!
//! The validator and the passes read them. They follow the schema of the specification (OAI-PMH.xsd). A
//! payload in `metadata`, `about`, `description` or `setDescription` is any one element.

use std::borrow::Cow;

pub(crate) use oaimend_oai::Verb;
use oaimend_oai::{datestamp, set_spec};

/// The items of the response of a verb. Identify is one item.
pub(crate) fn item_of(verb: Verb) -> &'static Element {
    match verb {
        Verb::Identify => &IDENTIFY,
        Verb::ListMetadataFormats => &METADATA_FORMAT,
        Verb::ListSets => &SET,
        Verb::GetRecord | Verb::ListRecords => &RECORD,
        Verb::ListIdentifiers => &HEADER_ITEM,
    }
}

/// The items of its response in OAI-PMH 1.x.
pub(crate) fn v1_item_of(verb: Verb) -> &'static Element {
    match verb {
        Verb::Identify => &IDENTIFY_1,
        Verb::ListMetadataFormats => &METADATA_FORMAT_1,
        _ => item_of(verb),
    }
}

/// An envelope element.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: &'static [u8],
    pub(crate) occurs: Occurs,
    pub(crate) content: Content,
}

impl Element {
    /// Whether the element, or an envelope element inside it, has this name.
    pub(crate) fn contains_name(&self, local: &[u8]) -> bool {
        let inside = match self.content {
            Content::Children(children) => children.iter().any(|child| child.contains_name(local)),
            Content::Payload | Content::Text(_) => false,
        };
        self.name == local || inside
    }
}

/// The allowed number of occurrences of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurs {
    Once,
    Optional,
    OneOrMore,
    Any,
}

impl Occurs {
    pub(crate) fn is_required(self) -> bool {
        matches!(self, Self::Once | Self::OneOrMore)
    }

    pub(crate) fn may_repeat(self) -> bool {
        matches!(self, Self::OneOrMore | Self::Any)
    }
}

/// The allowed content of an element.
#[derive(Debug)]
pub(crate) enum Content {
    /// Elements in this order.
    Children(&'static [Element]),
    /// At most one element of any kind.
    Payload,
    /// Text of the type.
    Text(Text),
}

/// The simple types of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    Any,
    Identifier,
    Datestamp,
    SetSpec,
    Url,
    Version,
    Email,
    DeletedRecord,
    Granularity,
    MetadataPrefix,
}

impl Text {
    /// Whether the text is valid. References in it are resolved.
    pub(crate) fn is_valid(self, text: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Identifier => !text.is_empty() && crate::lex::names::trim(text).len() == text.len(),
            Self::Datestamp => datestamp::is_legal(text),
            Self::SetSpec => set_spec::read(text).is_some(),
            Self::Url => is_any_uri(text),
            Self::Version => text == b"2.0",
            Self::Email => is_email(text),
            Self::DeletedRecord => matches!(text, b"no" | b"persistent" | b"transient"),
            Self::Granularity => matches!(text, b"YYYY-MM-DD" | b"YYYY-MM-DDThh:mm:ssZ"),
            Self::MetadataPrefix => !text.is_empty() && text.iter().all(|&b| is_unreserved(b)),
        }
    }

    /// Whether the schema allows the text, even if it is probably wrong.
    pub(crate) fn allows(self, text: &[u8]) -> bool {
        if self == Self::Email { is_email_type(text) } else { self.is_valid(text) }
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte)
}

/// Whether a text is an `xs:anyURI` according to validators. They escape characters that URIs cannot
/// contain. So only a stray `%`, a second `#`, a bracket, a bad scheme or a bad port is an error.
pub(crate) fn is_any_uri(text: &[u8]) -> bool {
    let mut fragments = 0;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'#' => fragments += 1,
            b'%' => {
                let digits = text.get(at + 1..at + 3).unwrap_or_default();
                if digits.len() < 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return false;
                }
            }
            b'[' | b']' => return false,
            _ => {}
        }
    }
    let scheme = text.iter().position(|&b| b == b':');
    let path = text.iter().position(|&b| matches!(b, b'/' | b'?' | b'#'));
    let scheme_legal = match scheme {
        Some(colon) if path.is_none_or(|path| colon < path) => {
            text.first().is_some_and(u8::is_ascii_alphabetic)
                && text
                    .iter()
                    .take(colon)
                    .all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        }
        _ => true,
    };
    fragments <= 1 && scheme_legal && has_legal_port(text)
}

/// Whether a text is a URI reference in ASCII (RFC 3986), which libxml2 requires of namespace names.
pub(crate) fn is_uri_reference(text: &[u8]) -> bool {
    let text = match crate::lex::search::memchr2(b'&', b'<', text) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(crate::text::escape::resolve(text)),
    };
    is_any_uri(&text)
        && text.iter().all(|&byte| {
            byte.is_ascii_graphic()
                && !matches!(byte, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`')
        })
}

/// Whether the port, if there is one, is a number.
fn has_legal_port(text: &[u8]) -> bool {
    let Some(start) = crate::lex::search::memmem::find(text, b"://") else { return true };
    let authority = text.get(start + 3..).unwrap_or_default();
    let end = authority.iter().position(|&b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(authority.len());
    let authority = authority.get(..end).unwrap_or_default();
    let host = authority.rsplit(|&b| b == b'@').next().unwrap_or_default();
    match host.iter().position(|&b| b == b':') {
        Some(colon) => host.len() > colon + 1 && host.iter().skip(colon + 1).all(u8::is_ascii_digit),
        None => true,
    }
}

/// Whether a text is an address that matches the schema, and not a `mailto:` URL.
fn is_email(text: &[u8]) -> bool {
    let is_url = text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"mailto:"));
    !is_url && is_email_type(text)
}

/// Whether a text matches `emailType` of the schema, `\S+@(\S+\.)+\S+`. URLs match too.
fn is_email_type(text: &[u8]) -> bool {
    if text.iter().any(|&byte| crate::lex::names::is_blank(byte)) {
        return false;
    }
    let Some(at) = text.iter().skip(1).position(|&byte| byte == b'@') else { return false };
    let domain = text.get(at + 2..).unwrap_or_default();
    let dot = domain.iter().skip(1).position(|&byte| byte == b'.').map(|index| index + 1);
    dot.is_some_and(|dot| dot + 1 < domain.len())
}

const fn element(name: &'static [u8], occurs: Occurs, content: Content) -> Element {
    Element { name, occurs, content }
}

const fn text(name: &'static [u8], occurs: Occurs, check: Text) -> Element {
    element(name, occurs, Content::Text(check))
}

const HEADER_CHILDREN: &[Element] = &[
    text(b"identifier", Occurs::Once, Text::Identifier),
    text(b"datestamp", Occurs::Once, Text::Datestamp),
    text(b"setSpec", Occurs::Any, Text::SetSpec),
];

/// `record` of ListRecords and GetRecord.
pub(crate) static RECORD: Element = element(
    b"record",
    Occurs::OneOrMore,
    Content::Children(&[
        element(b"header", Occurs::Once, Content::Children(HEADER_CHILDREN)),
        element(b"metadata", Occurs::Optional, Content::Payload),
        element(b"about", Occurs::Any, Content::Payload),
    ]),
);

/// `header` of ListIdentifiers.
pub(crate) static HEADER_ITEM: Element =
    element(b"header", Occurs::OneOrMore, Content::Children(HEADER_CHILDREN));

/// `set` of ListSets.
static SET: Element = element(
    b"set",
    Occurs::OneOrMore,
    Content::Children(&[
        text(b"setSpec", Occurs::Once, Text::SetSpec),
        text(b"setName", Occurs::Once, Text::Any),
        element(b"setDescription", Occurs::Any, Content::Payload),
    ]),
);

/// `metadataFormat` of ListMetadataFormats.
static METADATA_FORMAT: Element = element(
    b"metadataFormat",
    Occurs::OneOrMore,
    Content::Children(&[
        text(b"metadataPrefix", Occurs::Once, Text::MetadataPrefix),
        text(b"schema", Occurs::Once, Text::Url),
        text(b"metadataNamespace", Occurs::Once, Text::Url),
    ]),
);

/// `metadataFormat` of OAI-PMH 1.x.
static METADATA_FORMAT_1: Element = element(
    b"metadataFormat",
    Occurs::OneOrMore,
    Content::Children(&[
        text(b"metadataPrefix", Occurs::Once, Text::MetadataPrefix),
        text(b"schema", Occurs::Once, Text::Any),
        text(b"metadataNamespace", Occurs::Optional, Text::Any),
    ]),
);

/// `Identify` of OAI-PMH 1.x, or one of 2.0 that lacks required fields.
static IDENTIFY_1: Element = element(
    b"Identify",
    Occurs::Once,
    Content::Children(&[
        text(b"repositoryName", Occurs::Once, Text::Any),
        text(b"baseURL", Occurs::Once, Text::Url),
        text(b"protocolVersion", Occurs::Once, Text::Any),
        text(b"adminEmail", Occurs::OneOrMore, Text::Any),
        text(b"earliestDatestamp", Occurs::Optional, Text::Datestamp),
        text(b"deletedRecord", Occurs::Optional, Text::DeletedRecord),
        text(b"granularity", Occurs::Optional, Text::Granularity),
        text(b"compression", Occurs::Any, Text::Any),
        element(b"description", Occurs::Any, Content::Payload),
    ]),
);

/// `Identify`.
pub(crate) static IDENTIFY: Element = element(
    b"Identify",
    Occurs::Once,
    Content::Children(&[
        text(b"repositoryName", Occurs::Once, Text::Any),
        text(b"baseURL", Occurs::Once, Text::Url),
        text(b"protocolVersion", Occurs::Once, Text::Version),
        text(b"adminEmail", Occurs::OneOrMore, Text::Email),
        text(b"earliestDatestamp", Occurs::Once, Text::Datestamp),
        text(b"deletedRecord", Occurs::Once, Text::DeletedRecord),
        text(b"granularity", Occurs::Once, Text::Granularity),
        text(b"compression", Occurs::Any, Text::Any),
        element(b"description", Occurs::Any, Content::Payload),
    ]),
);
