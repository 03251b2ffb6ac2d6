//! The collection whose records the lists and sitemaps of a repository contain.

use crate::config::Mapping;
use oaimend_mirror::view::identify::StoredIdentify;
use oaimend_oai::datestamp::Granularity;
use oaimend_record::richest_first;
use oaimend_store::{
    CollectionVersion, Document, ListFilter, ListedFormat, MirrorError, MirrorStore, Prefix, RepositoryId,
};
use std::collections::BTreeMap;

/// The format in which the protocol demands every item.
pub(crate) const COMMON_FORMAT: &str = "oai_dc";

/// A collection that was harvested completely at least once.
#[derive(Clone, Debug)]
pub(in crate::serve::pages) struct ListedCollection {
    pub(in crate::serve::pages) repository: String,
    /// The metadataPrefix.
    pub(in crate::serve::pages) prefix: String,
    pub(super) version: CollectionVersion,
}

impl ListedCollection {
    /// Finds the collection of a repository: its records in `oai_dc`, because richer formats may lack items, or in the
    /// richest format if that one is not mirrored. `None` if no format was harvested completely.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(super) async fn find(
        store: &dyn MirrorStore,
        mapping: &Mapping,
    ) -> Result<Option<Self>, MirrorError> {
        let mut prefixes = served_formats(store, mapping).await?;
        prefixes.sort_by_key(|prefix| prefix != COMMON_FORMAT);
        for prefix in prefixes {
            if let Some(version) = store.version(RepositoryId(mapping.id()), Prefix(&prefix)).await? {
                return Ok(Some(Self { repository: mapping.id().to_owned(), prefix, version }));
            }
        }
        Ok(None)
    }

    /// Its records that are not deleted.
    pub(in crate::serve::pages) fn live(&self) -> ListFilter {
        ListFilter {
            repository: self.repository.clone(),
            prefix: self.prefix.clone(),
            live_only: true,
            ..ListFilter::default()
        }
    }

    /// Changes with each change of a record.
    pub(super) fn state(&self) -> (&str, u64, u64) {
        (&self.prefix, self.version.collection, self.version.next_sequence)
    }
}

/// The formats of a repository that are mirrored, the richest one first.
pub(crate) async fn mirrored_formats(
    store: &dyn MirrorStore,
    mapping: &Mapping,
) -> Result<Vec<String>, MirrorError> {
    let prefixes = mapping.mirror.as_ref().map_or(&[][..], |mirror| mirror.prefixes.as_slice());
    let listed = store.catalog(RepositoryId(mapping.id())).await?.formats;
    let is_mirrored = |format: &&ListedFormat| prefixes.is_empty() || prefixes.contains(&format.prefix);
    let mirrored = listed.iter().filter(is_mirrored);
    Ok(richest_first(mirrored.map(|format| (format.prefix.as_str(), format.namespace.as_str()))))
}

/// Those of [`mirrored_formats`] that were harvested completely at least once, so that the mirror serves them.
pub(in crate::serve::pages) async fn served_formats(
    store: &dyn MirrorStore,
    mapping: &Mapping,
) -> Result<Vec<String>, MirrorError> {
    let mut served = Vec::new();
    for prefix in mirrored_formats(store, mapping).await? {
        if is_complete(store, mapping.id(), &prefix).await? {
            served.push(prefix);
        }
    }
    Ok(served)
}

/// Whether a format was harvested completely at least once.
async fn is_complete(store: &dyn MirrorStore, repository: &str, prefix: &str) -> Result<bool, MirrorError> {
    Ok(store.progress(RepositoryId(repository), Prefix(prefix)).await?.last_complete.is_some())
}

/// The formats of repositories that the mirror serves. Each repository is read once.
#[derive(Debug, Default)]
pub(crate) struct ServedFormats(BTreeMap<String, Vec<String>>);

impl ServedFormats {
    /// The [`served_formats`] of a repository. The index may contain others.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) async fn of(
        &mut self,
        store: &dyn MirrorStore,
        mapping: &Mapping,
    ) -> Result<&[String], MirrorError> {
        let formats = match self.0.remove(mapping.id()) {
            Some(known) => known,
            None => served_formats(store, mapping).await?,
        };
        Ok(self.0.entry(mapping.id().to_owned()).or_insert(formats))
    }
}

/// The names of the sets of a repository by their setSpecs: the sets that its source lists, and those that its records
/// name.
pub(in crate::serve::pages) async fn set_names(
    store: &dyn MirrorStore,
    repository: &str,
) -> Result<BTreeMap<String, String>, MirrorError> {
    let used = store.sets_in_use(RepositoryId(repository)).await?;
    let used = used.into_iter().map(|set_spec| (set_spec.clone(), set_spec));
    let listed = store.catalog(RepositoryId(repository)).await?.sets.into_iter();
    // The name that the source lists replaces the setSpec.
    Ok(used.chain(listed.map(|set| (set.set_spec, set.name))).collect())
}

/// What a source says of itself.
pub(in crate::serve::pages) struct SourceFacts {
    pub(in crate::serve::pages) name: String,
    pub(super) granularity: Granularity,
}

impl SourceFacts {
    /// What the source of a repository says of itself, as far as it is known.
    pub(in crate::serve::pages) async fn read(store: &dyn MirrorStore, repository: &str) -> Self {
        // Without the document the page has the id in place of the name.
        let document = store.document(RepositoryId(repository), Document::Identify).await.unwrap_or_default();
        let identify =
            document.and_then(|document| StoredIdentify::read(&String::from_utf8_lossy(&document)));
        let name = identify.as_ref().and_then(StoredIdentify::name);
        Self {
            name: name.unwrap_or_else(|| repository.to_owned()),
            granularity: identify.map_or(Granularity::Second, |identify| identify.granularity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_mirror::settings::MirrorSettings;
    use oaimend_oai::UnixSecs;
    use oaimend_store::{Catalog, CompleteHarvest, HarvestProgress, PageCommit};
    use oaimend_upstream::settings::Limits;

    #[tokio::test]
    async fn the_mirror_serves_mirrored_formats_after_a_complete_harvest() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = oaimend_store_local::open(folder.path()).expect("a data folder").mirror;
        let format = |prefix: &str| ListedFormat {
            prefix: prefix.to_owned(),
            schema: String::new(),
            namespace: String::new(),
        };
        let formats = ["oai_dc", "begun", "former"].map(format).into();
        let catalog = Catalog { formats, ..Catalog::default() };
        store.save_catalog(RepositoryId("x"), catalog).await.expect("stored");
        for (prefix, is_complete) in [("oai_dc", true), ("begun", false), ("former", true)] {
            let complete = CompleteHarvest { from_secs: UnixSecs(1), lead_secs: 0 };
            let last_complete = if is_complete { Some(complete) } else { None };
            let progress = HarvestProgress { last_complete, ..HarvestProgress::default() };
            let (repository, prefix) = ("x".to_owned(), prefix.to_owned());
            let page = PageCommit { repository, prefix, progress, ..PageCommit::default() };
            store.commit(page).await.expect("stored");
        }
        let mut mapping = Mapping::new("x", "http://source.example/oai", &Limits::default()).expect("legal");
        let prefixes = ["oai_dc", "begun"].map(str::to_owned).into();
        mapping.mirror = Some(MirrorSettings { prefixes, ..MirrorSettings::default() });
        let mut served = ServedFormats::default();
        for _ in 0..2 {
            assert_eq!(served.of(&*store, &mapping).await.expect("readable"), ["oai_dc"]);
        }
    }
}
