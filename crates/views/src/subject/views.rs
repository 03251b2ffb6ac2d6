//! Opens a view for a request.

use super::definition::{Definition, ViewSettings};
use super::follower::{Follower, failed};
use super::known_sets::check_known;
use super::membership::{CurrentMembers, InUse, JUDGED_MAX, Known, Shared, behind, being_read};
use super::shown::{FoundMember, KnownNewest, NewestMember, ShownMembers};
use oaimend_base::clock::Clock;
use oaimend_mirror::view::{MirroredSource, Subject, SubjectRepository, ViewOptions, ViewStores};
use oaimend_repository::Failure;
use oaimend_rules::{Followed, Redefinition, Switch};
use oaimend_store::{Collisions, Generation, MirrorError, ViewState, ViewStore};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of members that one transaction takes over before a switch, or removes after it.
const PREPARED_MAX: usize = 5_000;
/// All views of a server. Clones share them.
#[derive(Clone, Debug)]
pub struct SubjectViews {
    stores: ViewStores,
    follower: Follower,
    clock: Arc<dyn Clock>,
    /// By name.
    shared: Arc<Mutex<HashMap<String, Arc<Shared>>>>,
    /// The newest members that were shown last, by name.
    newest: Arc<Mutex<HashMap<String, KnownNewest>>>,
}

impl SubjectViews {
    /// The views over a mirror. `views` stores their members.
    pub fn new(stores: ViewStores, views: Arc<dyn ViewStore>, clock: Arc<dyn Clock>) -> Self {
        let mirror = Arc::clone(&stores.store);
        let follower = Follower { mirror, views };
        Self { stores, follower, clock, shared: Arc::default(), newest: Arc::default() }
    }

    /// The repository of a view for the requests that begin now. A change of its definition is made first, if the new
    /// members are known; otherwise they are read from the mirror in the background.
    ///
    /// # Errors
    ///
    /// The members were never known completely, or they cannot be read. The request can be repeated.
    pub async fn open(
        &self,
        settings: &ViewSettings,
        options: ViewOptions,
    ) -> Result<SubjectRepository, Failure> {
        let (members, _) = self.members(settings).await?;
        let sources = sources(settings, &members.in_use);
        let subject = Subject {
            repository_name: settings.repository_name.clone(),
            description: settings.description.clone(),
            admin_emails: settings.admin_emails.clone(),
            sets: settings.sets.clone(),
            membership: Arc::new(members),
        };
        let options = ViewOptions { collisions: Collisions::Prefer, ..options };
        let name = format!("_view/{}", settings.name);
        Ok(SubjectRepository::new(name, self.stores.clone(), options, sources, subject))
    }

