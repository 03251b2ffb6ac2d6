//! Rewrites the items of a static repository for responses: the elements of OAI-PMH without a prefix.
//!
//! The content of `metadata`, `about` and `description` keeps its bytes and its meaning: prefixes are
//! declared around the page, and a payload that relies on a default namespace of the file declares it.
//! Pure.

use memchr::memmem;
use oaimend_repository::rebase_namespaces::{NamespaceScope, declare};
use oaimend_repository::xml::{EndTag, StartTag, XmlEvent, XmlReader};
use std::ops::Range;

/// The OAI-PMH 2.0 namespace.
pub(super) const OAI: &str = "http://www.openarchives.org/OAI/2.0/";
/// The namespace of static repositories.
const STATIC: &str = "http://www.openarchives.org/OAI/2.0/static-repository";

/// Elements of OAI-PMH with foreign content.
const CONTAINERS: &[&str] = &["metadata", "about", "description"];

/// The elements of OAI-PMH that a static repository is made of.
const NAMES: &[&str] = &[
    "record",
    "header",
    "identifier",
    "datestamp",
    "setSpec",
    "metadata",
    "about",
    "repositoryName",
    "baseURL",
    "protocolVersion",
    "adminEmail",
    "earliestDatestamp",
    "deletedRecord",
    "granularity",
    "compression",
    "description",
    "metadataFormat",
    "metadataPrefix",
    "schema",
    "metadataNamespace",
];

/// Rewrites the elements in `text` from `scope` for a page whose default namespace is that of OAI-PMH
/// and which declares the prefixes of `scope`.
///
/// Malformed text is rewritten by its tags alone, before and after the payload. The engine repairs the
/// rest.
pub(super) fn conventional(text: &[u8], scope: &NamespaceScope) -> Vec<u8> {
    let strictly = std::str::from_utf8(text).ok().and_then(|text| Walk::through(text, scope));
    let mut edits = strictly.unwrap_or_else(|| loosely(text, scope));
    edits.sort_by_key(|edit| edit.start);
    let mut rewritten = Vec::with_capacity(text.len());
    let mut at = 0;
    for Edit { start, end, text: new } in edits {
        rewritten.extend_from_slice(text.get(at..start).unwrap_or_default());
        rewritten.extend_from_slice(new.as_bytes());
        at = end;
    }
    rewritten.extend_from_slice(text.get(at..).unwrap_or_default());
    rewritten
}

/// The prefixes that elements of OAI-PMH may have in a file, each with its colon; the
/// empty one among them.
pub(super) fn skeleton_prefixes(scope: &NamespaceScope) -> Vec<String> {
    let bound = scope.prefixes().filter(|(_, uri)| is_skeleton(uri));
    let mut prefixes: Vec<String> = bound.map(|(prefix, _)| format!("{prefix}:")).collect();
    if scope.uri("oai").is_none() {
        prefixes.push("oai:".to_owned());
    }
    prefixes.push(String::new());
    prefixes
}

/// Whether a namespace is that of OAI-PMH, or counts as it. In files whose records have no prefix, the
/// records are in the namespace of the file.
fn is_skeleton(uri: &str) -> bool {
    let plain = uri.trim().trim_end_matches('/').replacen("https:", "http:", 1);
    plain == OAI.trim_end_matches('/') || plain == STATIC
}

struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// The position of a strict reading.
struct Walk<'a> {
    scope: &'a NamespaceScope,
    open: Vec<Open>,
    /// The payload that is open: where a declaration goes in, and what the default namespace is around it.
    payload: Option<(usize, String)>,
    edits: Vec<Edit>,
}

/// An element that is open.
struct Open {
    role: Role,
    declared: Vec<(String, String)>,
    /// The default namespace in it, as the file has it.
    default: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Of OAI-PMH, around others that are.
    Skeleton,
    /// Of OAI-PMH, around what is not.
    Container,
    /// Not of OAI-PMH; whether it is clear what its default namespace is, in any place.
    Payload { settled: bool },
}

impl<'a> Walk<'a> {
    /// The edits; `None` for malformed text.
    fn through(text: &str, scope: &'a NamespaceScope) -> Option<Vec<Edit>> {
        let mut walk = Self { scope, open: Vec::new(), payload: None, edits: Vec::new() };
        let mut reader = XmlReader::new(text);
        while let Some(event) = reader.read().ok()? {
            let place = reader.span();
            match event {
                XmlEvent::Start(tag) => walk.start(tag, place.start, text.get(place)?)?,
                XmlEvent::End(tag) => walk.end(tag, place),
                _ => {}
            }
        }
        walk.open.is_empty().then_some(walk.edits)
    }

