//! What the view of one repository and that of all repositories have in common.

use super::aggregate_versions::AggregateVersion;
use super::component::Component;
use super::options::{MirroredSource, ViewOptions};
use super::part::Part;
use super::selection::{ChosenSet, Membership};
use super::stores::ViewStores;
use super::subject::Subject;
use crate::spans::{SpanKind, Spans};
use oaimend_oai::UnixSecs;
use oaimend_oai::set_spec;
use oaimend_repository::{Failure, Reason};
use oaimend_rules::ListTimes;
use oaimend_store::{Collisions, MirrorError};
use std::borrow::Cow;
use std::sync::Arc;

/// The repositories of a view, and how it presents them.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The name of the view. Its tokens are valid for no other one.
    pub(crate) name: String,
    pub(crate) stores: ViewStores,
    pub(crate) options: ViewOptions,
    /// In the order of their names.
    pub(crate) members: Vec<MirroredSource>,
    pub(crate) kind: ViewKind,
    pub(crate) spans: Arc<Spans>,
    /// What distinguishes it from the view of all repositories; `None` if it is a view.
    pub(super) component: Option<Arc<dyn Component>>,
}

/// The kind of a view.
#[derive(Clone, Debug)]
pub(crate) enum ViewKind {
    /// One repository, with its own sets and Identify.
    Single,
    /// Several repositories. Each is a set, and its sets are below it.
    Aggregate {
        /// The name in Identify.
        repository_name: String,
        /// The addresses in Identify; empty: those of the repositories.
        admin_emails: Vec<String>,
        /// What it consists of.
        version: AggregateVersion,
    },
    /// Chosen records of several repositories, with their sets as in an aggregate.
    Subject(Subject),
}

impl View {
    /// The view of these repositories.
    pub(crate) fn new(
        name: String,
        stores: ViewStores,
        options: ViewOptions,
        mut members: Vec<MirroredSource>,
        kind: ViewKind,
    ) -> Self {
        members.sort_by(|one, other| one.id.cmp(&other.id));
        let spans = stores.spans.of(&name, SpanKind::Stamps);
        Self { name, stores, options, members, kind, spans, component: None }
    }

    /// The view with no lower datestamps than this one.
    pub(super) fn since(&self, since_secs: Option<UnixSecs>) -> Self {
        let mut view = self.clone();
        for member in &mut view.members {
            member.since_secs = member.since_secs.max(since_secs);
        }
        view
    }

    /// The clock, in seconds since 1970.
    pub(crate) fn now_secs(&self) -> UnixSecs {
        self.stores.clock.now_secs()
    }

    /// Determines the times of a list that begins now. If the view was replaced meanwhile, the list does not show the
    /// change, and its responseDate is before it.
    pub(super) async fn begin_list(&self, now_secs: UnixSecs) -> Result<ListTimes, MirrorError> {
        let times = self.stores.stamps.begin_list(now_secs).await?;
        let replaced_at_secs = match &self.kind {
            ViewKind::Single | ViewKind::Subject(_) => None,
            ViewKind::Aggregate { version, .. } => version.replaced_at_secs(),
        };
        let latest_secs = replaced_at_secs.map_or(UnixSecs::MAX, |secs| secs.minus(1));
        Ok(ListTimes { response_date_secs: times.response_date_secs.min(latest_secs), ..times })
    }

    /// The name and the version of the protocol that it speaks beside OAI-PMH.
    pub(super) fn protocol(&self) -> Option<(&'static str, &'static str)> {
        match &self.component {
            Some(component) => Some(component.protocol()),
            None => self.stores.query_sets.as_ref().map(|query_sets| query_sets.protocol()),
        }
    }

    /// The latest change of the view that no commit made.
    pub(super) fn since_secs(&self) -> Option<UnixSecs> {
        self.members.iter().filter_map(|member| member.since_secs).max()
    }

    /// The repositories that the configuration mirrors.
    pub(super) fn mirrored(&self) -> impl Iterator<Item = &MirroredSource> {
        self.members.iter().filter(|member| !member.is_withdrawn)
    }

