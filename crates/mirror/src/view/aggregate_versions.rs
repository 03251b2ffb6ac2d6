//! What the view of all repositories consists of, and the stamps of its changes.
//!
//! The configuration decides which repositories the view contains and which records it shows. Its changes, and the
//! removal of a repository from the store, change the content of the view without a commit to a record. An incremental
//! harvester would miss them. So each of them counts as a commit with a stamp T, from the clock of the other stamps.
//! From then on T is the lowest datestamp of all records that the change may concern:
//!
//! | change | records |
//! |---|---|
//! | a repository is added, removed, or gets other formats or another base URL | those of the repository |
//! | the rule for collisions | all |
//! | a priority or a removal from the store, unless all records of an item are shown | all: any may have been hidden |
//!
//! It would be sound to take T for all records in all cases. But then each new repository would deliver the records of
//! all others again. A smaller set than these is not known without a search through all records.
//!
//! The records of a repository that is not mirrored any more stay in the view as deleted ones, as long as they are
//! stored. So harvesters learn of their deletion.
//!
//! Invariant: a list has a responseDate before the stamp of every change that it does not show, also after a restart.
//! The state with its stamp is stored before any response shows the change, and while the stamp is pending. A response
//! that began before is held back by [`AggregateVersion::replaced_at_secs`].

use super::options::{AggregateSettings, MirroredSource};
use crate::stamps::Stamps;
use oaimend_oai::UnixSecs;
use oaimend_store::{
    AggregateState, Collisions, MemberState, MirrorError, MirrorStore, RepositoryId, update_repository_state,
};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

/// The name of the view in tokens, and of its state in the store. No mirrored repository has it.
pub(super) const AGGREGATE_NAME: &str = "_all";

/// The versions of the view of all repositories. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct AggregateVersions {
    store: Arc<dyn MirrorStore>,
    stamps: Arc<Stamps>,
    /// The version of the last response; `None` if only the store knows it.
    latest: Arc<Mutex<Option<AggregateVersion>>>,
}

/// A version of the view of all repositories.
#[derive(Clone, Debug)]
pub(crate) struct AggregateVersion {
    state: Arc<AggregateState>,
    /// The stamp of the change that ended this version.
    replaced_at_secs: Arc<OnceLock<UnixSecs>>,
}

impl AggregateVersion {
    fn new(state: AggregateState) -> Self {
        Self { state: Arc::new(state), replaced_at_secs: Arc::default() }
    }

    /// The stamp of the change that ended this version, once there is one. It is set before any responseDate can be at
    /// or after it.
    pub(super) fn replaced_at_secs(&self) -> Option<UnixSecs> {
        self.replaced_at_secs.get().copied()
    }

    /// The repositories of the view: those of the configuration, and the withdrawn ones.
    pub(super) fn members(&self, sources: Vec<MirroredSource>) -> Vec<MirroredSource> {
        let since_secs = |id: &String| self.state.members.get(id).and_then(|member| member.since_secs);
        let current =
            sources.into_iter().map(|source| MirroredSource { since_secs: since_secs(&source.id), ..source });
        let withdrawn = self.state.members.iter().filter(|(_, member)| member.is_withdrawn);
        let withdrawn = withdrawn.map(|(id, member)| MirroredSource {
            id: id.clone(),
            since_secs: member.since_secs,
            is_withdrawn: true,
            ..MirroredSource::default()
        });
        current.chain(withdrawn).collect()
    }
}

impl AggregateVersions {
    /// The versions in a store. `stamps` are those of this store.
    pub(super) fn new(store: Arc<dyn MirrorStore>, stamps: Arc<Stamps>) -> Self {
        Self { store, stamps, latest: Arc::default() }
    }