    /// The newest members of a view, the newest first. Of each item it is the record that the view shows if only the
    /// repositories for which `has_pages` is true had it, in the format that changed last. Those that have left are not among
    /// them.
    ///
    /// # Errors
    ///
    /// As for [`SubjectViews::open`].
    pub async fn newest(
        &self,
        settings: &ViewSettings,
        has_pages: impl Fn(&str) -> bool,
        count_max: usize,
    ) -> Result<Vec<NewestMember>, Failure> {
        let (members, _) = self.members(settings).await?;
        let sources = settings.sources.iter().filter(|source| has_pages(&source.id));
        let chosen = (sources.cloned().collect::<Vec<_>>(), count_max);
        let known = || self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&settings.name)
            && Arc::ptr_eq(&known.in_use, &members.in_use)
            && known.chosen == chosen
        {
            return Ok(known.newest.clone());
        }
        let newest = ShownMembers::new(&members, &chosen.0).newest(count_max).await?;
        let in_use = Arc::clone(&members.in_use);
        known().insert(settings.name.clone(), KnownNewest { in_use, chosen, newest: newest.clone() });
        Ok(newest)
    }

    /// The record that a view shows of an item.
    ///
    /// # Errors
    ///
    /// As for [`SubjectViews::open`], or the view has not judged the last change of the record. The request can be
    /// repeated.
    pub async fn find(&self, settings: &ViewSettings, identifier: &str) -> Result<FoundMember, Failure> {
        let (members, is_complete) = self.members(settings).await?;
        let found = ShownMembers::new(&members, &settings.sources).find(identifier).await?;
        let is_current = match &found {
            FoundMember::Live(live) => live.is_current(&*self.follower.mirror, identifier).await?,
            FoundMember::Left | FoundMember::Never => is_complete,
        };
        if is_current { Ok(found) } else { Err(behind(identifier)) }
    }

    /// The members of the generation in use for a request that begins now, and whether they follow from all commits.
    async fn members(&self, settings: &ViewSettings) -> Result<(CurrentMembers, bool), Failure> {
        let shared = self.shared(&settings.name);
        *shared.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings.clone());
        let (in_use, is_complete) = self.in_use(settings, &shared).await?;
        Ok((CurrentMembers { follower: self.follower.clone(), shared, in_use }, is_complete))
    }

    /// The generation in use, after a step of its work, and whether no work is left.
    async fn in_use(
        &self,
        settings: &ViewSettings,
        shared: &Arc<Shared>,
    ) -> Result<(Arc<InUse>, bool), Failure> {
        let mut turn = shared.turn.lock().await;
        if let Some(known) = &*turn
            && known.in_use.definition == Definition::of(settings)
            && known.is_latest(&self.follower).await?
        {
            return Ok((Arc::clone(&known.in_use), true));
        }
        let changes = self.follower.mirror.changes().await?;
        let advanced = self.advance(settings, shared, &mut turn).await;
        let state = self.follower.views.state(&settings.name).await.map_err(failed)?;
        let is_complete = match advanced {
            Ok(true) => {
                self.continue_in_background(Arc::clone(shared));
                false
            }
            Ok(false) => true,
            // The members in use still answer, if the store knows the change that they show. A list that cannot be complete
            // fails when it begins.
            Err(failure) if state.current.is_some() && is_stored(&state, settings) => {
                tracing::warn!(view = settings.name, %failure.details, "the view does not follow the mirror");
                false
            }
            Err(failure) => return Err(failure),
        };
        let Some(Generation { number: generation, definition }) = state.current else {
            return Err(being_read());
        };
        let definition = serde_json::from_str(&definition).map_err(|_| being_read())?;
        let followed = self.follower.views.followed(generation).await.map_err(failed)?;
        let (since_secs, switches) = (state.since_secs, shared.switches.load(Ordering::SeqCst));
        let in_use = Arc::new(InUse { generation, definition, since_secs, followed, switches });
        if is_complete && state.next.is_none() && state.replaced.is_empty() {
            *turn = Some(Known { changes, in_use: Arc::clone(&in_use) });
        }
        Ok((in_use, is_complete))
    }

    fn shared(&self, name: &str) -> Arc<Shared> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(shared.entry(name.to_owned()).or_default())
    }

    /// Judges some commits, and makes a change of the definition once the new members are known. Returns whether there is
    /// more to do.
    async fn advance(
        &self,
        settings: &ViewSettings,
        shared: &Shared,
        turn: &mut Option<Known>,
    ) -> Result<bool, Failure> {
        turn.take();
        let views = &self.follower.views;
        let definition = Definition::of(settings);
        let json = definition.to_json();
        let state = views.state(&settings.name).await.map_err(failed)?;
        let of_current = self.follow_current(&state).await;
        let is_replaced = matches!(of_current, Ok(Followed::Replaced));
        let is_configured = |generation: &Generation| generation.definition == json;
        let [in_use, being_read] = [&state.current, &state.next].map(|one| one.as_ref().map(is_configured));
        let next = match (Redefinition::of(in_use, being_read, is_replaced), &state.next) {
            (Redefinition::None, _) => None,
            (Redefinition::Continue, Some(next)) => Some(next.number),
            // Requests show the configured repositories at once. So the change is stored before anything can fail.
            _ => Some(views.begin_generation(&settings.name, &json).await.map_err(failed)?),
        };
        let of_current = of_current?;
        let has_replaced = !state.replaced.is_empty()
            && views.remove_replaced(&settings.name, PREPARED_MAX).await.map_err(failed)?;
        let Some(next) = next else { return Ok(has_replaced || of_current != Followed::All) };
        let known = check_known(&*self.follower.mirror, &definition).await;
        let followed = self.follower.follow(next, &definition, JUDGED_MAX).await?;
        if followed == Followed::Replaced {
            views.begin_generation(&settings.name, &json).await.map_err(failed)?;
        }
        let switch = Switch::of(followed, state.current.is_some());
        if switch != Switch::Wait {
            known?;
            let now_secs = self.clock.now_secs();
            if views.prepare_switch(&settings.name, now_secs, PREPARED_MAX).await.map_err(failed)? {
                return Ok(true);
            }
            self.switch(&settings.name, shared, switch).await?;
        }
        Ok(switch == Switch::Wait)
    }

    /// Judges some commits for the generation in use. One that cannot be read has to be replaced.
    async fn follow_current(&self, state: &ViewState) -> Result<Followed, Failure> {
        match &state.current {
            Some(Generation { number, definition })
                if let Ok(definition) = serde_json::from_str(definition) =>
            {
                self.follower.follow(*number, &definition, JUDGED_MAX).await
            }
            _ => Ok(Followed::Replaced),
        }
    }

    /// Puts the next generation into use. No harvester has seen the first one, so that its members need no stamp.
    async fn switch(&self, name: &str, shared: &Shared, switch: Switch) -> Result<(), Failure> {
        shared.switches.fetch_add(1, Ordering::SeqCst);
        if switch == Switch::First {
            return self.follower.views.switch(name, None).await.map_err(failed);
        }
        let (views, view) = (Arc::clone(&self.follower.views), name.to_owned());
        let change = move |stamp_secs| async move {
            let switched = views.switch(&view, Some(stamp_secs)).await;
            switched.map_err(|error| MirrorError::Stopped(error.to_string()))
        };
        self.stores.stamps.commit_change(self.clock.now_secs(), change).await?;
        tracing::info!(view = name, "the view has changed; its harvesters receive all its records again");
        Ok(())
    }

    /// Continues until the view knows all commits. One task for each view works at a time, with the settings of the last
    /// request.
    fn continue_in_background(&self, shared: Arc<Shared>) {
        if shared.is_continuing.swap(true, Ordering::SeqCst) {
            return;
        }
        let (views, continuing) = (self.clone(), Continuing(shared));
        tokio::spawn(async move {
            let shared = &continuing.0;
            loop {
                let latest = shared.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let Some(settings) = latest else { break };
                let mut turn = shared.turn.lock().await;
                match views.advance(&settings, shared, &mut turn).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(failure) => {
                        tracing::warn!(view = settings.name, %failure.details, "the view does not follow the mirror");
                        break;
                    }
                }
            }
        });
    }
}

