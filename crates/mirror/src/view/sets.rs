//! The sets of a view.

use super::catalog::only_member;
use super::identify::stored_identify;
use super::list_token::{SetList, TokenContent};
use super::part::Part;
use super::presentation::{View, ViewKind, set_name};
use super::response::{Answer, Page};
use oaimend_oai::{Argument, ErrorCode, Request, UnixSecs, Verb, escape};
use oaimend_repository::{Failure, Reason};
use oaimend_rules::{KnownMembers, ListState, SetFacts};
use oaimend_store::{MirrorError, MirrorStore, RepositoryId, SetMembers};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The sets of a view with their names: the sets that the sources list, and those that their records name.
///
/// # Errors
///
/// The only repository of the view was never harvested.
pub(crate) async fn sets(view: &View) -> Result<BTreeMap<String, String>, Failure> {
    let mut sets = BTreeMap::new();
    for member in &view.members {
        let catalog = view.stores.store.catalog(member.repository()).await?;
        if catalog.formats.is_empty() {
            match only_member(view) {
                Some(member) => return Err(view.incomplete("the sets", Some(member))),
                None => continue,
            }
        }
        let used = view.stores.store.sets_in_use(member.repository()).await?;
        let used = used.into_iter().map(|set_spec| (set_spec.clone(), set_spec));
        let listed = catalog.sets.into_iter().map(|set| (set.set_spec, set.name));
        // The name that the source lists replaces the setSpec.
        let found = used.chain(listed);
        match view.kind {
            ViewKind::Single => sets.extend(found),
            ViewKind::Aggregate { .. } | ViewKind::Subject(_) => {
                let id = set_name(&member.id);
                sets.extend(found.map(|(set_spec, name)| (format!("{id}:{set_spec}"), name)));
                let identify = stored_identify(view, member).await?;
                let name = identify.and_then(|identify| identify.name());
                sets.insert(id, name.unwrap_or_else(|| member.id.clone()));
            }
        }
    }
    if let ViewKind::Subject(subject) = &view.kind {
        sets.retain(|set, _| subject.shows_set(set));
    }
    Ok(sets)
}

/// The known members of the sets of a repository, in one format.
pub struct KnownSets {
    headers_name_sets: bool,
    members: SetMembers,
}

impl KnownSets {
    /// Reads them from the store.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn read(store: &dyn MirrorStore, repository: &str, prefix: &str) -> Result<Self, MirrorError> {
        let mut catalog = store.catalog(RepositoryId(repository)).await?;
        Ok(Self {
            headers_name_sets: catalog.headers_are_whole
                || !store.sets_in_use(RepositoryId(repository)).await?.is_empty(),
            members: catalog.set_members.remove(prefix).unwrap_or_default(),
        })
    }

    /// The state that a list of a set shows if the mirror answers; `None` if the mirror does not know all members of
    /// the set. `collection` is the state of the mirror in this format.
    pub(crate) fn state(&self, set: &str, collection: ListState) -> Option<ListState> {
        let SetMembers { known, unrequested, unknown, outdated, .. } = &self.members;
        let members = match known.get(set) {
            _ if [unrequested, unknown, outdated].iter().any(|sets| sets.contains(set)) => {
                KnownMembers::NotAll
            }
            Some(reached) => KnownMembers::All(ListState::new(reached.from_secs)),
            None => KnownMembers::NotRequested,
        };
        SetFacts { headers_name_sets: self.headers_name_sets, members }.state(collection)
    }

    /// Checks that all members of a set are known.
    ///
    /// # Errors
    ///
    /// They are not: a list of the set could omit some of them.
    pub fn check(&self, repository: &str, set: &str) -> Result<(), Failure> {
        match self.state(set, ListState::new(UnixSecs::MAX)) {
            Some(_) => Ok(()),
            None => Err(unknown_members(repository, set)),
        }
    }
}

