//! Where a list of a federation is: the content of its tokens.

use crate::header_editor::{PageEdits, PageItems};
use crate::settings::Member;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{UnixSecs, Verb};
use oaimend_store::{TokenKey, TokenUse};
use serde::{Deserialize, Serialize};

/// Maximum number of members that wait for the end of a list because they have failed. Beyond it the list fails.
const FAILED_MAX: usize = 50;

/// A list, and the place of its next page. The names are short, because a token contains them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FederatedList {
    #[serde(rename = "n")]
    pub(crate) federation: String,
    /// The name of the verb.
    #[serde(rename = "v")]
    verb: String,
    #[serde(rename = "p")]
    pub(crate) prefix: String,
    /// The member whose set is listed.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(crate) member: Option<String>,
    /// The set inside this member.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<String>,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(crate) from_secs: Option<UnixSecs>,
    #[serde(rename = "u")]
    pub(crate) until_secs: UnixSecs,
    /// Whether `from` and `until` are the same text, as validators send them: the window is never widened.
    #[serde(rename = "e")]
    pub(crate) is_exact: bool,
    /// The responseDate of all pages.
    #[serde(rename = "d")]
    pub(crate) date_secs: UnixSecs,
    #[serde(rename = "g")]
    has_days: bool,
    /// The next place. `None`: the members that have failed are next.
    #[serde(rename = "a")]
    at: Option<Place>,
    /// The members that have failed, and where.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Place>,
    /// The number of items before the next page.
    #[serde(rename = "c")]
    pub(crate) count: u64,
    /// The page of the last record, which is delivered again if no other one follows.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Place>,
    /// Whether all members so far lack the format.
    #[serde(rename = "z")]
    pub(crate) lacks_format: bool,
}

/// A place in a list: a member, and the token of its next page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    #[serde(rename = "j")]
    joined_secs: UnixSecs,
    #[serde(rename = "i")]
    pub(crate) id: String,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl Place {
    fn start_of(member: &Member) -> Self {
        Self { joined_secs: member.joined_secs, id: member.id.clone(), token: None }
    }

    fn order(&self) -> (UnixSecs, &str) {
        (self.joined_secs, &self.id)
    }
}

impl FederatedList {
    /// A list that begins now.
    pub(crate) fn new(federation: &str, verb: Verb, date_secs: UnixSecs, granularity: Granularity) -> Self {
        Self {
            federation: federation.to_owned(),
            verb: verb.name().to_owned(),
            prefix: String::new(),
            member: None,
            set: None,
            from_secs: None,
            until_secs: date_secs,
            is_exact: false,
            date_secs,
            has_days: granularity == Granularity::Day,
            at: Some(Place { joined_secs: UnixSecs::MIN, ..Place::default() }),
            failed: Vec::new(),
            count: 0,
            last: None,
            lacks_format: true,
        }
    }

    /// The list of a token of this federation and verb.
    pub(crate) fn read(token: &str, key: &TokenKey, federation: &str, verb: Verb) -> Option<Self> {
        let list: Self = key.unseal(TokenUse::Federation, token)?;
        (list.federation == federation && list.verb == verb.name()).then_some(list)
    }

    /// The token of its next page. Without the page of the last record if it would be too long. `None` if it is too long then too.
    pub(crate) fn to_token(&self, key: &TokenKey) -> Option<String> {
        key.seal(TokenUse::Federation, self)
            .or_else(|| key.seal(TokenUse::Federation, &Self { last: None, ..self.clone() }))
    }

    /// The verb of its requests.
    pub(crate) fn verb(&self) -> Option<Verb> {
        Verb::from_name(&self.verb)
    }

    /// Whether the federation has days as datestamps. It is that of the begin of the list.
    pub(crate) fn has_days(&self) -> bool {
        self.has_days
    }

    /// The changes of the pages of a member.
    pub(crate) fn edits(&self, member: &Member) -> PageEdits {
        PageEdits {
            set: Some(member.set()),
            granularity: if self.has_days { Granularity::Day } else { Granularity::Second },
            response_date: from_secs(self.date_secs, Granularity::Second),
            before_items: String::new(),
            items: PageItems::All,
        }
    }

    /// The places from the next one on, without those that have failed. Repositories that have left are left out.
    pub(crate) fn places(&self, members: &[Member]) -> impl Iterator<Item = Place> {
        let members = if self.at.is_some() { members } else { &[] };
        let next = self.at.as_ref().map(Place::order).unwrap_or_default();
        let is_listed = |id: &String| self.member.as_ref().is_none_or(|member| member == id);
        let following = members.iter().filter(move |member| (member.joined_secs, member.id.as_str()) >= next);
        following.filter(move |member| is_listed(&member.id)).map(move |member| {
            let place = Place::start_of(member);
            match &self.at {
                Some(at) if at.order() == place.order() => at.clone(),
                _ => place,
            }
        })
    }

    /// Leaves out members that have failed and have left the federation since.
    pub(crate) fn forget_those_that_left(&mut self, members: &[Member]) {
        self.failed.retain(|place| members.iter().any(|member| member.id == place.id));
    }

    /// The members that have failed.
    pub(crate) fn failed_places(&self, members: &[Member]) -> Vec<Place> {
        let is_member = |place: &&Place| members.iter().any(|member| member.id == place.id);
        self.failed.iter().filter(is_member).cloned().collect()
    }

    /// The place of the next page. `None`: there is none.
    pub(crate) fn next_place(&self, members: &[Member]) -> Option<Place> {
        self.places(members).next().or_else(|| self.failed_places(members).into_iter().next())
    }

