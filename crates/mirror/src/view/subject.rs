//! What a view of chosen records contains: a subject gateway.

use super::selection::Membership;
use std::sync::Arc;

/// What a view of chosen records contains, and how it describes itself.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name in Identify.
    pub repository_name: String,
    /// What it is about, in Identify.
    pub description: Option<String>,
    /// The addresses in Identify; empty: those of the repositories.
    pub admin_emails: Vec<String>,
    /// The sets, as `ListSets` of all repositories names them: `x` or `x:a`. Empty: all.
    pub sets: Vec<String>,
    /// The records that it contains.
    pub membership: Arc<dyn Membership>,
}

impl Subject {
    /// Whether `ListSets` contains a set: one of those that were chosen, one inside, or the repository around it.
    pub(super) fn shows_set(&self, set: &str) -> bool {
        let is_inside = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.sets.is_empty()
            || self.sets.iter().any(|chosen| is_inside(set, chosen) || is_inside(chosen, set))
    }
}