/// Checks that the members of the sets in a list are known.
///
/// # Errors
///
/// They are not, or the store cannot be read.
pub(super) async fn check_members(view: &View, parts: &[Part<'_>], prefix: &str) -> Result<(), Failure> {
    for part in parts {
        let id = part.member.id.as_str();
        if let Some(set) = part.set {
            KnownSets::read(&*view.stores.store, id, prefix).await?.check(id, set)?;
        }
    }
    Ok(())
}

/// The failure of a request for a set whose members the mirror does not know.
pub(crate) fn unknown_members(id: &str, set: &str) -> Failure {
    let details = format!(
        "the mirror does not know which records of \"{id}\" are in the set {set}, because their headers do not name it; \
         set set_membership = \"harvest\" in the [mirror] table of its mapping and run oaimend mirror sync {id}"
    );
    Failure::new(Reason::MirrorIncomplete, details)
}

/// Answers `ListSets`.
pub(crate) async fn list_sets(view: &View, request: &Request) -> Result<Answer, Failure> {
    let list = match read_set_list(view, request) {
        Ok(list) => list,
        Err((code, text)) => return Ok(Answer::error(view.now_secs(), code, text)),
    };
    let sets = sets(view).await?;
    if sets.is_empty() {
        let text = "this repository has no sets";
        return Ok(Answer::error(list.date, ErrorCode::NoSetHierarchy, text));
    }
    let start = list.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = sets.range::<String, _>((start, Bound::Unbounded));
    let (mut xml, mut items, mut last) = (String::new(), 0, None);
    for (set_spec, name) in rest.by_ref().take(view.options.page_sets_max.max(1)) {
        write_set(set_spec, name, &mut xml);
        items += 1;
        last = Some(set_spec.clone());
    }
    let mut page = Page { items, progress: (Some(list.count), Some(sets.len() as u64)), ..Page::default() };
    if rest.next().is_some() {
        let next = SetList { count: list.count + items, after: last, ..list.clone() };
        let token = TokenContent::Sets(next).write(&view.stores.token_key);
        page.token = Some(token.ok_or_else(|| Failure::new(Reason::Mirror, TOKEN_TOO_LONG))?);
    }
    if list.after.is_some() || page.token.is_some() {
        write_token(&mut page, None);
    }
    page.xml = xml.into();
    Ok(Answer::page(list.date, page))
}

/// The list of sets that a request begins or continues.
///
/// # Errors
///
/// The code and the text of the error: the token is none of this list.
pub(super) fn read_set_list(view: &View, request: &Request) -> Result<SetList, (ErrorCode, String)> {
    let Some(token) = request.argument(Argument::ResumptionToken) else {
        return Ok(SetList { view: view.name.clone(), date: view.now_secs(), count: 0, after: None });
    };
    match TokenContent::read(token, &view.stores.token_key, &view.name, Verb::ListSets)? {
        TokenContent::Sets(list) => Ok(list),
        TokenContent::Records(_) => {
            Err((ErrorCode::BadResumptionToken, "this resumptionToken belongs to another verb".to_owned()))
        }
    }
}

/// Writes a set.
pub(crate) fn write_set(set_spec: &str, name: &str, xml: &mut String) {
    xml.push_str("    <set><setSpec>");
    escape(set_spec, xml);
    xml.push_str("</setSpec><setName>");
    escape(name, xml);
    xml.push_str("</setName></set>\n");
}

/// Writes the resumptionToken of a page; it is empty on the last page.
pub(crate) fn write_token(page: &mut Page, total_elements: Option<u64>) {
    let xml = &mut page.end;
    xml.push_str("    <resumptionToken");
    let (cursor, size) = page.progress;
    for (name, value) in [("completeListSize", size), ("cursor", cursor), ("totalElements", total_elements)] {
        if let Some(value) = value {
            xml.push_str(&format!(" {name}=\"{value}\""));
        }
    }
    match &page.token {
        Some(token) => xml.push_str(&format!(">{token}</resumptionToken>\n")),
        None => xml.push_str("/>\n"),
    }
}

pub(crate) const TOKEN_TOO_LONG: &str = "the name of the set is too long for a resumptionToken";
