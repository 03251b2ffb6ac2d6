//! The mirror as its source: it answers with the datestamps, sets and identifiers of the source.
//!
//! A response shows the state of the mirror: its responseDate is the time up to which the last complete harvest has
//! all changes.

use crate::spans::Spans;
use crate::view::catalog::formats_of;
use crate::view::identify::{StoredIdentify, stored_identify};
use crate::view::presentation::{View, ViewKind};
use crate::view::sets::{KnownSets, unknown_members};
use crate::view::{MirroredSource, ViewOptions, ViewStores};
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::set_spec::is_within;
use oaimend_oai::{UnixSecs, Verb};
use oaimend_repository::lists::{DeliveredItems, ListHistories, ListHistory};
use oaimend_repository::{Failure, Reason};
use oaimend_rules::ListState;
use oaimend_store::{Duplicates, Identifier, MirrorError, Prefix, RecordStatus, TokenKey, split_suffix};
use std::sync::Arc;

/// One mirrored repository, presented as its source.
#[derive(Debug)]
pub(super) struct SourceView {
    pub(super) view: View,
    pub(super) histories: ListHistories,
    pub(super) spans: Arc<Spans>,
}

/// The facts of the source that its records depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceFacts {
    pub(super) granularity: Granularity,
    /// Whether the source lists deleted records.
    pub(super) has_tombstones: bool,
}

impl SourceView {
    pub(super) fn new(
        stores: ViewStores,
        options: ViewOptions,
        source: MirroredSource,
        histories: ListHistories,
        spans: Arc<Spans>,
    ) -> Self {
        let view = View::new(source.id.clone(), stores, options, vec![source], ViewKind::Single);
        Self { view, histories, spans }
    }

    pub(super) fn token_key(&self) -> &TokenKey {
        &self.view.stores.token_key
    }

    /// The clock, in seconds since 1970.
    pub(super) fn now_secs(&self) -> UnixSecs {
        self.view.now_secs()
    }

    /// The mirrored repository.
    ///
    /// # Errors
    ///
    /// None in practice: the view has one repository.
    pub(super) fn member(&self) -> Result<&MirroredSource, Failure> {
        self.view.members.first().ok_or_else(|| self.view.incomplete("anything", None))
    }

    pub(super) async fn stored_identify(&self) -> Result<StoredIdentify, Failure> {
        let member = self.member()?;
        let stored = stored_identify(&self.view, member).await?;
        stored.ok_or_else(|| self.view.incomplete("Identify", Some(member)))
    }

    pub(super) async fn facts(&self) -> Result<SourceFacts, Failure> {
        let identify = self.stored_identify().await?;
        let has_tombstones = identify.deleted_record.as_deref() != Some("no");
        Ok(SourceFacts { granularity: identify.granularity, has_tombstones })
    }

    /// The state of the mirror in a format, in seconds since 1970 by the clock of the source. It stops at known gaps.
    ///
    /// # Errors
    ///
    /// The format is not mirrored, was never harvested completely, or has damaged records.
    pub(super) async fn state_of(&self, prefix: &str) -> Result<UnixSecs, Failure> {
        let member = self.member()?;
        let formats = formats_of(&self.view, member).await?;
        let store = &self.view.stores.store;
        let progress = store.progress(member.repository(), Prefix(prefix)).await?;
        let is_mirrored = formats.iter().any(|format| format.prefix == prefix);
        if progress.last_complete.is_none() || !is_mirrored {
            return Err(self.view.incomplete(prefix, Some(member)));
        }
        let collections = store.collections(member.repository()).await?;
        if collections.iter().any(|collection| collection.prefix == prefix && collection.damaged > 0) {
            return Err(MirrorError::Damaged.into());
        }
        Ok(progress.state().map_or(UNKNOWN_STATE_SECS, |state| state.from_secs()))
    }

    /// The state of the mirror in its oldest format.
    pub(super) async fn state(&self) -> Result<UnixSecs, Failure> {
        let member = self.member()?;
        let mut oldest: Option<UnixSecs> = None;
        for format in formats_of(&self.view, member).await? {
            let state_secs = self.state_of(&format.prefix).await?;
            oldest = Some(oldest.map_or(state_secs, |oldest| oldest.min(state_secs)));
        }
        oldest.ok_or_else(|| self.view.incomplete("the formats", Some(member)))
    }

    /// The state that a list shows if the mirror answers.
    ///
    /// # Errors
    ///
    /// Those of [`Self::state_of`], or the mirror does not contain all records of the set, or does not know them.
    pub(super) async fn state_of_list(&self, prefix: &str, set: Option<&str>) -> Result<ListState, Failure> {
        self.check_set(set)?;
        let collection = ListState::new(self.state_of(prefix).await?);
        let Some(set) = set else { return Ok(collection) };
        let id = self.member()?.id.as_str();
        let sets = KnownSets::read(&*self.view.stores.store, id, prefix).await?;
        sets.state(set, collection).ok_or_else(|| unknown_members(id, set))
    }

    /// Checks that the mirror contains all records of a set.
    fn check_set(&self, set: Option<&str>) -> Result<(), Failure> {
        let member = self.member()?;
        let contains = |mirrored: &String| set.is_some_and(|set| is_within(set, mirrored));
        if member.sets.is_empty() || member.sets.iter().any(contains) {
            Ok(())
        } else {
            Err(self.view.incomplete(set.unwrap_or("all sets"), Some(member)))
        }
    }

    pub(super) async fn history(&self, verb: Verb, token: &str) -> Result<ListHistory, Failure> {
        let now = self.view.stores.clock.now();
        let found = self.histories.find(verb, token, now).await?;
        found.ok_or_else(|| self.unknown("the list of this resumptionToken"))
    }

    pub(super) async fn items_of(&self, history: &ListHistory) -> Result<DeliveredItems, Failure> {
        match history.delivered {
            Some(pages) => self.histories.items(pages).await,
            None => Ok(DeliveredItems::default()),
        }
    }

    /// Whether only the mirror knows an identifier: it has given it to one of several records that the source has with the
    /// same identifier.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(super) async fn is_suffixed(&self, identifier: &str) -> Result<bool, Failure> {
        let Some((base, number)) = split_suffix(identifier) else { return Ok(false) };
        let (store, member) = (&self.view.stores.store, self.member()?);
        for (prefix, status) in store.formats_of_item(member.repository(), Identifier(identifier)).await? {
            let progress = store.progress(member.repository(), Prefix(&prefix)).await?;
            let gives_suffixes =
                progress.duplicates.is_some_and(|duplicates| duplicates.policy == Duplicates::Suffix);
            if !gives_suffixes || status == RecordStatus::Deleted {
                continue;
            }
            let known = store.occurrences(member.repository(), Prefix(&prefix), &[base.to_owned()]).await?;
            if known.iter().any(|known| known.suffixed(number).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The failure of a request for an object that only the source can know.
    pub(super) fn unknown(&self, object: &str) -> Failure {
        Failure::new(
            Reason::Mirror,
            format!("the mirror does not know {object}; retry when the source is back"),
        )
    }
}

/// The state of a mirror whose first harvest met a gap that is still open: before all records. Harvesters request
/// everything again when the gap is closed.
const UNKNOWN_STATE_SECS: UnixSecs = UnixSecs(0);
