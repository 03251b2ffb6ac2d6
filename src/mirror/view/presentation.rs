//! What the view of one repository and that of all repositories have in common.

use super::options::{MirroredSource, ViewOptions};
use super::stores::ViewStores;
use crate::clock;
use crate::config::Collisions;
use crate::mirror::spans::{SpanKind, Spans};
use crate::oai::set_spec;
use crate::repository::{Failure, Reason};
use std::borrow::Cow;
use std::sync::Arc;

/// The repositories of a view, and how it presents them.
#[derive(Debug)]
pub(crate) struct View {
    /// The name of the view. Its tokens are valid for no other one.
    pub(crate) name: String,
    pub(crate) stores: ViewStores,
    pub(crate) options: ViewOptions,
    /// In the order of their names.
    pub(crate) members: Vec<MirroredSource>,
    pub(crate) kind: ViewKind,
    pub(crate) spans: Arc<Spans>,
}

/// The kind of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewKind {
    /// One repository, with its own sets and Identify.
    Single,
    /// Several repositories. Each is a set, and its sets are below it.
    Aggregate {
        /// The name in Identify.
        repository_name: String,
        /// The addresses in Identify; empty: those of the repositories.
        admin_emails: Vec<String>,
    },
}

/// The part of a list that one repository has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'v> {
    pub(crate) member: &'v MirroredSource,
    /// The set of the repository; `None` for all its records.
    pub(crate) set: Option<&'v str>,
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
        Self { name, stores, options, members, kind, spans }
    }

    /// The clock, in seconds since 1970.
    pub(crate) fn now_secs(&self) -> i64 {
        i64::try_from(clock::secs(self.stores.clock.now())).unwrap_or(i64::MAX)
    }

    /// The repositories whose records a list of this set contains; `None` for the list of all records.
    pub(crate) fn parts<'v>(&'v self, set: Option<&'v str>) -> Vec<Part<'v>> {
        let Some(set) = set else {
            return self.members.iter().map(|member| Part { member, set: None }).collect();
        };
        let part = |member: &'v MirroredSource| match self.kind {
            ViewKind::Single => Some(Part { member, set: Some(set) }),
            ViewKind::Aggregate { .. } => {
                let rest = set.strip_prefix(set_name(&member.id).as_str())?;
                // ODL-Union writes the set of a repository with a slash.
                let inner = rest.strip_prefix([':', '/']);
                (rest.is_empty() || inner.is_some()).then_some(Part { member, set: inner })
            }
        };
        self.members.iter().filter_map(part).collect()
    }

    /// Whether the view shows one record for each identifier, although several repositories can have it.
    pub(super) fn merges_records(&self) -> bool {
        self.members.len() > 1 && self.options.collisions != Collisions::KeepBoth
    }

    /// The setSpecs of a record of a repository, as the view presents them.
    pub(crate) fn set_specs<'r>(&self, member: &MirroredSource, own: &'r [String]) -> Cow<'r, [String]> {
        match self.kind {
            ViewKind::Single => Cow::Borrowed(own),
            ViewKind::Aggregate { .. } => {
                let id = set_name(&member.id);
                let below = own.iter().map(|set_spec| format!("{id}:{set_spec}"));
                std::iter::once(id.clone()).chain(below).collect()
            }
        }
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