    /// The settings and the version of a response that begins now. A change since the last response is stored first.
    ///
    /// `read_settings` is called while no other response determines its version, so older settings never replace newer
    /// ones.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or a change cannot be stored. No response may show it then.
    pub(super) async fn begin_response(
        &self,
        now_secs: UnixSecs,
        read_settings: impl FnOnce() -> AggregateSettings,
    ) -> Result<(AggregateSettings, AggregateVersion), MirrorError> {
        let mut latest = Arc::clone(&self.latest).lock_owned().await;
        let settings = read_settings();
        let removals = self.store.removals().await?;
        let known = match latest.take() {
            Some(known) => Some(known),
            None => self
                .store
                .repository_state(RepositoryId(AGGREGATE_NAME))
                .await?
                .aggregate
                .map(AggregateVersion::new),
        };
        if let Some(known) = &known
            && !Change::new(Some(&known.state), &settings, removals, |_| true).changes(&known.state)
        {
            *latest = Some(known.clone());
            return Ok((settings, known.clone()));
        }
        let stored = self.store.repositories().await?;
        let is_stored = |id: &str| stored.iter().any(|stored| stored == id);
        let before = known.as_ref().map(|known| &*known.state);
        let Change { mut state, stamped } = Change::new(before, &settings, removals, is_stored);
        let store = Arc::clone(&self.store);
        if stamped.is_empty() {
            save(&*store, &state).await?;
            // A later change ends the older version too.
            let replaced_at_secs = known.map(|known| known.replaced_at_secs).unwrap_or_default();
            let version = AggregateVersion { state: Arc::new(state), replaced_at_secs };
            *latest = Some(version.clone());
            return Ok((settings, version));
        }
        let change = move |stamp_secs: UnixSecs| async move {
            if let Some(known) = known {
                // A failed attempt may have set an earlier stamp, which is safe; ignore.
                let _ = known.replaced_at_secs.set(stamp_secs);
            }
            for id in &stamped {
                if let Some(member) = state.members.get_mut(id) {
                    member.since_secs = Some(stamp_secs);
                }
            }
            save(&*store, &state).await?;
            tracing::info!(
                repositories = stamped.len(),
                "the configuration of /_all has changed; its harvesters receive the records of these \
                 repositories again"
            );
            let version = AggregateVersion::new(state);
            *latest = Some(version.clone());
            Ok(version)
        };
        let version = self.stamps.commit_change(now_secs, change).await?;
        Ok((settings, version))
    }
}

async fn save(store: &dyn MirrorStore, state: &AggregateState) -> Result<(), MirrorError> {
    update_repository_state(store, RepositoryId(AGGREGATE_NAME), |stored| {
        stored.aggregate = Some(state.clone())
    })
    .await
}

/// A change of the view.
#[derive(Debug)]
struct Change {
    /// The state after it. The stamped repositories have their old stamp.
    state: AggregateState,
    /// The repositories whose records it may concern.
    stamped: Vec<String>,
}

impl Change {
    /// The change from a state to these settings. Without a state, no harvester has seen the view, and no record needs a
    /// stamp.
    fn new(
        before: Option<&AggregateState>,
        settings: &AggregateSettings,
        removals: u64,
        is_stored: impl Fn(&str) -> bool,
    ) -> Self {
        let (mut members, mut stamped) = (BTreeMap::new(), Vec::new());
        let known = before.map(|before| &before.members);
        for source in &settings.sources {
            let known = known.and_then(|members| members.get(&source.id));
            let member = MemberState {
                is_withdrawn: false,
                prefixes: source.prefixes.iter().cloned().collect(),
                provenance_base_url: source.provenance_base_url.clone(),
                priority: source.priority,
                since_secs: known.and_then(|known| known.since_secs),
            };
            let shows_the_same =
                |known: &MemberState| member == MemberState { priority: member.priority, ..known.clone() };
            if before.is_some() && !known.is_some_and(shows_the_same) {
                stamped.push(source.id.clone());
            }
            members.insert(source.id.clone(), member);
        }
        for (id, known) in known.into_iter().flatten() {
            if members.contains_key(id) || !is_stored(id) {
                continue;
            }
            if !known.is_withdrawn {
                stamped.push(id.clone());
            }
            members.insert(id.clone(), MemberState { is_withdrawn: true, ..known.clone() });
        }
        let state = AggregateState { collisions: settings.options.collisions, removals, members };
        if before.is_some_and(|before| may_concern_all(before, &state)) {
            stamped = state.members.keys().cloned().collect();
        }
        Self { state, stamped }
    }

    /// Whether there is anything to store.
    fn changes(&self, before: &AggregateState) -> bool {
        !self.stamped.is_empty() || self.state != *before
    }
}

