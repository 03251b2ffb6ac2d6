//! What pages show of a view: its newest records, and the record of an item.

use super::follower::failed;
use super::membership::{CurrentMembers, InUse};
use oaimend_mirror::view::MirroredSource;
use oaimend_repository::Failure;
use oaimend_store::{
    FollowedCollection, MemberQuery, MirrorStore, Position, Prefix, RepositoryId, ViewMember,
};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Maximum number of members of a collection that are read at once.
const READ_MAX: usize = 1_000;
/// Maximum number of members of a collection that are examined for the newest ones. If more of them have left, or are shown
/// by another repository, older ones are not found.
const EXAMINED_MAX: usize = 20_000;

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

/// The newest members that pages have shown last.
#[derive(Debug)]
pub(super) struct KnownNewest {
    pub(super) in_use: Arc<InUse>,
    /// The repositories that were shown, and the maximum number of members.
    pub(super) chosen: (Vec<MirroredSource>, usize),
    pub(super) newest: Vec<NewestMember>,
}

/// What a view has of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundMember {
    /// It shows the record of this repository.
    Live(LiveMember),
    /// All its records have left.
    Left,
    /// It never was in the view.
    Never,
}

/// The repository whose record a view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveMember {
    /// The repository.
    pub repository: String,
    /// The metadataPrefixes in which it is a member, each with its position in the mirror.
    pub formats: Vec<(String, Position)>,
}