    fn start(&mut self, tag: StartTag<'_>, at: usize, text: &str) -> Option<()> {
        let declared = tag.declarations();
        let (prefix, local) = (tag.prefix(), tag.local_name());
        let own_default = declared.iter().find(|(prefix, _)| prefix.is_empty()).map(|(_, uri)| uri.clone());
        let outer_default = match self.open.last() {
            Some(parent) => parent.default.clone(),
            None => self.scope.uri("").unwrap_or_default().to_owned(),
        };
        let parent = self.open.last().map_or(Role::Skeleton, |parent| parent.role);
        let uri = self.uri_of(prefix.trim_end_matches(':'), &declared);
        let role = match parent {
            Role::Skeleton if uri.is_some_and(|uri| is_skeleton(&uri)) => {
                if CONTAINERS.contains(&local) {
                    Role::Container
                } else {
                    Role::Skeleton
                }
            }
            Role::Skeleton | Role::Container => {
                self.payload = Some((at + 1 + tag.name().len(), outer_default.clone()));
                Role::Payload { settled: own_default.is_some() }
            }
            Role::Payload { settled } => Role::Payload { settled: settled || own_default.is_some() },
        };
        match role {
            Role::Payload { settled } if !settled && prefix.is_empty() => self.settle(),
            Role::Payload { .. } => {}
            Role::Skeleton | Role::Container => {
                if !prefix.is_empty() {
                    self.remove(at + 1, prefix.len());
                }
                if own_default.as_ref().is_some_and(|uri| uri != OAI) {
                    let (start, length) = default_declaration(text)?;
                    self.remove(at + start, length);
                }
            }
        }
        self.open.push(Open { role, declared, default: own_default.unwrap_or(outer_default) });
        Some(())
    }

    fn end(&mut self, tag: EndTag<'_>, place: Range<usize>) {
        let Some(Open { role, .. }) = self.open.pop() else { return };
        let prefix = tag.prefix();
        if !matches!(role, Role::Payload { .. }) && !prefix.is_empty() && !place.is_empty() {
            self.remove(place.start + 2, prefix.len());
        }
    }

    /// An element of the payload has the default namespace that is declared around the
    /// payload: there it has to be declared, unless it is that of pages.
    fn settle(&mut self) {
        let Some((place, default)) = self.payload.take_if(|(_, default)| default != OAI) else { return };
        let mut text = String::new();
        declare("", &default, &mut text);
        self.edits.push(Edit { start: place, end: place, text });
    }

    fn uri_of(&self, prefix: &str, declared: &[(String, String)]) -> Option<String> {
        let open = self.open.iter().rev().map(|open| open.declared.as_slice());
        let mut all = std::iter::once(declared).chain(open).flatten();
        let found = all.find(|(other, _)| other == prefix).map(|(_, uri)| uri.as_str());
        let meant = (prefix == "oai").then_some(OAI);
        found.or_else(|| self.scope.uri(prefix)).or(meant).map(str::to_owned)
    }

    fn remove(&mut self, start: usize, length: usize) {
        self.edits.push(Edit { start, end: start + length, text: String::new() });
    }
}

/// Where a start tag declares the default namespace, the blank before it included, and how long that is.
fn default_declaration(tag: &str) -> Option<(usize, usize)> {
    for (at, _) in tag.match_indices("xmlns") {
        let before = tag.get(..at)?;
        let behind = tag.get(at + 5..)?.trim_start();
        let Some(value) = behind.strip_prefix('=').map(str::trim_start) else { continue };
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let rest = value.get(1..)?;
        if before.ends_with(|last: char| last.is_ascii_whitespace())
            && before.matches(['"', '\'']).count() % 2 == 0
        {
            let end = tag.len() - rest.len() + rest.find(quote)? + 1;
            return Some((at - 1, end - at + 1));
        }
    }
    None
}