/// Whether a change may show another record of an item that only other repositories have.
fn may_concern_all(before: &AggregateState, after: &AggregateState) -> bool {
    let has_other_priority = |(id, member): (&String, &MemberState)| {
        before.members.get(id).is_some_and(|known| known.priority != member.priority)
    };
    before.collisions != after.collisions
        || after.collisions != Collisions::KeepBoth
            && (before.removals != after.removals || after.members.iter().any(has_other_priority))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::options::ViewOptions;

    fn settings(collisions: Collisions, sources: &[(&str, u64)]) -> AggregateSettings {
        let of = |(id, priority): &(&str, u64)| MirroredSource {
            id: (*id).to_owned(),
            priority: *priority,
            ..MirroredSource::default()
        };
        let options = ViewOptions { collisions, ..ViewOptions::default() };
        AggregateSettings {
            options,
            sources: sources.iter().map(of).collect(),
            ..AggregateSettings::default()
        }
    }

    /// The repositories that a change from the first settings to the second ones stamps.
    fn stamped(before: &AggregateSettings, after: &AggregateSettings, removals: u64) -> Vec<String> {
        let before = Change::new(None, before, 0, |_| true);
        assert_eq!(before.stamped, [""; 0]);
        Change::new(Some(&before.state), after, removals, |id| id != "unstored").stamped
    }

    use Collisions::{ClosestToOrigin, KeepBoth, Newest, Prefer};

    #[test]
    fn a_change_of_a_repository_stamps_this_repository() {
        for collisions in [KeepBoth, Prefer, Newest, ClosestToOrigin] {
            let before = settings(collisions, &[("x", 0), ("y", 0)]);
            assert_eq!(stamped(&before, &before, 0), [""; 0]);
            let more = settings(collisions, &[("x", 0), ("y", 0), ("z", 0)]);
            assert_eq!(stamped(&before, &more, 0), ["z"]);
            assert_eq!(stamped(&more, &before, 0), ["z"]);
            let mut changed = settings(collisions, &[("x", 0), ("y", 0)]);
            changed.sources[0].prefixes = vec!["oai_dc".to_owned()];
            assert_eq!(stamped(&before, &changed, 0), ["x"]);
            let mut changed = settings(collisions, &[("x", 0), ("y", 0)]);
            changed.sources[1].provenance_base_url = Some("http://y.example/".to_owned());
            assert_eq!(stamped(&before, &changed, 0), ["y"]);
        }
    }

    #[test]
    fn a_change_of_the_shown_records_stamps_all_repositories() {
        let before = settings(KeepBoth, &[("x", 1), ("y", 0)]);
        let other = settings(KeepBoth, &[("x", 2), ("y", 0)]);
        assert_eq!(stamped(&before, &other, 1), [""; 0], "each record is shown");
        for collisions in [Prefer, Newest, ClosestToOrigin] {
            let preferring = settings(collisions, &[("x", 1), ("y", 0)]);
            assert_eq!(stamped(&before, &preferring, 0), ["x", "y"]);
            assert_eq!(stamped(&preferring, &before, 0), ["x", "y"]);
            assert_eq!(stamped(&preferring, &preferring, 1), ["x", "y"]);
            assert_eq!(stamped(&preferring, &settings(collisions, &[("x", 2), ("y", 0)]), 0), ["x", "y"]);
        }
    }

    #[test]
    fn a_withdrawn_repository_stays_until_it_is_forgotten() {
        let one = settings(KeepBoth, &[("x", 0)]);
        let both = settings(KeepBoth, &[("unstored", 0), ("x", 0), ("y", 0)]);
        let first = Change::new(None, &both, 0, |_| true);
        let withdrawn = Change::new(Some(&first.state), &one, 0, |id| id != "unstored");
        assert_eq!(withdrawn.stamped, ["y"]);
        let members: Vec<(&str, bool)> =
            withdrawn.state.members.iter().map(|(id, member)| (id.as_str(), member.is_withdrawn)).collect();
        assert_eq!(members, [("x", false), ("y", true)]);
        let again = Change::new(Some(&withdrawn.state), &one, 0, |_| true);
        assert!(!again.changes(&withdrawn.state), "{again:?}");
        let back = Change::new(Some(&withdrawn.state), &both, 0, |_| true);
        assert_eq!(back.stamped, ["unstored", "y"]);
        let forgotten = Change::new(Some(&withdrawn.state), &one, 1, |id| id == "x");
        assert_eq!((forgotten.stamped.len(), forgotten.state.members.len()), (0, 1));
    }
}
