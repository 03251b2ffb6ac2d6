//! The provenance of a record: the source, the harvest date, and whether a repair altered the payload.
//!
//! The harvest date is the responseDate of the source, and the datestamp is that of the source, even if the
//! record leaves with another granularity.
//!
//! `stages/list/rewrite.rs` adds it to valid records directly before they are emitted. It is the container
//! of the OAI Guidelines for Optional Containers ("provenance"), in an `about`.
//!
//! The pass only adds text. An existing provenance stays and becomes part of the new one.

use crate::catalog::RepairId;
use crate::config::{Origin, ProvenanceScope};
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::{name_span, split_name, trim};
use crate::lex::namespaces::{Context, OAI};
use crate::lex::outline::{Child, outline};
use crate::lex::search::{memchr2_iter, memmem, memrchr};
use crate::limits::Limits;
use crate::span::Span;
use crate::text::edits::Edits;
use crate::text::escape::{escape, resolve};
use crate::validate::facts::ItemFacts;
use crate::validate::start_tag::{StartTagCache, read_attributes};
use oaimend_oai::datestamp::{Granularity, is_legal};

/// A valid record before it is emitted, with the edits made to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingRecord<'r> {
    pub(crate) item: &'r [u8],
    pub(crate) edits: &'r Edits,
    pub(crate) facts: &'r ItemFacts,
    /// The datestamp of the source as written in the XML, if the record has another one now.
    pub(crate) source_datestamp: Option<&'r [u8]>,
    /// The responseDate of the source as written in the XML; `None` if there is none.
    pub(crate) response_date: Option<&'r [u8]>,
    /// The context of the list as it is emitted.
    pub(crate) outer: Context,
    /// Prefixes whose namespaces were corrected outside items.
    pub(crate) corrected_namespaces: &'r [Vec<u8>],
}

const PROVENANCE: &[u8] = b"http://www.openarchives.org/OAI/2.0/provenance";
/// The start of the container, up to its description. It declares all namespaces that it uses.
const START: &[u8] = b"<provenance xmlns=\"http://www.openarchives.org/OAI/2.0/provenance\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/provenance \
    http://www.openarchives.org/OAI/2.0/provenance.xsd\">";
const END: &[u8] = b"</provenance>";

