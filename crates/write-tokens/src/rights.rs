//! What the holder of a write token may write.

use oaimend_oai::set_spec;
use serde::Serialize;

/// The rights of a write token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteRights {
    /// The name of the token, which is no secret.
    pub name: String,
    /// The id of the repository that it may write to.
    pub repository: String,
    /// The setSpecs that its records must be in. Empty: the whole repository.
    pub sets: Vec<String>,
}

impl WriteRights {
    /// Whether the token may write a record with these sets to this repository. `set_specs` are the sets that the record
    /// names itself, not those above them.
    ///
    /// If the token is limited to sets, the record must be in at least one set, and each of its sets must be one of the
    /// token's or below it: `a` allows `a:b`. To replace or delete a record, the token must also be allowed to write the
    /// record that is stored. Otherwise it could take records out of the sets of others.
    pub fn may_write(&self, repository: &str, set_specs: &[String]) -> bool {
        let is_allowed = |set: &String| self.sets.iter().any(|allowed| set_spec::is_within(set, allowed));
        let are_sets_allowed = || !set_specs.is_empty() && set_specs.iter().all(is_allowed);
        self.repository == repository && (self.sets.is_empty() || are_sets_allowed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_writes_to_its_sets_and_those_below_them() {
        let rights = |sets: &[&str]| WriteRights {
            name: "x-1".to_owned(),
            repository: "x".to_owned(),
            sets: sets.iter().map(|&set| set.to_owned()).collect(),
        };
        for (allowed, repository, sets, expected) in [
            (&[][..], "x", &[][..], true),
            (&[], "x", &["a", "b:c"], true),
            (&[], "y", &[], false),
            (&[], "x-1", &["a"], false),
            (&["a"], "x", &[], false),
            (&["a"], "x", &["a"], true),
            (&["a"], "x", &["a:b", "a:b:c"], true),
            (&["a"], "x", &["a", "b"], false),
            (&["a"], "x", &["ab"], false),
            (&["a:b"], "x", &["a"], false),
            (&["a:b"], "x", &["a:b:c"], true),
            (&["a", "b:c"], "x", &["b:c", "a:d"], true),
            (&["a", "b:c"], "x", &["b"], false),
            (&["a"], "y", &["a"], false),
        ] {
            let sets: Vec<String> = sets.iter().map(|&set: &&str| set.to_owned()).collect();
            assert_eq!(
                rights(allowed).may_write(repository, &sets),
                expected,
                "{allowed:?} {repository} {sets:?}"
            );
        }
    }
}