/// The edits of malformed text: its tags lose their prefix up to the first payload and
/// after the last one.
fn loosely(text: &[u8], scope: &NamespaceScope) -> Vec<Edit> {
    let mut edits = Vec::new();
    for prefix in skeleton_prefixes(scope).iter().filter(|prefix| !prefix.is_empty()) {
        let tags = |slash: &str| {
            let mark = format!("<{slash}{prefix}");
            let found: Vec<(usize, &str)> = memmem::find_iter(text, &mark)
                .filter_map(|at| Some((at + mark.len(), name_at(text, at + mark.len())?)))
                .collect();
            found
        };
        let (starts, ends) = (tags(""), tags("/"));
        let holds = |name: &str| matches!(name, "metadata" | "description");
        let first = starts.iter().find(|(_, name)| holds(name)).map_or(usize::MAX, |(at, _)| *at);
        let last = ends.iter().rev().find(|(_, name)| holds(name)).map_or(0, |(at, _)| *at);
        for (at, _) in starts.into_iter().chain(ends).filter(|(at, _)| *at <= first || *at >= last) {
            edits.push(Edit { start: at - prefix.len(), end: at, text: String::new() });
        }
    }
    edits
}

/// The OAI-PMH name at the beginning of a text, if the name ends there.
fn name_at(text: &[u8], at: usize) -> Option<&'static str> {
    let rest = text.get(at..)?;
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
    let length = rest.iter().position(is_end).unwrap_or(rest.len());
    NAMES.iter().copied().find(|name| rest.get(..length) == Some(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(head: &str, text: &str) -> String {
        String::from_utf8(conventional(text.as_bytes(), &NamespaceScope::parse(head)))
            .expect("UTF-8 in, UTF-8 out")
    }

    const TYPICAL: &str = "<Repository xmlns=\"http://www.openarchives.org/OAI/2.0/static-repository\" \
                         xmlns:oai=\"http://www.openarchives.org/OAI/2.0/\"><ListRecords>";

    #[test]
    fn the_envelope_loses_its_prefix_and_the_payload_is_unchanged() {
        let record = |p: &str| {
            format!(
                "<{p}record><{p}header><{p}identifier>a</{p}identifier></{p}header><{p}metadata >\
                 <d:dc xmlns:d=\"x\"><oai:record xmlns='y'/><d:t>&lt;<![CDATA[<oai:header>]]></d:t></d:dc></{p}metadata ></{p}record>"
            )
        };
        assert_eq!(rewritten(TYPICAL, &record("oai:")), record(""));
        assert_eq!(rewritten(TYPICAL, &record("")), record(""), "a record without a prefix is unchanged");
        let other = TYPICAL.replace(":oai=", ":o=");
        assert_eq!(rewritten(&other, &record("o:")), record(""));
    }

    #[test]
    fn a_payload_gets_the_default_namespace_that_it_needs() {
        let head = "<s:Repository xmlns:s=\"http://www.openarchives.org/OAI/2.0/static-repository\" \
                    xmlns:oai=\"http://www.openarchives.org/OAI/2.0/\" xmlns=\"u:d\"><s:ListRecords>";
        for (from, to) in [
            (
                "<oai:metadata><m:a><b/></m:a></oai:metadata>",
                "<metadata><m:a xmlns=\"u:d\"><b/></m:a></metadata>",
            ),
            ("<oai:metadata><a/></oai:metadata>", "<metadata><a xmlns=\"u:d\"/></metadata>"),
            ("<oai:metadata><m:a/></oai:metadata>", "<metadata><m:a/></metadata>"),
            (
                "<oai:metadata><a xmlns='n'><b/></a></oai:metadata>",
                "<metadata><a xmlns='n'><b/></a></metadata>",
            ),
            (
                "<oai:metadata xmlns = 'e' x=\"1\"><a/></oai:metadata>",
                "<metadata x=\"1\"><a xmlns=\"e\"/></metadata>",
            ),
            (
                "<metadata xmlns=\"http://www.openarchives.org/OAI/2.0/\"><a/></metadata>",
                "<metadata xmlns=\"http://www.openarchives.org/OAI/2.0/\"><a/></metadata>",
            ),
        ] {
            assert_eq!(rewritten(head, from), to);
        }
    }

    #[test]
    fn malformed_records_lose_their_prefixes_around_the_payload() {
        assert_eq!(
            rewritten(
                TYPICAL,
                "<oai:record><oai:header><oai:identifier>a</oai:identifier></oai:header><oai:metadata><x><oai:record></y>\
                 </oai:metadata><oai:about><z/></oai:about></oai:record>"
            ),
            "<record><header><identifier>a</identifier></header><metadata><x><oai:record></y>\
             </metadata><about><z/></about></record>"
        );
        assert_eq!(rewritten(TYPICAL, "<oai:record>&<oai:records/>"), "<record>&<oai:records/>");
    }
}
