//! The provenance of a record: where the mirror harvested it, and with which datestamp.
//!
//! It is the container of the OAI Guidelines for Optional Containers ("provenance"), in an `about`. The last harvest is
//! the outermost description: one that the source wrote about an earlier harvest becomes part of ours. A record whose
//! outermost description already names our source gets no second one, because it was harvested with provenance.

use super::identify::source_granularity;
use super::options::MirroredSource;
use super::origins::Origin;
use super::presentation::View;
use super::record_xml::Insertion;
use memchr::memmem;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::escape;
use oaimend_repository::RecordView;
use oaimend_repository::xml::{NamespaceReader, StartTag, XmlError, XmlEvent, XmlText};
use oaimend_store::{MirrorError, RecordStatus, StoredRecord};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The facts of the sources of a page, read when they are needed.
#[derive(Default)]
pub(super) struct Origins(HashMap<String, Arc<Origin>>);

/// The facts of a source, from memory unless the mirror has changed.
async fn origin(view: &View, member: &MirroredSource) -> Result<Arc<Origin>, MirrorError> {
    let changes = view.stores.store.changes().await?;
    if let Some(origin) = view.stores.origins.find(changes, &member.id) {
        return Ok(origin);
    }
    let granularity = source_granularity(view, member).await?;
    let formats = view.stores.store.catalog(member.repository()).await?.formats;
    let namespaces = formats.into_iter().map(|format| (format.prefix, format.namespace)).collect();
    let origin = Arc::new(Origin { granularity, namespaces });
    view.stores.origins.keep(changes, &member.id, &origin);
    Ok(origin)
}

/// The granularity of a source and the namespace of a format, which the provenance of its records names; `None` if they get
/// none.
pub(super) async fn described_by(
    view: &View,
    member: &MirroredSource,
    prefix: &str,
) -> Result<Option<(Granularity, String)>, MirrorError> {
    if member.provenance_base_url.is_none() {
        return Ok(None);
    }
    let origin = origin(view, member).await?;
    Ok(Some((origin.granularity, origin.namespaces.get(prefix).cloned().unwrap_or_default())))
}

/// The namespace of provenance.
pub(super) const NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/provenance";

impl Origins {
    /// The texts that add the provenance to a record; none if it gets none.
    pub(super) async fn insertions(
        &mut self,
        view: &View,
        (member, prefix): (&MirroredSource, &str),
        record: &StoredRecord,
        read: &RecordView<'_>,
    ) -> Result<Vec<Insertion>, MirrorError> {
        let Some(base_url) = &member.provenance_base_url else { return Ok(Vec::new()) };
        if record.status == RecordStatus::Deleted {
            return Ok(Vec::new());
        }
        let found = read_descriptions(read).unwrap_or_default();
        if found.iter().any(|found| found.base_url == *base_url && found.identifier == record.identifier) {
            return Ok(Vec::new());
        }
        if !self.0.contains_key(&member.id) {
            self.0.insert(member.id.clone(), origin(view, member).await?);
        }
        let origin = self.0.get(&member.id);
        let granularity = origin.map_or(Granularity::Second, |origin| origin.granularity);
        let namespace = origin.and_then(|origin| origin.namespaces.get(prefix)).map_or("", String::as_str);
        let described = Described { base_url, record, granularity, namespace };
        Ok(match found.into_iter().next() {
            Some(old) => {
                let (start, end) = described.to_tags(old.prefix);
                let Range { start: from, end: to } = old.range;
                vec![Insertion { at: from, text: start }, Insertion { at: to, text: end }]
            }
            None => {
                let ((start, end), oai) = (described.to_tags(""), read.root().prefix());
                let about = format!(
                    "<{oai}about><provenance xmlns=\"{NAMESPACE}\" \
                     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
                     xsi:schemaLocation=\"{NAMESPACE} http://www.openarchives.org/OAI/2.0/provenance.xsd\">\
                     {start}{end}</provenance></{oai}about>"
                );
                vec![Insertion { at: read.end(), text: about }]
            }
        })
    }
}

/// A harvest of a record, to be described.
struct Described<'r> {
    base_url: &'r str,
    record: &'r StoredRecord,
    granularity: Granularity,
    /// The namespace of its format.
    namespace: &'r str,
}