impl LiveMember {
    /// Whether the mirror has no later version of the record.
    pub(super) async fn is_current(
        &self,
        mirror: &dyn MirrorStore,
        identifier: &str,
    ) -> Result<bool, Failure> {
        let identifiers = [identifier.to_owned()];
        for (prefix, position) in &self.formats {
            let headers =
                mirror.headers(RepositoryId(&self.repository), Prefix(prefix), &identifiers).await?;
            // A damaged record has no header. The page that reads it reports the damage.
            if headers.into_iter().flatten().any(|header| header.sequence != position.sequence) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The members of a view that pages show.
pub(super) struct ShownMembers<'m> {
    members: &'m CurrentMembers,
    /// The repositories, the one whose records are preferred first, each with the formats that have members.
    sources: Vec<(&'m MirroredSource, Vec<&'m str>)>,
}

impl<'m> ShownMembers<'m> {
    /// Those of these repositories.
    pub(super) fn new(
        members: &'m CurrentMembers,
        sources: impl IntoIterator<Item = &'m MirroredSource>,
    ) -> Self {
        let formats = |source: &'m MirroredSource| {
            let is_mirrored = |prefix: &str| {
                source.prefixes.is_empty() || source.prefixes.iter().any(|mirrored| mirrored == prefix)
            };
            let of_source = |followed: &&FollowedCollection| {
                followed.repository == source.id && is_mirrored(&followed.prefix)
            };
            let followed = members.in_use.followed.iter().filter(of_source);
            (source, followed.map(|followed| followed.prefix.as_str()).collect())
        };
        let mut sources: Vec<_> = sources.into_iter().map(formats).collect();
        sources.sort_by_key(|(source, _)| (Reverse(source.priority), &source.id));
        Self { members, sources }
    }

    /// The newest ones, at most `count_max`.
    pub(super) async fn newest(&self, count_max: usize) -> Result<Vec<NewestMember>, Failure> {
        let collection = |(source, formats): &(&'m MirroredSource, Vec<&'m str>)| {
            let repository = source.id.as_str();
            formats.iter().map(|prefix| Newest::new(repository, prefix, count_max)).collect::<Vec<_>>()
        };
        let mut collections: Vec<Newest<'_>> = self.sources.iter().flat_map(collection).collect();
        let (mut newest, mut known, mut next_max) = (Vec::new(), BTreeSet::new(), count_max);
        while newest.len() < count_max {
            let mut next = Vec::new();
            while next.len() < next_max
                && let Some(member) = self.next(&mut collections).await?
            {
                next.push(member);
            }
            if next.is_empty() {
                break;
            }
            let identifiers: Vec<String> = next.iter().map(|member| member.identifier.clone()).collect();
            for (member, live) in next.into_iter().zip(self.live(&identifiers).await?) {
                let is_shown = live.is_some_and(|live| live.repository == member.repository);
                if is_shown && newest.len() < count_max && known.insert(member.identifier.clone()) {
                    newest.push(member);
                }
            }
            // Another repository may show many of them.
            next_max = (next_max * 2).min(READ_MAX);
        }
        Ok(newest)
    }

    /// The newest live member of several collections. It is taken out.
    async fn next(&self, collections: &mut [Newest<'m>]) -> Result<Option<NewestMember>, Failure> {
        for collection in &mut *collections {
            collection.fill(self.members).await?;
        }
        // Of one record in several formats, the most common one is shown.
        let rank = |collection: &Newest<'m>| {
            collection.read.front().map(|member| (member.position, collection.prefix == "oai_dc"))
        };
        let newest = collections.iter_mut().max_by_key(|collection| rank(collection));
        Ok(newest.and_then(|newest| {
            let ViewMember { identifier, position, .. } = newest.read.pop_front()?;
            let (repository, prefix) = (newest.repository.to_owned(), newest.prefix.to_owned());
            Some(NewestMember { repository, prefix, identifier, position })
        }))
    }

    /// What the view has of an item.
    pub(super) async fn find(&self, identifier: &str) -> Result<FoundMember, Failure> {
        let identifiers = [identifier.to_owned()];
        if let Some(live) = self.live(&identifiers).await?.pop().flatten() {
            return Ok(FoundMember::Live(live));
        }
        // A repository that is not shown any more may have had it.
        for FollowedCollection { repository, prefix, .. } in &self.members.in_use.followed {
            if self.members_of(repository, prefix, &identifiers).await?.iter().any(Option::is_some) {
                return Ok(FoundMember::Left);
            }
        }
        Ok(FoundMember::Never)
    }

    /// The repositories that show the items with these identifiers, in their order; `None` for one without a live record.
    async fn live(&self, identifiers: &[String]) -> Result<Vec<Option<LiveMember>>, Failure> {
        let mut shown: Vec<Option<LiveMember>> = vec![None; identifiers.len()];
        for (source, formats) in &self.sources {
            for prefix in formats {
                let found = self.members_of(&source.id, prefix, identifiers).await?;
                for (shown, member) in shown.iter_mut().zip(found) {
                    let Some(member) = member.filter(|member| !member.has_left) else { continue };
                    let new = || LiveMember { repository: source.id.clone(), formats: Vec::new() };
                    let shown = shown.get_or_insert_with(new);
                    if shown.repository == source.id {
                        shown.formats.push(((*prefix).to_owned(), member.position));
                    }
                }
            }
        }
        Ok(shown)
    }

    async fn members_of(
        &self,
        repository: &str,
        prefix: &str,
        identifiers: &[String],
    ) -> Result<Vec<Option<ViewMember>>, Failure> {
        let CurrentMembers { follower, in_use, .. } = self.members;
        let (repository, prefix) = (RepositoryId(repository), Prefix(prefix));
        let found = follower.views.find(in_use.generation, repository, prefix, identifiers).await;
        self.members.if_in_use(found.map_err(failed)?)
    }
}

/// The live members of a collection, the newest first.
struct Newest<'m> {
    repository: &'m str,
    prefix: &'m str,
    read: VecDeque<ViewMember>,
    after: Option<Position>,
    is_at_end: bool,
    examined: usize,
    /// Number of members that are read next. It doubles with each read.
    count_max: usize,
}

impl<'m> Newest<'m> {
    fn new(repository: &'m str, prefix: &'m str, count_max: usize) -> Self {
        let count_max = count_max.clamp(1, READ_MAX);
        let read = VecDeque::new();
        Self { repository, prefix, read, after: None, is_at_end: false, examined: 0, count_max }
    }

    /// Reads on to the next live member, unless it is read already. Many members before it may have left.
    async fn fill(&mut self, members: &CurrentMembers) -> Result<(), Failure> {
        while self.read.is_empty() && !self.is_at_end {
            let query = MemberQuery {
                generation: members.in_use.generation,
                repository: self.repository.to_owned(),
                prefix: self.prefix.to_owned(),
                after: self.after,
                newest_first: true,
                count_max: self.count_max,
                ..MemberQuery::default()
            };
            let read = members.follower.views.members(query).await.map_err(failed)?;
            let read = members.if_in_use(read)?;
            self.examined += read.len();
            self.is_at_end = read.len() < self.count_max || self.examined >= EXAMINED_MAX;
            self.after = read.last().map(|last| last.position).or(self.after);
            self.read.extend(read.into_iter().filter(|member| !member.has_left));
            self.count_max = (self.count_max * 2).min(READ_MAX);
        }
        Ok(())
    }
}
