//! Opens a view for a request.

use super::definition::{Definition, ViewSettings};
use super::follower::{Follower, failed};
use super::known_sets::check_known;
use super::membership::{CurrentMembers, InUse, JUDGED_MAX, Known, Shared, being_read};
use oaimend_base::clock::Clock;
use oaimend_mirror::view::{MirroredSource, Subject, SubjectRepository, ViewOptions, ViewStores};
use oaimend_repository::Failure;
use oaimend_rules::{Followed, Redefinition, Switch};
use oaimend_store::{
    Collisions, FollowedCollection, Generation, MemberQuery, MirrorError, Position, ViewMember, ViewState,
    ViewStore,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of members that one transaction takes over before a switch, or removes after it.
const PREPARED_MAX: usize = 5_000;
/// The members that are read of a collection for each one of the newest members that is returned.
const NEWEST_READ_PER_RECORD: usize = 10;

/// One of the newest members of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestMember {
    /// The repository.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
    /// The identifier.
    pub identifier: String,
    /// The stamp and the sequence of the record.
    pub position: Position,
}

/// All views of a server. Clones share them.
#[derive(Clone, Debug)]
pub struct SubjectViews {
    stores: ViewStores,
    follower: Follower,
    clock: Arc<dyn Clock>,
    /// By name.
    shared: Arc<Mutex<HashMap<String, Arc<Shared>>>>,
}

impl SubjectViews {
    /// The views over a mirror. `views` stores their members.
    pub fn new(stores: ViewStores, views: Arc<dyn ViewStore>, clock: Arc<dyn Clock>) -> Self {
        let mirror = Arc::clone(&stores.store);
        Self { stores, follower: Follower { mirror, views }, clock, shared: Arc::default() }
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
        let members = self.members(settings).await?;
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

    /// The newest members of a view, the newest first, each in one format. Those that have left are not among them.
    ///
    /// # Errors
    ///
    /// As for [`SubjectViews::open`].
    pub async fn newest(
        &self,
        settings: &ViewSettings,
        _: ViewOptions,
        count_max: usize,
    ) -> Result<Vec<NewestMember>, Failure> {
        // Judges the last commits.
        let in_use = self.members(settings).await?.in_use;
        let (views, generation) = (&self.follower.views, in_use.generation);
        let is_configured = |followed: &FollowedCollection| {
            settings.sources.iter().any(|source| source.id == followed.repository)
        };
        let mut newest = Vec::new();
        for FollowedCollection { repository, prefix, .. } in
            in_use.followed.iter().filter(|one| is_configured(one))
        {
            // Some of them may have left, or are in several formats.
            let query = MemberQuery {
                generation,
                repository: repository.clone(),
                prefix: prefix.clone(),
                newest_first: true,
                count_max: NEWEST_READ_PER_RECORD * count_max,
                ..MemberQuery::default()
            };
            let members = views.members(query).await.map_err(failed)?;
            let live = members.into_iter().filter(|member| !member.has_left);
            newest.extend(live.map(|ViewMember { identifier, position, .. }| NewestMember {
                repository: repository.clone(),
                prefix: prefix.clone(),
                identifier,
                position,
            }));
        }
        newest.sort_by(|one, other| {
            let key = |member: &NewestMember| (std::cmp::Reverse(member.position), member.prefix != "oai_dc");
            key(one).cmp(&key(other))
        });
        let mut known = BTreeSet::new();
        newest.retain(|member| known.insert(member.identifier.clone()));
        newest.truncate(count_max);
        Ok(newest)
    }

    /// The members of the generation in use for a request that begins now.
    async fn members(&self, settings: &ViewSettings) -> Result<CurrentMembers, Failure> {
        let shared = self.shared(&settings.name);
        *shared.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings.clone());
        let (in_use, _) = self.in_use(settings, &shared).await?;
        Ok(CurrentMembers { follower: self.follower.clone(), shared, in_use })
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
