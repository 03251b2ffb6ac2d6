//! The sitemaps: the index of all mirrored repositories, and the records of one range of sequences as a stream.

use super::collection::{ListedCollection, served_formats};
use super::item::ItemRecords;
use super::lists::list_notice_page;
use super::record::{CACHE_CONTROL, canonical_url, with_policies};
use crate::config::{CanonicalPage, Mapping, RecordPages, Robots};
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::source_lists::{ListedRecord, SourceList};
use crate::serve::validators::Validators;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{StreamExt as _, stream};
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::html::ListNotice;
use oaimend_pages::record::{RecordAddress, RepositoryAddress};
use oaimend_pages::sitemap::{
    ENTRIES_MAX, SITEMAP_END, SITEMAP_SEQUENCES, SitemapAddress, repositories_sitemap, sitemap_index,
    sitemap_start, write_entry,
};
use oaimend_pages::texts::plain;
use oaimend_store::{
    Identifier, ListFilter, ListQuery, MirrorError, MirrorStore, Position, Prefix, RepositoryId,
};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;

/// Records that are read from the store at a time, without their bytes.
const BATCH_RECORDS: usize = 1_000;
/// Records that are read with their bytes at a time. It takes some milliseconds to read what they say.
const WHOLE_BATCH_RECORDS: usize = 100;
/// Maximum number of bytes of the records that are read at a time.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// A fast level: the processor is the bottleneck more often than the network.
const LEVEL: u32 = 4;

/// Whether a repository has records in sitemaps. Search engines want no URLs in them that redirect, so those of
/// `records = "link"` are left out.
fn has_sitemaps(mapping: &Mapping) -> bool {
    (mapping.mirror.is_some() || mapping.has_source_list()) && mapping.records == RecordPages::Own
}

/// The URL of the index for robots.txt; `None` if crawlers are not welcome or no repository has sitemaps.
pub(crate) fn announced_sitemap(
    gateway: &GatewayState,
    mappings: &BTreeMap<String, Arc<Mapping>>,
) -> Option<String> {
    let is_announced = gateway.policy.enabled
        && gateway.policy.robots == Robots::Allow
        && mappings.values().any(|mapping| has_sitemaps(mapping));
    is_announced.then(|| SitemapAddress::Index.url(gateway.site.public_url()))
}

/// The response to a request for a sitemap.
pub(crate) async fn answer(
    served: &ServedRepositories,
    gateway: &GatewayState,
    address: &SitemapAddress,
    headers: &HeaderMap,
) -> Response {
    let answered = match address {
        SitemapAddress::Index => index(served, gateway, headers).await,
        SitemapAddress::Repositories => repositories(served, gateway, headers),
        SitemapAddress::Records { repository, number } => {
            records(served, gateway, repository, *number, headers).await
        }
    };
    answered.unwrap_or_else(|_| list_notice_page(gateway, "", "Sitemap", ListNotice::Unreadable))
}

/// The index of all sitemaps. Repositories that were never harvested completely are left out.
async fn index(
    served: &ServedRepositories,
    gateway: &GatewayState,
    headers: &HeaderMap,
) -> Result<Response, MirrorError> {
    let store = &*served.store.mirror;
    let mut sitemaps = vec![SitemapAddress::Repositories];
    for mapping in served.repositories.all().values().filter(|mapping| has_sitemaps(mapping)) {
        if sitemaps.len() >= ENTRIES_MAX {
            tracing::warn!("the sitemap index is full; the records of some repositories are not in it");
            break;
        }
        if mapping.mirror.is_none() {
            let is_listed = listed_in_sitemap(served, gateway, mapping).is_some();
            let records = SitemapAddress::Records { repository: mapping.id().to_owned(), number: 0 };
            sitemaps.extend(is_listed.then_some(records));
            continue;
        }
        let Some(collection) = ListedCollection::find(store, mapping).await? else { continue };
        let counts = store.count_by_sequence(collection.live(), SITEMAP_SEQUENCES).await?;
        let numbers =
            counts.into_iter().filter(|(_, count)| *count > 0).map(|(first, _)| first / SITEMAP_SEQUENCES);
        sitemaps.extend(
            numbers.map(|number| SitemapAddress::Records { repository: mapping.id().to_owned(), number }),
        );
    }
    let xml = sitemap_index(gateway.site.public_url(), &sitemaps);
    let validators = validators_of(&xml);
    let content_type = "application/xml; charset=UTF-8";
    let page = if validators.are_known(headers) {
        Response::new(304, content_type, "")
    } else {
        Response::new(200, content_type, xml)
    };
    Ok(file(validators.add_to(page)).compressible())
}