impl Described<'_> {
    /// The description in two parts: before and after the one inside it. `prefix` is that of the provenance namespace
    /// with its colon, or empty.
    fn to_tags(&self, prefix: &str) -> (String, String) {
        let harvested = from_secs(self.record.stamp_secs, Granularity::Second);
        let mut start = format!("<{prefix}originDescription harvestDate=\"{harvested}\" altered=\"false\">");
        for (name, value) in [
            ("baseURL", self.base_url),
            ("identifier", &self.record.identifier),
            ("datestamp", &from_secs(self.record.datestamp_secs, self.granularity)),
            ("metadataNamespace", self.namespace),
        ] {
            start.push_str(&format!("<{prefix}{name}>"));
            escape(value, &mut start);
            start.push_str(&format!("</{prefix}{name}>"));
        }
        (start, format!("</{prefix}originDescription>"))
    }
}

/// The outermost description in a provenance container of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Description<'r> {
    /// The element.
    range: Range<usize>,
    /// The prefix of the name of its container with the colon, or empty.
    prefix: &'r str,
    base_url: String,
    identifier: String,
}

/// Reads the descriptions in all provenance containers of a record. A container with anything but one description has
/// none.
fn read_descriptions<'r>(record: &RecordView<'r>) -> Result<Vec<Description<'r>>, XmlError> {
    // Few records have one, and a record is read as a whole for it.
    if memmem::find(record.text().as_bytes(), NAMESPACE.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let mut reader = record.content_with_namespaces()?;
    let mut reading = Reading::default();
    while let Some(event) = reader.read()? {
        match event {
            XmlEvent::Start(tag) => reading.open(&reader, tag),
            XmlEvent::Text(text) => reading.add(text, reader.depth()),
            XmlEvent::End(_) => reading.close(reader.depth(), reader.span().end),
            _ => {}
        }
    }
    Ok(reading.found)
}

/// A record up to the current event: record, about, provenance, originDescription and its fields.
#[derive(Default)]
struct Reading<'r> {
    is_about: bool,
    /// The container that is open, and the number of its children.
    container: Option<(Description<'r>, usize)>,
    /// Whether the field that is open is the base URL; `None` if it is neither this nor the identifier.
    is_base_url: Option<bool>,
    found: Vec<Description<'r>>,
}

impl<'r> Reading<'r> {
    fn open(&mut self, reader: &NamespaceReader<'r>, tag: StartTag<'r>) {
        let name = tag.local_name();
        let is_named = |expected: &str| name == expected && reader.namespace(tag) == Ok(NAMESPACE);
        match (reader.depth(), &mut self.container) {
            (1, _) => self.is_about = name == "about",
            (2, _) if self.is_about && is_named("provenance") => {
                self.container = Some((Description { prefix: tag.prefix(), ..Description::default() }, 0));
            }
            (3, Some((description, children))) => {
                *children += 1;
                if is_named("originDescription") {
                    let start = reader.span().start;
                    description.range = start..start;
                }
            }
            (4, Some(_)) => {
                self.is_base_url = match name {
                    "baseURL" => Some(true),
                    "identifier" => Some(false),
                    _ => None,
                };
            }
            _ => {}
        }
    }

    fn add(&mut self, text: XmlText<'_>, depth: usize) {
        let (Some((description, _)), Some(is_base_url), 5) = (&mut self.container, self.is_base_url, depth)
        else {
            return;
        };
        let value = if is_base_url { &mut description.base_url } else { &mut description.identifier };
        value.push_str(&text.resolve().unwrap_or_default());
    }

    /// Closes an element at this depth, which ends at this byte.
    fn close(&mut self, depth: usize, end: usize) {
        match (depth, &mut self.container) {
            (2, container) => {
                let ended =
                    container.take().filter(|(read, children)| *children == 1 && !read.range.is_empty());
                if let Some((Description { range, prefix, base_url, identifier }, _)) = ended {
                    let trimmed = |text: String| text.trim().to_owned();
                    let (base_url, identifier) = (trimmed(base_url), trimmed(identifier));
                    self.found.push(Description { range, prefix, base_url, identifier });
                }
            }
            (3, Some((description, _))) if description.range.start > 0 => description.range.end = end,
            (4, _) => self.is_base_url = None,
            _ => {}
        }
    }
}