impl OutgoingRecord<'_> {
    /// Returns the edits that add provenance. There are none if the record needs none or already has it.
    pub(crate) fn provenance_edits(
        &self,
        origin: &Origin,
        tags: &mut StartTagCache,
        limits: &Limits,
    ) -> Edits {
        let may_be_altered = self.edits.change_content() || !self.corrected_namespaces.is_empty();
        if self.facts.deleted || origin.scope == ProvenanceScope::Altered && !may_be_altered {
            return Edits::default();
        }
        self.try_provenance_edits(origin, tags, limits).unwrap_or_default()
    }

    fn try_provenance_edits(
        &self,
        origin: &Origin,
        tags: &mut StartTagCache,
        limits: &Limits,
    ) -> Option<Edits> {
        let item = self.item;
        let record = tags.open(item, self.outer, limits).ok()?;
        let parts = outline(item, record.len as usize, memrchr(b'<', item)?)?.children;
        let metadata = *parts.iter().find(|part| part.local == b"metadata")?;
        let payload = first_start_tag(item, metadata.content)?;
        let altered = self.is_altered(metadata.content);
        if origin.scope == ProvenanceScope::Altered && !altered {
            return None;
        }
        let within = tags.open(item.get(metadata.start..)?, record.context, limits).ok()?.context;
        let namespace = namespace_of(item.get(payload..)?, within, tags, limits)?;
        let mut edits = Edits::default();
        let mut old = None;
        for about in parts.iter().filter(|part| part.local == b"about") {
            let context = tags.open(item.get(about.start..)?, record.context, limits).ok()?.context;
            let Some(found) = read_container(item, about, context, tags, limits) else { continue };
            if found.describes(origin, self) && (!altered || found.is_marked_altered(item, limits)) {
                return None;
            }
            old = old.or(Some(found));
        }
        match old {
            Some(old) => {
                let (start, end) = self.description_tags(origin, altered, &namespace, old.prefix);
                edits.push(RepairId::RewriteProvenance, old.description.start, old.description.start, &start);
                edits.push(RepairId::RewriteProvenance, old.description.end, old.description.end, &end);
            }
            None => {
                let (start, end) = self.description_tags(origin, altered, &namespace, b"");
                let prefix = item.get(1..record.prefix_len as usize + 1)?;
                let about = [b"about>".as_slice(), START, &start, &end, END].concat();
                let about = [b"<", prefix, about.as_slice(), b"</", prefix, b"about>"].concat();
                let after = parts.last()?.end;
                edits.push(RepairId::RewriteProvenance, after, after, &about);
            }
        }
        Some(edits)
    }

    /// Returns whether the payload in this range differs from the received payload.
    fn is_altered(&self, (from, to): (usize, usize)) -> bool {
        let mut shift = 0_isize;
        let is_edited = self.edits.iter().any(|edit| {
            let (start, end) = edit.middle_range(shift);
            shift += edit.growth();
            let touches = if start == end { from <= start && start <= to } else { start < to && from < end };
            edit.content && touches
        });
        // A moved element is no longer where it was edited. A namespace affects more text than its
        // declaration.
        let reaches = self.edits.iter().any(|edit| match edit.id {
            RepairId::ElementOrder => edit.content,
            RepairId::HttpsNamespace | RepairId::NamespaceVariant => {
                let named = edit.replacement.as_slice();
                named.trim_ascii() != OAI && named.get(1..named.len().saturating_sub(1)) != Some(OAI)
            }
            _ => false,
        });
        let payload = self.item.get(from..to).unwrap_or_default();
        is_edited
            || reaches
            || self.corrected_namespaces.iter().any(|prefix| uses_outer_prefix(payload, prefix))
    }

    /// Returns the description of this record in two parts: before and after an existing description inside
    /// it.
    fn description_tags(
        &self,
        origin: &Origin,
        altered: bool,
        namespace: &[u8],
        prefix: &[u8],
    ) -> (Vec<u8>, Vec<u8>) {
        let element = |local: &[u8], content: &[u8]| {
            [b"<", prefix, local, b">", content, b"</", prefix, local, b">"].concat()
        };
        let altered: &[u8] = if altered { b"true" } else { b"false" };
        let own_date = escape(origin.harvest_date.as_bytes());
        let date = self.response_date.unwrap_or(&own_date);
        let start = [
            [b"<", prefix, b"originDescription harvestDate=\"", date, b"\" altered=\"", altered, b"\">"]
                .concat(),
            element(b"baseURL", &escape(origin.base_url.as_bytes())),
            element(b"identifier", self.facts.identifier.slice(self.item)),
            element(
                b"datestamp",
                self.source_datestamp.unwrap_or_else(|| self.facts.datestamp.slice(self.item)),
            ),
            element(b"metadataNamespace", namespace),
        ]
        .concat();
        (start, [b"</", prefix, b"originDescription>"].concat())
    }
}

/// An existing provenance container.
#[derive(Clone, Copy, Debug)]
struct ProvenanceContainer<'t> {
    /// Its originDescription element.
    description: Child<'t>,
    /// The prefix of the container's name, with its colon.
    prefix: &'t [u8],
    base_url: &'t [u8],
    identifier: &'t [u8],
    datestamp: &'t [u8],
}

impl ProvenanceContainer<'_> {
    /// Returns whether the container already describes this record from this source.
    fn describes(&self, origin: &Origin, record: &OutgoingRecord<'_>) -> bool {
        let text = |raw: &[u8]| trim(&resolve(raw)).to_vec();
        let fact = |span: Span| text(span.slice(record.item));
        text(self.base_url) == origin.base_url.as_bytes()
            && text(self.identifier) == fact(record.facts.identifier)
            && is_same_datestamp(&text(self.datestamp), &fact(record.facts.datestamp))
    }

    fn is_marked_altered(&self, item: &[u8], limits: &Limits) -> bool {
        let tag = item.get(self.description.start..self.description.content.0).unwrap_or_default();
        let name_end = 1 + name_span(tag.get(1..).unwrap_or_default());
        let mut attributes = Vec::new();
        let _ = read_attributes(tag, name_end, limits, &mut attributes);
        attributes.iter().any(|one| one.name == b"altered" && matches!(trim(one.value), b"true" | b"1"))
    }
}