/// The sitemap of the pages of all repositories.
fn repositories(
    served: &ServedRepositories,
    gateway: &GatewayState,
    headers: &HeaderMap,
) -> Result<Response, MirrorError> {
    let mappings = served.repositories.all();
    let pages = mappings.values().map(|mapping| (mapping.id(), has_sitemaps(mapping)));
    compressed(&repositories_sitemap(gateway.site.public_url(), pages), headers)
}

/// A sitemap in one piece.
fn compressed(xml: &str, headers: &HeaderMap) -> Result<Response, MirrorError> {
    let validators = validators_of(xml);
    if validators.are_known(headers) {
        return Ok(file(validators.add_to(Response::new(304, CONTENT_TYPE, ""))));
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    let compressed =
        encoder.write_all(xml.as_bytes()).and_then(|()| encoder.finish()).map_err(compression)?;
    Ok(file(validators.add_to(Response::new(200, CONTENT_TYPE, compressed))))
}

/// The list of a repository that is not mirrored, if the pages of its records are in a sitemap. Without
/// `canonical = "self"` nobody knows which of them are canonical: their metadata was never received.
fn listed_in_sitemap(
    served: &ServedRepositories,
    gateway: &GatewayState,
    mapping: &Mapping,
) -> Option<Arc<SourceList>> {
    let list = served.source_lists.of(mapping)?;
    (gateway.policy.canonical == CanonicalPage::Own && !list.records.is_empty()).then_some(list)
}

/// The sitemap of the records in the list of a source.
fn records_of_source(
    gateway: &GatewayState,
    mapping: &Mapping,
    list: &SourceList,
    headers: &HeaderMap,
) -> Result<Response, MirrorError> {
    let mut xml = sitemap_start();
    for ListedRecord { datestamp_secs, identifier } in &list.records {
        let address = RecordAddress { repository: mapping.id(), identifier, format: None };
        let modified = from_secs(*datestamp_secs, Granularity::Day);
        write_entry(&address.page(gateway.site.public_url()), Some(&modified), &mut xml);
    }
    xml.push_str(SITEMAP_END);
    compressed(&xml, headers)
}

/// The validators of a file with the URLs of other files or pages. It changes with the configuration too, so it has no
/// time of its last change.
fn validators_of(xml: &str) -> Validators {
    Validators { tag: fingerprint([xml.as_bytes()]), modified_secs: None }
}

const CONTENT_TYPE: &str = "application/gzip";

fn file(page: Response) -> Response {
    with_policies(page.with("Cache-Control", CACHE_CONTROL.to_owned()))
}

/// The sitemap of the records in a range of sequences.
async fn records(
    served: &ServedRepositories,
    gateway: &GatewayState,
    repository: &str,
    number: u64,
    headers: &HeaderMap,
) -> Result<Response, MirrorError> {
    let mappings = served.repositories.all();
    let unknown = || Ok(Response::text(404, plain::UNKNOWN_SITEMAP));
    let Some(mapping) = mappings.get(repository).filter(|mapping| has_sitemaps(mapping)) else {
        let is_mirrored = mappings.get(repository).is_some_and(|mapping| mapping.mirror.is_some());
        let stored = served.store.mirror.repositories().await?;
        if !is_mirrored && stored.iter().any(|stored| stored == repository) {
            return Ok(Response::text(410, plain::REPOSITORY_REMOVED));
        }
        return unknown();
    };
    if mapping.mirror.is_none() {
        return match listed_in_sitemap(served, gateway, mapping) {
            Some(list) if number == 0 => records_of_source(gateway, mapping, &list, headers),
            _ => unknown(),
        };
    }
    let Some(collection) = ListedCollection::find(&*served.store.mirror, mapping).await? else {
        return Ok(list_notice_page(gateway, repository, repository, ListNotice::NotHarvested));
    };
    let Some(first) = number.checked_mul(SITEMAP_SEQUENCES.get()) else { return unknown() };
    let sequences = first..first.saturating_add(SITEMAP_SEQUENCES.get());
    let filter = ListFilter { sequences: Some(sequences), ..collection.live() };
    // The protocol knows no sitemap without URLs.
    if served.store.mirror.count(filter.clone()).await? == 0 {
        return unknown();
    }
    let store = &served.store.mirror;
    let formats = served_formats(&**store, mapping).await?;
    let mut versions = Vec::new();
    for prefix in &formats {
        versions.push(store.version(RepositoryId(repository), Prefix(prefix)).await?);
    }
    let depends_on = format!("{:?}", (&gateway.version, repository, number, &formats, &versions));
    let stamps = versions.iter().flatten().map(|version| version.last_stamp_secs);
    let validators = Validators { tag: fingerprint([depends_on.as_bytes()]), modified_secs: stamps.max() };
    if validators.are_known(headers) {
        return Ok(file(validators.add_to(Response::new(304, CONTENT_TYPE, ""))));
    }
    let written = WrittenSitemap {
        store: Arc::clone(store),
        formats,
        public_url: gateway.site.public_url().to_owned(),
        canonical: gateway.policy.canonical,
        has_entries: false,
        filter,
        encoder: GzEncoder::new(Vec::new(), Compression::new(LEVEL)),
        rest: Rest::All,
    };
    let pieces = stream::try_unfold(written, async |mut written| {
        let piece = written.next_piece().await?;
        Ok(piece.map(|piece| (piece, written)))
    });
    Ok(file(validators.add_to(Response::stream(CONTENT_TYPE, pieces.boxed()))))
}

/// A sitemap that is being written. Memory is limited to one batch of records.
struct WrittenSitemap {
    store: Arc<dyn MirrorStore>,
    /// The formats that the mirror serves, the richest one first.
    formats: Vec<String>,
    public_url: String,
    canonical: CanonicalPage,
    /// Whether a record is in it.
    has_entries: bool,
    filter: ListFilter,
    encoder: GzEncoder<Vec<u8>>,
    rest: Rest,
}

/// The part that was not written yet.
enum Rest {
    All,
    After(Position),
    Nothing,
}

impl WrittenSitemap {
    /// The records that describe an item; `None` for one that is damaged or was deleted meanwhile.
    async fn item(&self, identifier: &str) -> Result<Option<ItemRecords>, MirrorError> {
        let repository = RepositoryId(&self.filter.repository);
        match ItemRecords::read(&*self.store, repository, &self.formats, Identifier(identifier)).await {
            Err(MirrorError::Damaged) => Ok(None),
            item => item,
        }
    }

    /// Whether the page of an item is the one that search engines should show. That of an unreadable record is not.
    fn is_canonical(&self, item: &ItemRecords) -> bool {
        self.canonical == CanonicalPage::Own
            || item.describe().is_some_and(|work| canonical_url(self.canonical, &work).is_none())
    }

    /// The next bytes; `None` at the end.
    async fn next_piece(&mut self) -> Result<Option<Bytes>, MirrorError> {
        let (after, mut xml) = match self.rest {
            Rest::All => (None, sitemap_start()),
            Rest::After(position) => (Some(position), String::new()),
            Rest::Nothing => return Ok(None),
        };
        let is_alone = self.formats == [self.filter.prefix.as_str()];
        let with_bytes = is_alone && self.canonical != CanonicalPage::Own;
        let query = ListQuery {
            filter: self.filter.clone(),
            after,
            count_max: if self.canonical == CanonicalPage::Own && is_alone {
                BATCH_RECORDS
            } else {
                WHOLE_BATCH_RECORDS
            },
            bytes_max: BATCH_BYTES_MAX,
            with_bytes,
        };
        let page = self.store.list(query).await?;
        for record in page.records {
            let identifier = record.identifier.clone();
            let item = if is_alone {
                Some(ItemRecords { best: record, common: None })
            } else {
                self.item(&identifier).await?
            };
            let Some(item) = item.filter(|item| self.is_canonical(item)) else { continue };
            self.has_entries = true;
            let address =
                RecordAddress { repository: &self.filter.repository, identifier: &identifier, format: None };
            let modified = from_secs(item.stamp_secs(), Granularity::Second);
            write_entry(&address.page(&self.public_url), Some(&modified), &mut xml);
        }
        self.rest = match page.next {
            Some(next) => Rest::After(next),
            None => {
                if !self.has_entries {
                    // The protocol knows no sitemap without URLs.
                    let repository = RepositoryAddress { repository: &self.filter.repository };
                    write_entry(&repository.page(&self.public_url), None, &mut xml);
                }
                xml.push_str(SITEMAP_END);
                Rest::Nothing
            }
        };
        self.encoder.write_all(xml.as_bytes()).map_err(compression)?;
        match self.rest {
            Rest::Nothing => self.encoder.try_finish(),
            // The first piece leaves before the last record is read.
            _ => self.encoder.flush(),
        }
        .map_err(compression)?;
        Ok(Some(std::mem::take(self.encoder.get_mut()).into()))
    }
}

fn compression(error: std::io::Error) -> MirrorError {
    MirrorError::Stopped(error.to_string())
}