    /// The repositories whose records a list of this format and this set contains; `None` for the list of all records.
    /// `since_secs` is the latest change of the view when the list began.
    ///
    /// A later change of a repository would move its records after the end of the list. They are at the latest change
    /// that the list knows instead. So they never move to a position that the list has passed.
    pub(crate) fn parts<'v>(
        &'v self,
        prefix: &str,
        set: Option<&'v str>,
        since_secs: Option<UnixSecs>,
    ) -> Vec<Part<'v>> {
        let part = |member: &'v MirroredSource, set| Part::new(member, prefix, set, since_secs);
        let Some(set) = set else {
            return self.members.iter().map(|member| part(member, None)).collect();
        };
        let part_of_set = |member: &'v MirroredSource| match self.kind {
            ViewKind::Single => Some(part(member, Some(set))),
            ViewKind::Aggregate { .. } | ViewKind::Subject(_) => {
                let rest = set.strip_prefix(set_name(&member.id).as_str())?;
                // ODL-Union writes the set of a repository with a slash.
                let inner = rest.strip_prefix([':', '/']);
                (rest.is_empty() || inner.is_some()).then(|| part(member, inner))
            }
        };
        self.members.iter().filter_map(part_of_set).collect()
    }

    /// The records that the request for a set chooses, or the text of a `badArgument`; `None` for the records that the
    /// sources have in it.
    ///
    /// # Errors
    ///
    /// It cannot be known now whether there is such a set.
    pub(super) async fn query_set(&self, set: Option<&str>) -> Result<Option<ChosenSet>, Failure> {
        if self.members_of_view().is_some() {
            return Ok(None);
        }
        match (&self.stores.query_sets, set) {
            (Some(query_sets), Some(set)) => query_sets.find(set).await,
            _ => Ok(None),
        }
    }

    /// The records that the view chooses; `None` for all records of its repositories.
    pub(super) fn members_of_view(&self) -> Option<&Arc<dyn Membership>> {
        match &self.kind {
            ViewKind::Subject(subject) => Some(&subject.membership),
            ViewKind::Single | ViewKind::Aggregate { .. } => None,
        }
    }

    /// Whether the view shows one record for each identifier, although several repositories can have it.
    pub(super) fn merges_records(&self) -> bool {
        self.members.len() > 1 && self.options.collisions != Collisions::KeepBoth
    }

    /// The setSpecs of a record of a repository, as the view presents them.
    pub(crate) fn set_specs<'r>(&self, member: &MirroredSource, stored: &'r [String]) -> Cow<'r, [String]> {
        match self.kind {
            ViewKind::Single => Cow::Borrowed(stored),
            ViewKind::Aggregate { .. } | ViewKind::Subject(_) => {
                let id = set_name(&member.id);
                let below = stored.iter().map(|set_spec| format!("{id}:{set_spec}"));
                std::iter::once(id.clone()).chain(below).collect()
            }
        }
    }

    /// The failure of a request for a record of a view of chosen records that has not judged its last change.
    pub(super) fn behind(&self, identifier: &str) -> Failure {
        let details =
            format!("the view has not read the last change of {identifier} from the mirror yet; wait");
        Failure::new(Reason::MirrorIncomplete, details)
    }

    /// The failure of a request that the mirror cannot answer yet.
    pub(crate) fn incomplete(&self, what: &str, member: Option<&MirroredSource>) -> Failure {
        let (of, command) = match member {
            Some(MirroredSource { id, .. }) => (format!(" of \"{id}\""), format!("oaimend mirror sync {id}")),
            None => (String::new(), "oaimend mirror sync".to_owned()),
        };
        let details =
            format!("the mirror has not harvested {what}{of} completely yet; run {command}, or wait");
        Failure::new(Reason::MirrorIncomplete, details)
    }
}

/// The set of a repository in the view of all repositories.
pub(crate) fn set_name(id: &str) -> String {
    String::from_utf8_lossy(&set_spec::escape(id.replace(':', "_").as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_set_of_a_repository_is_one_part_of_a_set_spec() {
        assert_eq!(super::set_name("arxiv-2.org"), "arxiv-2.org");
        assert_eq!(super::set_name("a:b c"), "a_b~x20.c");
    }
}
