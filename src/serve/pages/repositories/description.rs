//! Describes a source from stored data: from the mirror, or from the cache and the profile. It sends no request.

use crate::config::Mapping;
use crate::serve::oai::cache::{CachedRequest, PageVariant};
use crate::serve::served::ServedRepositories;
use oaimend_mirror::harvest::{read_formats, read_sets};
use oaimend_mirror::view::identify::StoredIdentify;
use oaimend_oai::Request;
use oaimend_oai::datestamp::Granularity;
use oaimend_pages::repository::Identification;
use oaimend_store::{Catalog, Document, ListedFormat, ListedSet, MirrorError, RepositoryId};
use std::sync::Arc;

/// Longest cached page that is read, in bytes.
const CACHED_BYTES_MAX: u64 = 1 << 20;

/// The formats and sets of a source; `None` if they are not known.
pub(super) struct KnownLists {
    pub(super) formats: Option<Vec<ListedFormat>>,
    pub(super) sets: Option<Vec<ListedSet>>,
}

/// The response to Identify, if one is known.
async fn known_identify(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Result<Option<StoredIdentify>, MirrorError> {
    let document = match &mapping.mirror {
        Some(_) => {
            let document =
                served.store.mirror.document(RepositoryId(mapping.id()), Document::Identify).await?;
            document.map(|document| document.to_vec())
        }
        None => cached(served, mapping, &Request::identify()).await,
    };
    Ok(document.and_then(|document| StoredIdentify::read(&String::from_utf8_lossy(&document))))
}

/// The name of a repository, if it is known.
pub(in crate::serve::pages) async fn known_name(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Result<Option<String>, MirrorError> {
    Ok(known_identify(served, mapping).await?.and_then(|identify| identify.name()))
}

/// What a source says of itself, as far as it is known.
pub(super) async fn identification(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Result<Identification, MirrorError> {
    let dates = served.store.profiles.dates(&mapping.source.source_key());
    let detected = served.store.capabilities.detected(mapping.id(), &mapping.source.fingerprint());
    let pinned = mapping.source.quirks.version.map(|version| version.name().to_owned());
    let of_profile = Identification {
        earliest_datestamp: dates.earliest,
        granularity: dates.granularity.map(|granularity| granularity.name().to_owned()),
        version: pinned.or(detected.version),
        ..Identification::default()
    };
    Ok(match known_identify(served, mapping).await? {
        Some(identify) => Identification {
            name: identify.name(),
            admin_emails: identify.admin_emails(),
            earliest_datestamp: identify.earliest_datestamp().or(of_profile.earliest_datestamp),
            granularity: Some(Granularity::name(identify.granularity).to_owned()),
            deleted_record: identify.deleted_record,
            ..of_profile
        },
        None => of_profile,
    })
}

/// The formats and sets of a source, as far as they are known.
pub(super) async fn known_lists(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Result<KnownLists, MirrorError> {
    if mapping.mirror.is_some() {
        let Catalog { formats, sets, .. } = served.store.mirror.catalog(RepositoryId(mapping.id())).await?;
        let is_known = !formats.is_empty();
        return Ok(KnownLists { formats: is_known.then_some(formats), sets: is_known.then_some(sets) });
    }
    let sets = cached(served, mapping, &Request::list_sets()).await;
    Ok(KnownLists {
        formats: cached_formats(served, mapping).await,
        sets: sets.map(|page| read_sets(&String::from_utf8_lossy(&page))),
    })
}

/// The formats of a source that is not mirrored, if they are known.
pub(in crate::serve::pages) async fn cached_formats(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Option<Vec<ListedFormat>> {
    let page = cached(served, mapping, &Request::list_metadata_formats(None)).await?;
    Some(read_formats(&String::from_utf8_lossy(&page))).filter(|formats| !formats.is_empty())
}

/// The cached response to a request, of any age.
async fn cached(served: &ServedRepositories, mapping: &Arc<Mapping>, request: &Request) -> Option<Vec<u8>> {
    let base_url = format!("{}/{}", served.public_url, mapping.id());
    let PageVariant::Shared(variant) = served.page_variant(mapping, request).await else { return None };
    let cache = served.cache.as_ref()?;
    let page = CachedRequest { mapping, request, base_url: &base_url, variant: variant.as_deref() };
    cache.stored(&page, CACHED_BYTES_MAX).await
}
