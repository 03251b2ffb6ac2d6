//! The responses to requests for ResourceSync documents.

use super::resources::MetadataResources;
use crate::config::{Mapping, RecordPages};
use crate::serve::oai::mirror_views::view_stores;
use crate::serve::pages::records::collection::mirrored_formats;
use crate::serve::response::{RESPONSE_SECURITY_POLICY, Response};
use crate::serve::served::ServedRepositories;
use crate::serve::validators::Validators;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_mirror::view::ViewStores;
use oaimend_pages::record::RepositoryAddress;
use oaimend_pages::texts::plain;
use oaimend_repository::{Failure, Reason};
use oaimend_resourcesync::{
    FormatAddress, Limits, ListDocument, ListKind, ListUrls, Part, PartStream, Resources,
    SOURCE_DESCRIPTION_PATH, SyncError, SyncTarget, SyncedCollection, capability_list, source_description,
};
use oaimend_store::{CollectionVersion, MirrorError};
use std::sync::Arc;

const XML: &str = "application/xml; charset=UTF-8";
const ZIP: &str = "application/zip";

/// Why there is no document.
enum Missing {
    /// No repository that is shown has this format.
    Unknown,
    /// The list is not there.
    List(SyncError),
    Failed(Box<Failure>),
}

impl From<SyncError> for Missing {
    fn from(error: SyncError) -> Self {
        Self::List(error)
    }
}

impl From<MirrorError> for Missing {
    fn from(error: MirrorError) -> Self {
        Self::List(error.into())
    }
}

/// The response to a request for a document.
pub(crate) async fn answer(
    served: &ServedRepositories,
    target: &SyncTarget,
    headers: &HeaderMap,
) -> Response {
    let answered = match target {
        SyncTarget::SourceDescription => describe_source(served).await,
        SyncTarget::CapabilityList(format) => describe_format(served, format).await,
        SyncTarget::List(format, kind) => Box::pin(list(served, format, *kind, headers)).await,
        SyncTarget::Part(format, kind, part) => {
            Box::pin(list_part(served, format, (*kind, *part), headers)).await
        }
    };
    match answered {
        Ok(page) => {
            // Lists change with each commit, and each of them says which position it has.
            page.with("Cache-Control", "no-cache".to_owned()).with("Vary", "Accept-Encoding".to_owned())
        }
        Err(missing) => refuse(&missing),
    }
}

fn refuse(missing: &Missing) -> Response {
    let failure = match missing {
        Missing::Unknown => return Response::text(404, plain::UNKNOWN_SYNC_DOCUMENT),
        Missing::List(error @ SyncError::UnknownPart) => return Response::text(404, &error.to_string()),
        Missing::List(error @ (SyncError::NeverComplete | SyncError::Gap(_))) => {
            Failure::new(Reason::MirrorIncomplete, error.to_string())
        }
        Missing::List(error) => Failure::new(Reason::Mirror, error.to_string()),
        Missing::Failed(failure) => Failure::clone(failure),
    };
    Response::failed(&failure).with("Cache-Control", "no-store".to_owned())
}

/// Whether the metadata of a repository are resources: its records are stored here, and the gateway shows them.
fn is_shown(mapping: &Mapping) -> bool {
    mapping.mirror.is_some() && mapping.records != RecordPages::Off
}

fn urls(served: &ServedRepositories, format: FormatAddress) -> ListUrls {
    let base = served.public_url.clone();
    let repository = RepositoryAddress { repository: &format.repository }.base_url(&base);
    ListUrls { base, format, repository }
}

fn resources(urls: &ListUrls) -> Arc<dyn Resources> {
    Arc::new(MetadataResources(urls.clone()))
}

/// The formats of all repositories that are shown. A repository whose formats are not known yet has none, and the lists
/// of a format that was never harvested completely say so.
async fn describe_source(served: &ServedRepositories) -> Result<Response, Missing> {
    let mut formats = Vec::new();
    // Local repositories say which formats they have.
    stores(served).await?;
    for mapping in served.repositories.all().values().filter(|mapping| is_shown(mapping)) {
        let mut prefixes = mirrored_formats(&*served.store.mirror, mapping).await?;
        prefixes.sort();
        let format = |prefix| FormatAddress { repository: mapping.id().to_owned(), prefix };
        formats.extend(prefixes.into_iter().map(|prefix| urls(served, format(prefix))));
    }
    let describedby = format!("{}/", served.public_url);
    Ok(document(source_description(formats.iter(), &describedby)))
}

async fn describe_format(served: &ServedRepositories, format: &FormatAddress) -> Result<Response, Missing> {
    let urls = find_format(served, format).await?;
    let up = format!("{}{SOURCE_DESCRIPTION_PATH}", served.public_url);
    Ok(document(capability_list(&urls, &up)))
}

/// The URLs of a format that is shown.
async fn find_format(served: &ServedRepositories, format: &FormatAddress) -> Result<ListUrls, Missing> {
    // Local repositories say which formats they have.
    stores(served).await?;
    let mapping = served.repositories.find(&format.repository).filter(|mapping| is_shown(mapping));
    let mapping = mapping.ok_or(Missing::Unknown)?;
    let formats = mirrored_formats(&*served.store.mirror, &mapping).await?;
    if formats.is_empty() {
        // The first harvest has not listed the formats yet.
        return Err(Missing::List(SyncError::NeverComplete));
    }
    if !formats.contains(&format.prefix) {
        return Err(Missing::Unknown);
    }
    Ok(urls(served, format.clone()))
}

/// The stores of the mirror. Their opening is a large future, which the stack of a thread should not hold several times.
async fn stores(served: &ServedRepositories) -> Result<&ViewStores, Missing> {
    Box::pin(view_stores(served)).await.map_err(|failure| Missing::Failed(Box::new(failure)))
}