/// Returns whether a described datestamp is the written one, perhaps in another granularity.
fn is_same_datestamp(described: &[u8], written: &[u8]) -> bool {
    let fitted = |granularity: Granularity| {
        let described = std::str::from_utf8(described).ok().filter(|text| is_legal(text.as_bytes()));
        described.is_some_and(|described| granularity.fitted(described).as_bytes() == written)
    };
    described == written || fitted(Granularity::Day) || fitted(Granularity::Second)
}

/// Returns the provenance container in an `about`; `None` if it contains something else.
fn read_container<'t>(
    item: &'t [u8],
    about: &Child<'t>,
    context: Context,
    tags: &mut StartTagCache,
    limits: &Limits,
) -> Option<ProvenanceContainer<'t>> {
    let is_ours = |at: usize, context: Context, tags: &mut StartTagCache| {
        let uri = namespace_of(item.get(at..)?, context, tags, limits)?;
        (uri == PROVENANCE).then_some(())
    };
    let provenance = *outline(item, about.content.0, about.content.1)?.children.first()?;
    is_ours(provenance.start, context, tags).filter(|()| provenance.local == b"provenance")?;
    let tag = tags.open(item.get(provenance.start..)?, context, limits).ok()?;
    let inner = outline(item, provenance.content.0, provenance.content.1)?.children;
    let [description] = *inner else { return None };
    is_ours(description.start, tag.context, tags).filter(|()| description.local == b"originDescription")?;
    let fields = outline(item, description.content.0, description.content.1)?.children;
    let content = |local: &[u8]| {
        let field = fields.iter().find(|field| field.local == local);
        field.and_then(|field| item.get(field.content.0..field.content.1)).unwrap_or_default()
    };
    let name_at = provenance.start + 1;
    Some(ProvenanceContainer {
        description,
        prefix: item.get(name_at..name_at + tag.prefix_len as usize)?,
        base_url: content(b"baseURL"),
        identifier: content(b"identifier"),
        datestamp: content(b"datestamp"),
    })
}

/// Returns the namespace of the first element of `text`, escaped for XML; empty if it has none.
fn namespace_of(text: &[u8], context: Context, tags: &mut StartTagCache, limits: &Limits) -> Option<Vec<u8>> {
    let tag = tags.open(text, context, limits).ok()?;
    let (prefix, _) = split_name(text.get(1..1 + tag.name_len as usize)?);
    let uri = tags.contexts.lookup(tag.context, prefix).unwrap_or_default();
    Some(escape(&resolve(uri)))
}

/// Returns the position of the first element between `from` and `to`.
fn first_start_tag(text: &[u8], (from, to): (usize, usize)) -> Option<usize> {
    let text = text.get(..to)?;
    let mut lexemes = Lexemes::new_well_formed(text);
    let mut at = from;
    while at < to {
        let (lexeme, end) = lexemes.at(at);
        if lexeme == Lexeme::StartTag {
            return Some(at);
        }
        at = end;
    }
    None
}

/// Returns whether names in the payload use this prefix with a declaration outside the payload.
fn uses_outer_prefix(payload: &[u8], prefix: &[u8]) -> bool {
    if prefix.is_empty() {
        return memmem::find(payload, b"xmlns=").is_none();
    }
    let name = [prefix, b":"].concat();
    let declared = [b"xmlns:", prefix, b"="].concat();
    memmem::find(payload, &declared).is_none()
        && memchr2_iter(b'<', b' ', payload)
            .any(|at| payload.get(at + 1..).unwrap_or_default().starts_with(&name))
}
