//! Writes the records of a part: as XML, or as a ZIP file with a manifest. No I/O but in memory.

use crate::collection::{ListedPart, PART_RECORDS};
use crate::document::{Entry, Root, Value, start, write_entry};
use crate::kind::ListKind;
use crate::package::Package;
use crate::resources::{ListUrls, Resources};
use oaimend_oai::escape;
use oaimend_store::{IDENTIFIER_BYTES_MAX, MirrorError, RecordStatus, StoredRecord};
use ring::digest::{SHA256, digest};
use std::sync::Arc;

/// Longest URL of an OAI-PMH record that an entry links to, in bytes. A longer one is left out.
const RECORD_URL_BYTES_MAX: usize = 1_024;
/// Usual maximum length of the rest of an entry, in bytes: the names, the hash, and the start of the URLs.
const REST_BYTES: usize = 1_024;
/// Maximum length of an entry of a list without its URLs, in bytes: the names, the hash, the times and the length.
const NAMES_BYTES: usize = 512;
/// Longest document, in bytes: the sitemap protocol allows 50 MiB. Also the longest manifest in memory.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 50 << 20;
const _: () = assert!(PART_RECORDS as usize * entry_bytes_max(IDENTIFIER_BYTES_MAX) <= DOCUMENT_BYTES_MAX);

/// Maximum length of the entry of an identifier of this length, in bytes. Percent-encoding triples it.
const fn entry_bytes_max(identifier_bytes: usize) -> usize {
    3 * identifier_bytes + RECORD_URL_BYTES_MAX + REST_BYTES
}

/// Maximum length of the entry of a record, in bytes, whatever the record contains.
pub(crate) fn entry_bytes(identifier: &str, collection_url: &str, resources: &dyn Resources) -> usize {
    let mut urls = String::new();
    for url in [&resources.url(identifier), &resources.record_url(identifier), collection_url] {
        escape(url, &mut urls);
    }
    urls.len() + NAMES_BYTES
}

/// The manifest of a ZIP file (section 11.2).
const MANIFEST: &str = "manifest.xml";

/// Where a part is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartPlace {
    /// It is the whole list, at the URL of the list.
    WholeList,
    /// It is one of several parts, or a ZIP file.
    OneOfSeveral,
}

/// A part that is being written.
#[derive(Debug)]
pub(crate) struct PartWriter {
    kind: ListKind,
    resources: Arc<dyn Resources>,
    collection_url: String,
    /// The list, as far as it was not taken; of a ZIP file the whole manifest.
    xml: String,
    package: Option<Package>,
}

impl PartWriter {
    pub(crate) fn new(
        (kind, place): (ListKind, PartPlace),
        listed: &ListedPart,
        urls: &ListUrls,
        resources: Arc<dyn Resources>,
    ) -> Self {
        let (up, index) = (urls.capability_list(), urls.list(kind));
        let mut links = vec![("up", up.as_str())];
        if place == PartPlace::OneOfSeveral && !kind.is_dump() {
            links.push(("index", &index));
        }
        let mut metadata = vec![("capability", Value::Text(kind.part_capability()))];
        if kind.has_changes() {
            metadata.push(("from", Value::Time(listed.from_secs)));
            // The URL of the list leads to later changes, too.
            if place == PartPlace::OneOfSeveral {
                metadata.push(("until", Value::Time(listed.until_secs)));
            }
        } else {
            let at = Value::Time(listed.part.at_secs);
            metadata.extend([("at", at), ("completed", at)]);
        }
        Self {
            kind,
            resources,
            collection_url: urls.repository.clone(),
            xml: start(Root::UrlSet, &links, &metadata),
            package: if kind.is_dump() { Some(Package::new()) } else { None },
        }
    }

    /// Writes records, and returns the bytes that are ready.
    ///
    /// # Errors
    ///
    /// A record is damaged, or does not fit a ZIP file.
    pub(crate) fn write(&mut self, records: &[StoredRecord]) -> Result<Vec<u8>, MirrorError> {
        for record in records {
            self.write_record(record)?;
        }
        Ok(match &self.package {
            Some(package) => package.take(),
            None => std::mem::take(&mut self.xml).into_bytes(),
        })
    }

    /// The last bytes.
    ///
    /// # Errors
    ///
    /// The ZIP file exceeds the limits of its format.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, MirrorError> {
        self.xml.push_str(Root::UrlSet.end());
        match self.package {
            Some(mut package) => {
                package.add(MANIFEST, self.xml.as_bytes()).map_err(compression)?;
                package.finish().map_err(compression)
            }
            None => Ok(self.xml.into_bytes()),
        }
    }

    fn write_record(&mut self, record: &StoredRecord) -> Result<(), MirrorError> {
        let metadata = match record.status {
            RecordStatus::Live => self.resources.metadata(record)?,
            RecordStatus::Deleted => None,
        };
        let url = self.resources.url(&record.identifier);
        let stamp = Value::Time(record.stamp_secs);
        let Some(metadata) = metadata else {
            if self.kind.has_changes() {
                let entry = Entry {
                    location: &url,
                    modified_secs: None,
                    metadata: &[("change", Value::Text("deleted")), ("datetime", stamp)],
                    links: &[],
                };
                write_entry(Root::UrlSet, &entry, &mut self.xml);
            }
            return Ok(());
        };
        let mut attributes = Vec::with_capacity(6);
        if self.kind.has_changes() {
            // The store keeps the last change only, so it does not know whether a destination has the record.
            attributes.extend([("change", Value::Text("updated")), ("datetime", stamp)]);
        }
        let hash = format!("sha-256:{}", hex::encode(digest(&SHA256, metadata.as_bytes())));
        attributes.push(("hash", Value::Text(&hash)));
        attributes.push(("length", Value::Number(metadata.len() as u64)));
        attributes.push(("type", Value::Text(self.resources.media_type())));
        // Names of files are numbers: an identifier could lead out of the folder of a client that unpacks them.
        let path = format!("/resources/{}.xml", record.sequence);
        if let Some(package) = &mut self.package {
            package.add(path.trim_start_matches('/'), metadata.as_bytes()).map_err(compression)?;
            attributes.push(("path", Value::Text(&path)));
        }
        let record_url = self.resources.record_url(&record.identifier);
        let mut links = vec![("collection", self.collection_url.as_str())];
        if record_url.len() <= RECORD_URL_BYTES_MAX {
            links.push(("describedby", &record_url));
        }
        let entry = Entry {
            location: &url,
            modified_secs: Some(record.stamp_secs),
            metadata: &attributes,
            links: &links,
        };
        write_entry(Root::UrlSet, &entry, &mut self.xml);
        Ok(())
    }
}

fn compression(error: std::io::Error) -> MirrorError {
    MirrorError::Stopped(error.to_string())
}