/// The records of a format as of now. All commits that become visible later have later stamps than its position.
async fn open(served: &ServedRepositories, format: &FormatAddress) -> Result<SyncedCollection, Missing> {
    let stores = stores(served).await?;
    let times = stores.stamps.begin_list(served.clock.now_secs()).await?;
    let names = (format.repository.as_str(), format.prefix.as_str());
    let store = Arc::clone(&stores.store);
    Ok(SyncedCollection::open(store, names, times.response_date_secs, Limits::default()).await?)
}

/// A list: the records themselves if they are one part, or the names of its parts.
async fn list(
    served: &ServedRepositories,
    format: &FormatAddress,
    kind: ListKind,
    headers: &HeaderMap,
) -> Result<Response, Missing> {
    let urls = find_format(served, format).await?;
    let collection = open(served, format).await?;
    collection.check_gaps(kind)?;
    let version = version_of(&collection, &urls.list(kind));
    if let Some(known) = version.as_ref().and_then(|version| not_modified(version, headers)) {
        return Ok(with_gaps(known, &collection));
    }
    let page = match list_document(served, (&collection, version.as_ref()), kind, &urls).await? {
        FoundList::Index(xml) => document(xml),
        FoundList::Records(part) => send(*part, XML).await?,
    };
    Ok(with_gaps(with_version(page, version.as_ref()), &collection))
}

/// The document of a list.
enum FoundList {
    /// The index of its parts.
    Index(Bytes),
    /// The list itself.
    Records(Box<PartStream>),
}

/// The document of a list. Requests for an index of the same version wait for the first one, which makes it for all.
async fn list_document(
    served: &ServedRepositories,
    (collection, version): (&SyncedCollection, Option<&Validators>),
    kind: ListKind,
    urls: &ListUrls,
) -> Result<FoundList, Missing> {
    let indexes = &served.sync_indexes;
    let _turn = match version {
        // A change list is almost never an index.
        Some(version) if kind != ListKind::ChangeList => Some(indexes.turn(&version.tag).await),
        _ => None,
    };
    if let Some(kept) = version.and_then(|version| indexes.find(&version.tag)) {
        return Ok(FoundList::Index(kept));
    }
    match ListDocument::of(collection, kind, urls, resources(urls)).await? {
        ListDocument::Parts(xml) => {
            let xml = Bytes::from(xml);
            if let Some(version) = version {
                indexes.keep(&version.tag, xml.clone());
            }
            Ok(FoundList::Index(xml))
        }
        ListDocument::Records(part) => Ok(FoundList::Records(part)),
    }
}

/// A part of a list.
async fn list_part(
    served: &ServedRepositories,
    format: &FormatAddress,
    (kind, part): (ListKind, Part),
    headers: &HeaderMap,
) -> Result<Response, Missing> {
    let urls = find_format(served, format).await?;
    let collection = open(served, format).await?;
    let version = version_of(&collection, &urls.part(kind, &part));
    let part = PartStream::of_part(&collection, (kind, part), &urls, resources(&urls)).await?;
    if let Some(known) = version.as_ref().and_then(|version| not_modified(version, headers)) {
        return Ok(with_gaps(known, &collection));
    }
    let page = send(part, if kind.is_dump() { ZIP } else { XML }).await?;
    Ok(with_gaps(with_version(page, version.as_ref()), &collection))
}

/// The version of a document; `None` if it has none now, because a change is about to appear in it. A harvest without changed
/// records makes no new version, and neither does its progress. Another release may write the document differently.
fn version_of(collection: &SyncedCollection, url: &str) -> Option<Validators> {
    let CollectionVersion { collection: number, next_sequence, last_stamp_secs, lost, .. } =
        collection.version()?;
    let release = env!("CARGO_PKG_VERSION");
    let numbers = format!("{release} {number} {next_sequence} {last_stamp_secs} {lost}");
    Some(Validators { tag: fingerprint([url.as_bytes(), numbers.as_bytes()]), modified_secs: None })
}

/// The response to a client that has this version.
fn not_modified(version: &Validators, headers: &HeaderMap) -> Option<Response> {
    let page = Response { status: 304, ..Response::no_content() };
    version.are_known(headers).then(|| with_version(page, Some(version)))
}

/// The tag is weak: another response of the version can have a later position, or lack a record that has changed meanwhile.
fn with_version(page: Response, version: Option<&Validators>) -> Response {
    match version {
        Some(version) => page.with("ETag", format!("W/{}", version.entity_tag())),
        None => page,
    }
}

/// Says that the mirror lacks records. Like the header of a dump, it has the number of repositories with a gap: one.
fn with_gaps(page: Response, collection: &SyncedCollection) -> Response {
    if collection.missing() > 0 { page.with("Oaimend-Gaps", "1".to_owned()) } else { page }
}

fn document(xml: impl Into<Bytes>) -> Response {
    Response::new(200, XML, xml)
        .with("Content-Security-Policy", RESPONSE_SECURITY_POLICY.to_owned())
        .compressible()
}

/// A part while it is written. A part that fails at its start is a failure; one that fails later is aborted.
async fn send(mut part: PartStream, content_type: &'static str) -> Result<Response, Missing> {
    let first = part.next_piece().await?;
    let rest = stream::try_unfold(part, async |mut part| match part.next_piece().await {
        Ok(piece) => Ok(piece.map(|piece| (piece, part))),
        Err(SyncError::Store(error)) => Err(error),
        Err(SyncError::Damaged) => Err(MirrorError::Damaged),
        Err(error) => Err(MirrorError::Stopped(error.to_string())),
    });
    let page = Response::download(content_type, stream::iter(first.map(Ok)).chain(rest).boxed());
    Ok(if content_type == XML { page.compressible() } else { page })
}