/// The repositories of a generation: those that it follows, and those that only have members which have left.
fn sources(settings: &ViewSettings, in_use: &InUse) -> Vec<MirroredSource> {
    let InUse { generation, definition, since_secs, followed, .. } = in_use;
    let mut ids: BTreeSet<&str> = definition.sources.iter().map(|source| source.id.as_str()).collect();
    ids.extend(followed.iter().map(|followed| followed.repository.as_str()));
    let source = |id: &str| {
        let configured = settings.sources.iter().find(|source| source.id == id).cloned();
        // The configuration decides at once what nobody may see any more.
        let is_withdrawn = configured.is_none() || definition.sources.iter().all(|source| source.id != id);
        let known = MirroredSource { id: id.to_owned(), ..MirroredSource::default() };
        let configured = configured.unwrap_or(known);
        MirroredSource { since_secs: *since_secs, definition: *generation, is_withdrawn, ..configured }
    };
    ids.into_iter().map(source).collect()
}

/// Whether the store knows the configured definition, as the one in use or as the one that is read to replace it.
fn is_stored(state: &ViewState, settings: &ViewSettings) -> bool {
    let latest = state.next.as_ref().or(state.current.as_ref());
    latest.is_some_and(|latest| latest.definition == Definition::of(settings).to_json())
}

/// A task that continues. Its end, also by a panic, lets the next one begin.
struct Continuing(Arc<Shared>);

impl Drop for Continuing {
    fn drop(&mut self) {
        self.0.is_continuing.store(false, Ordering::SeqCst);
    }
}
