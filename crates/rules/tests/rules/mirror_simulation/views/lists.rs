//! The lists of the simulated view.

use super::super::proxy::Page;
use super::super::source::{Items, PAGE_RECORDS, RECORDS, Record, Selection};
use super::Broken;
use super::mirror::{Mirror, REPOSITORIES};
use super::view::{Generation, Known, Opened, View};
use oaimend_oai::UnixSecs;
use oaimend_rules::{ListState, ServedSpans, member_datestamp};
use std::cmp::Reverse;

/// A position in a list: datestamp, repository, stamp, sequence and number of a record.
type Place = (UnixSecs, usize, UnixSecs, u64, usize);

/// The rest of a list, as a resumptionToken holds it.
#[derive(Clone, Debug)]
pub(super) struct Token {
    from_secs: Option<UnixSecs>,
    until_secs: UnixSecs,
    date_secs: UnixSecs,
    /// The last redefinition when the list began.
    since_secs: Option<UnixSecs>,
    after: Option<Place>,
}

/// The lists of the view, with the spans that they have served.
#[derive(Debug, Default)]
pub(super) struct Lists {
    spans: ServedSpans,
    /// Lists that began although commits were unknown.
    pub(super) lagging: usize,
    /// Requests during which the definition changed.
    pub(super) overtaken: usize,
}

impl Lists {
    /// Answers the first request of a list; `None` for a failure.
    pub(super) fn first_page(
        &mut self,
        opened: &Opened,
        selection: Selection,
        (view, mirror): (&mut View, &mut Mirror),
        our_secs: UnixSecs,
    ) -> Option<Page<Token>> {
        let widen = |from_secs| self.spans.widen_window(from_secs, selection.until_secs);
        let is_narrow = selection.continues_from_first_response;
        let from_secs = if is_narrow { selection.from_secs } else { selection.from_secs.map(widen) };
        let times = mirror.begin_list(our_secs);
        let complete_until_secs = match (view.broken, &mut view.current) {
            (Some(Broken::ListsPastTheMembers), _) => UnixSecs::MAX,
            (Some(Broken::CompleteBeforeTheList), _) => opened.followed.complete_until_secs()?,
            (broken, Some(current)) if current.number == opened.generation => {
                current.follow(mirror, broken).complete_until_secs()?
            }
            _ => UnixSecs::MAX,
        };
        self.lagging += usize::from(complete_until_secs < times.until_secs);
        let times = times.up_to(complete_until_secs);
        if opened.since_secs > Some(times.until_secs) {
            return None;
        }
        let token = Token {
            from_secs,
            until_secs: selection.until_secs.map_or(times.until_secs, |until| until.min(times.until_secs)),
            date_secs: times.response_date_secs,
            since_secs: opened.since_secs,
            after: None,
        };
        self.page(opened, token, (view, mirror), our_secs)
    }

    /// Answers a request with a token; `None` for a failure.
    pub(super) fn page(
        &mut self,
        opened: &Opened,
        token: Token,
        (view, mirror): (&View, &Mirror),
        our_secs: UnixSecs,
    ) -> Option<Page<Token>> {
        let current = view.current.as_ref().filter(|current| current.number == opened.generation);
        self.overtaken += usize::from(current.is_none());
        if current.is_none() && view.broken != Some(Broken::ReplacedMembersAreListed) {
            return None;
        }
        let Token { from_secs, until_secs, date_secs, after, .. } = token;
        self.spans.record(ListState::new(date_secs).span(until_secs, our_secs));
        let since_secs = opened.since_secs.min(token.since_secs);
        // The members of a definition that was replaced are gone.
        let rest = current.map(|current| places(current, since_secs)).unwrap_or_default();
        let is_in_list = |place: &Place| {
            from_secs.is_none_or(|from_secs| place.0 >= from_secs)
                && place.0 <= until_secs
                && Some(*place) > after
        };
        let mut rest = rest.into_iter().filter(is_in_list).peekable();
        let (mut items, mut last, mut last_stamp_secs) = (Items::new(), after, None);
        while let Some(place) = rest.next_if(|_| items.len() < PAGE_RECORDS) {
            last = Some(place);
            let Some(current) = current else { break };
            let item = Item { current, opened, since_secs, id: place.4 };
            let shown = item.best();
            let is_listed = match view.broken {
                Some(Broken::ItemsHaveTheStampOfTheirRecord) => shown == place.1,
                _ => item.latest() == (place.0, place.1),
            };
            if let (true, Some(record)) = (is_listed, item.show(shown, mirror)) {
                items.push((place.4, record));
                last_stamp_secs = last_stamp_secs.max(Some(place.0));
            }
        }
        let next = rest.peek().is_some().then_some(Token { after: last, ..token });
        Some(Page { items, date_secs, last_stamp_secs, token: next })
    }
}

/// All members in the order of lists.
fn places(current: &Generation, since_secs: Option<UnixSecs>) -> Vec<Place> {
    let mut places = Vec::new();
    for (repository, members) in current.members.iter().enumerate() {
        let known = members.iter().enumerate().filter_map(|(id, known)| Some((id, (*known)?)));
        places.extend(known.map(|(id, Known { member, sequence })| {
            let datestamp_secs = member_datestamp(member.stamp_secs, since_secs);
            (datestamp_secs, repository, member.stamp_secs, sequence, id)
        }));
    }
    places.sort();
    places
}

/// The members with one number.
struct Item<'v> {
    current: &'v Generation,
    opened: &'v Opened,
    since_secs: Option<UnixSecs>,
    id: usize,
}

impl Item<'_> {
    fn known(&self) -> impl Iterator<Item = (usize, Known)> + '_ {
        assert!(self.id < RECORDS);
        (0..REPOSITORIES).filter_map(|one| Some((one, self.current.members[one][self.id]?)))
    }

    /// The datestamp and the repository of its latest member.
    fn latest(&self) -> (UnixSecs, usize) {
        let datestamp = |(repository, known): (usize, Known)| {
            (member_datestamp(known.member.stamp_secs, self.since_secs), repository)
        };
        self.known().map(datestamp).max().expect("a member")
    }

    /// Whether the view does not show a repository, by the definition in use or by the configured one.
    fn is_withdrawn(&self, repository: usize) -> bool {
        [self.opened.settings, self.current.definition].iter().any(|one| one.sources[repository].is_none())
    }

    /// The repository whose member is shown.
    fn best(&self) -> usize {
        let rank = |&(repository, known): &(usize, Known)| {
            let is_withdrawn = self.is_withdrawn(repository);
            let priority = self.opened.settings.sources[repository];
            (!known.member.has_left && !is_withdrawn, !is_withdrawn, priority, Reverse(repository))
        };
        self.known().max_by_key(rank).expect("a member").0
    }

    /// The member as the list shows it; `None` if its record has changed since.
    fn show(&self, repository: usize, mirror: &Mirror) -> Option<Record> {
        let known = self.current.members[repository][self.id]?;
        let stored = mirror.collections[repository].stored[self.id];
        if known.member.has_left || self.is_withdrawn(repository) {
            let (version, stamp_secs) = (0, known.member.stamp_secs);
            return Some(Record { version, is_deleted: true, stamp_secs, is_in_set: false });
        }
        stored.filter(|stored| stored.sequence == known.sequence).map(|stored| stored.record)
    }
}
