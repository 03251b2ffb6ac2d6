//! The repository whose records a dump has.

use super::refusal::Refusal;
use crate::config::{Mapping, ServeFrom, ViewFile};
use crate::serve::oai::crosswalks::with_crosswalks;
use crate::serve::oai::mirror_views::{aggregate_view, mirror_view, subject_view, view_stores};
use crate::serve::oai::target::TargetRepository;
use crate::serve::served::ServedRepositories;
use oaimend_base::clock;
use oaimend_dumps::{DumpError, DumpFolder, Gap, GapCause, RecordKey, StoreState};
use oaimend_mirror::status::repository_status;
use oaimend_mirror::view::AggregateRepository;
use oaimend_oai::UnixSecs;
use oaimend_repository::Repository;
use oaimend_store::{Collisions, MirrorError, Prefix, RepositoryId};
use oaimend_tape::{TapeDescription, TapeFormat, TapeGap};
use siphasher::sip::SipHasher13;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

/// The repository whose records a dump has.
#[derive(Clone, Debug)]
pub(super) enum DumpSource {
    /// A mirrored or local repository.
    One(Arc<Mapping>),
    /// All of them as one.
    All,
    /// A view.
    View(Arc<ViewFile>),
}

impl DumpSource {
    /// Finds a repository: an id, `_all`, or `_view/NAME`.
    pub(super) fn find(served: &ServedRepositories, name: &str) -> Result<Self, Refusal> {
        let shown = name.escape_debug();
        if name == AggregateRepository::NAME {
            let is_served = served.mirror.policy().aggregate && served.has_mirrored();
            let unknown = || Refusal::Unknown("there is no _all here: no repository is mirrored".to_owned());
            return is_served.then_some(Self::All).ok_or_else(unknown);
        }
        if let Some(view) = name.strip_prefix("_view/") {
            let view = served.views.all().get(view).cloned();
            return view.map(Self::View).ok_or_else(|| Refusal::Unknown(format!("there is no view {shown}")));
        }
        match served.repositories.find(name) {
            Some(mapping) if mapping.mirror.is_some() => Ok(Self::One(mapping)),
            Some(_) => Err(Refusal::Unknown(format!("the repository {shown} is not mirrored"))),
            None => Err(Refusal::Unknown(format!(
                "there is no repository {shown}; expected the id of a mirrored or local one, _all or _view/NAME"
            ))),
        }
    }

    /// Opens the repository for a list that begins now.
    pub(super) async fn open(
        &self,
        served: &Arc<ServedRepositories>,
    ) -> Result<Box<dyn Repository>, DumpError> {
        let (target, opened): (_, Box<dyn Repository>) = match self {
            Self::One(mapping) => {
                let target = TargetRepository::Mapped(Arc::clone(mapping), ServeFrom::Mirror);
                (target, Box::new(mirror_view(served, mapping).await?))
            }
            Self::All => (TargetRepository::Aggregate, Box::new(aggregate_view(served).await?)),
            Self::View(view) => {
                (TargetRepository::View(Arc::clone(view)), Box::new(subject_view(served, view).await?))
            }
        };
        Ok(with_crosswalks(served, &target, opened).await?)
    }

    /// The number of the only collection that is read; `None` if several are, or if a crosswalk makes the format.
    pub(super) async fn collection(
        &self,
        served: &ServedRepositories,
        prefix: &str,
    ) -> Result<Option<u64>, MirrorError> {
        let Self::One(mapping) = self else { return Ok(None) };
        let version = served.store.mirror.version(RepositoryId(mapping.id()), Prefix(prefix)).await?;
        Ok(version.map(|version| version.collection))
    }

    /// By what a record is found that a later one replaces: views of several repositories show one record of each of them
    /// with an identifier, unless they choose one.
    pub(super) fn record_key(&self, served: &ServedRepositories) -> RecordKey {
        match self {
            Self::One(_) => RecordKey::Identifier,
            Self::All if served.mirror.policy().collisions != Collisions::KeepBoth => RecordKey::Identifier,
            Self::All | Self::View(_) => RecordKey::IdentifierAndRepository,
        }
    }

    /// A number that is another one once a record has changed. It may change more often.
    pub(super) async fn change_mark(
        &self,
        served: &ServedRepositories,
        prefix: &str,
    ) -> Result<u64, MirrorError> {
        let store = &served.store.mirror;
        if let Self::One(mapping) = self
            && let Some(version) = store.version(RepositoryId(mapping.id()), Prefix(prefix)).await?
        {
            return Ok(version.revision);
        }
        store.changes().await
    }

    /// The latest stamp of a change that is stored, in seconds since 1970; `None` before the first one.
    pub(super) async fn latest_stamp(
        &self,
        served: &ServedRepositories,
        prefix: &str,
    ) -> Result<Option<UnixSecs>, MirrorError> {
        let store = &served.store.mirror;
        if let Self::One(mapping) = self
            && let Some(version) = store.version(RepositoryId(mapping.id()), Prefix(prefix)).await?
        {
            return Ok(Some(version.last_stamp_secs));
        }
        Ok(store.stamp_marks().await?.highest_secs)
    }