    /// Whether only members that have failed are left.
    pub(crate) fn is_at_failed(&self, members: &[Member]) -> bool {
        self.places(members).next().is_none()
    }

    /// Moves on to a place: one of [`Self::places`].
    pub(crate) fn move_to(&mut self, place: Option<Place>) {
        self.at = place;
    }

    /// Sets the token of the next page of the member at the next place.
    pub(crate) fn continue_with(&mut self, members: &[Member], token: String) {
        let next = self.places(members).next();
        match next {
            Some(place) => self.at = Some(Place { token: Some(token), ..place }),
            None => {
                if let Some(place) = self.failed.first_mut() {
                    place.token = Some(token);
                }
            }
        }
    }

    /// Moves on after the member at the next place, which has no more records.
    pub(crate) fn pass(&mut self, members: &[Member]) {
        let mut places = self.places(members);
        let (passed, next) = (places.next(), places.next());
        drop(places);
        match passed {
            Some(_) => self.at = next,
            None => {
                self.at = None;
                if let Some(first) = self.failed_places(members).first() {
                    self.failed.retain(|place| place.id != first.id);
                }
            }
        }
    }

    /// Puts the first member that has failed after the others. Returns how many there are.
    pub(crate) fn rotate_failed(&mut self) -> usize {
        if !self.failed.is_empty() {
            self.failed.rotate_left(1);
        }
        self.failed.len()
    }

    /// Moves on after the member at the next place, which has failed, and asks it again after the others. Returns whether
    /// it can wait: it has not failed there before, and not too many wait.
    pub(crate) fn postpone(&mut self, members: &[Member]) -> bool {
        let mut places = self.places(members);
        let (place, next) = (places.next(), places.next());
        drop(places);
        let Some(place) = place else { return false };
        if self.failed.len() >= FAILED_MAX {
            return false;
        }
        self.failed.push(place);
        self.at = next;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: &[(&str, i64)]) -> Vec<Member> {
        let member =
            |(id, joined): &(&str, i64)| Member { id: (*id).to_owned(), joined_secs: UnixSecs(*joined) };
        ids.iter().map(member).collect()
    }

    fn next(list: &FederatedList, members: &[Member]) -> Option<(String, Option<String>)> {
        list.next_place(members).map(|place| (place.id, place.token))
    }

    #[test]
    fn a_list_goes_through_its_members_also_while_they_change() {
        let all = members(&[("b", 1), ("c", 1), ("a", 2)]);
        let mut list = FederatedList::new("_federation", Verb::ListRecords, UnixSecs(9), Granularity::Second);
        assert_eq!(next(&list, &all), Some(("b".to_owned(), None)));
        list.continue_with(&all, "t".to_owned());
        assert_eq!(next(&list, &all), Some(("b".to_owned(), Some("t".to_owned()))));
        // b leaves, and d joins.
        let changed = members(&[("c", 1), ("a", 2), ("d", 3)]);
        assert_eq!(next(&list, &changed), Some(("c".to_owned(), None)));
        // b changes, so that it joins again.
        let changed = members(&[("c", 1), ("a", 2), ("b", 4)]);
        let places: Vec<_> = list.places(&changed).map(|place| (place.id, place.token)).collect();
        assert_eq!(places, ["c", "a", "b"].map(|id| (id.to_owned(), None)));
        list.pass(&all);
        list.pass(&all);
        list.pass(&all);
        assert_eq!(next(&list, &all), None);
    }

    #[test]
    fn members_that_fail_wait_for_the_end() {
        let all = members(&[("a", 1), ("b", 1)]);
        let mut list = FederatedList::new("_federation", Verb::ListRecords, UnixSecs(9), Granularity::Second);
        list.continue_with(&all, "t".to_owned());
        assert!(list.postpone(&all));
        assert_eq!(next(&list, &all), Some(("b".to_owned(), None)));
        list.pass(&all);
        assert!(list.is_at_failed(&all));
        assert_eq!(next(&list, &all), Some(("a".to_owned(), Some("t".to_owned()))));
        assert!(!list.postpone(&all), "it has failed twice");
        list.pass(&all);
        assert_eq!(next(&list, &all), None);
    }

    #[test]
    fn members_that_have_failed_and_left_keep_no_place() {
        let all = members(&[("a", 1), ("b", 1), ("c", 1)]);
        let mut list = FederatedList::new("_federation", Verb::ListRecords, UnixSecs(9), Granularity::Second);
        assert!((0..3).all(|_| list.postpone(&all)));
        let left = members(&[("b", 1), ("c", 1)]);
        list.forget_those_that_left(&left);
        list.continue_with(&left, "t".to_owned());
        assert_eq!(next(&list, &left), Some(("b".to_owned(), Some("t".to_owned()))));
        assert_eq!(list.rotate_failed(), 2);
        list.pass(&left);
        assert_eq!(next(&list, &left), Some(("b".to_owned(), Some("t".to_owned()))));
    }

    #[test]
    fn a_token_belongs_to_its_federation_and_verb_only() {
        let key = TokenKey::new([7; 32]);
        let list = FederatedList::new("_federation", Verb::ListRecords, UnixSecs(9), Granularity::Day);
        let token = list.to_token(&key).expect("short enough");
        let read = |federation, verb| FederatedList::read(&token, &key, federation, verb);
        assert_eq!(read("_federation", Verb::ListRecords), Some(list));
        assert_eq!(read("_federation", Verb::ListIdentifiers), None);
        assert_eq!(read("_federation/maps", Verb::ListRecords), None);
    }
}