    /// The records of this format that the mirror is known to lack.
    pub(super) async fn gaps(
        &self,
        served: &ServedRepositories,
        prefix: &str,
    ) -> Result<Vec<Gap>, MirrorError> {
        let mut gaps = Vec::new();
        for mapping in self.members(served) {
            if mapping.local.is_some() {
                continue;
            }
            let status = repository_status(served.store.mirror.as_ref(), mapping.id()).await?;
            let has_format = status.formats.iter().any(|format| format.prefix == prefix);
            // A crosswalk makes the format of any other one.
            let of_format = |format: &&_| is_of(format, prefix, has_format);
            let formats: Vec<_> = status.formats.iter().filter(of_format).collect();
            let mut is_complete = !formats.is_empty();
            for format in &formats {
                let (id, prefix) = (RepositoryId(mapping.id()), Prefix(&format.prefix));
                is_complete &= served.store.mirror.progress(id, prefix).await?.last_complete.is_some();
            }
            let missing = formats.iter().map(|format| format.missing).sum();
            let (repository, cause) = (mapping.id().to_owned(), GapCause::Mirror);
            match (is_complete, missing) {
                (true, 0) => {}
                (true, missing) => gaps.push(Gap { repository, records: Some(missing), cause }),
                (false, _) => gaps.push(Gap { repository, records: None, cause }),
            }
        }
        Ok(gaps)
    }

    /// What a tape says about the records.
    pub(super) async fn describe(
        &self,
        served: &ServedRepositories,
        prefix: &str,
        gaps: &[Gap],
    ) -> Result<TapeDescription, DumpError> {
        let mut formats = Vec::new();
        for mapping in self.members(served) {
            let catalog = served.store.mirror.catalog(RepositoryId(mapping.id())).await?;
            let format = catalog.formats.into_iter().find(|format| format.prefix == prefix);
            if let Some(format) = format {
                let (schema, namespace) = (format.schema, format.namespace);
                formats.push(TapeFormat { prefix: format.prefix, schema, namespace });
                break;
            }
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        let gap = |gap: &Gap| TapeGap { source: gap.repository.clone(), records: gap.records.unwrap_or(1) };
        Ok(TapeDescription {
            id: format!("urn:x-oaimend:dump:{}", hex::encode(bytes)),
            created_at: clock::utc_datetime(served.clock.now()),
            software: concat!("oaimend ", env!("CARGO_PKG_VERSION")).to_owned(),
            base_url: Some(format!("{}/{}", served.public_url, self.path())),
            formats,
            gaps: gaps.iter().map(gap).collect(),
            ..TapeDescription::default()
        })
    }

    fn path(&self) -> String {
        match self {
            Self::One(mapping) => mapping.id().to_owned(),
            Self::All => AggregateRepository::NAME.to_owned(),
            Self::View(view) => format!("_view/{}", view.name),
        }
    }

    /// The mirrored repositories whose records it has.
    fn members(&self, served: &ServedRepositories) -> Vec<Arc<Mapping>> {
        let is_chosen = |mapping: &Arc<Mapping>| match self {
            Self::One(one) => one.id() == mapping.id(),
            Self::All => true,
            Self::View(view) => {
                view.repositories.is_empty() || view.repositories.iter().any(|id| id == mapping.id())
            }
        };
        let mappings = served.repositories.all();
        let mirrored = mappings.values().filter(|mapping| mapping.mirror.is_some() && is_chosen(mapping));
        mirrored.cloned().collect()
    }
}

fn is_of(format: &oaimend_mirror::status::FormatStatus, prefix: &str, has_format: bool) -> bool {
    !has_format || format.prefix == prefix
}

/// The state of the store to which positions must belong.
pub(super) async fn store_state(served: &ServedRepositories) -> Result<StoreState, DumpError> {
    let folder: Arc<DumpFolder> = Arc::clone(&served.dumps.folder);
    let id = tokio::task::spawn_blocking(move || folder.store_id());
    let store = id.await.map_err(|error| MirrorError::Stopped(error.to_string()))??;
    let times = view_stores(served).await?.stamps.begin_list(served.clock.now_secs());
    let closed_secs = times.await?.response_date_secs;
    Ok(StoreState { store, epoch: epoch(served).await?, closed_secs })
}

/// The number of removed repositories, with what is stored and not served.
async fn epoch(served: &ServedRepositories) -> Result<u64, MirrorError> {
    let store = &served.store.mirror;
    let removals = store.removals().await?;
    let (mut hasher, mut has_unserved) = (SipHasher13::new(), false);
    for id in store.repositories().await? {
        // Names of no mapping: the index of repositories and the states of views.
        if id.starts_with('_') {
            continue;
        }
        let prefixes = match served.mirrored(&id).and_then(|mapping| mapping.mirror.clone()) {
            Some(mirror) if mirror.prefixes.is_empty() => continue,
            Some(mirror) => mirror.prefixes,
            None => Vec::new(),
        };
        for size in store.collections(RepositoryId(&id)).await? {
            if !prefixes.contains(&size.prefix) {
                has_unserved = true;
                (&id, &size.prefix).hash(&mut hasher);
            }
        }
    }
    if !has_unserved {
        return Ok(removals);
    }
    removals.hash(&mut hasher);
    Ok(hasher.finish())
}
