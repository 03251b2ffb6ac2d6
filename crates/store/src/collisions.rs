//! The choice between records of several repositories that have the same identifier.

use oaimend_oai::{named_enum, serde_by_name};

named_enum! {
    /// Which records the view of all repositories shows if several repositories have the same identifier.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Collisions {
        /// All of them.
        #[default]
        KeepBoth = "keep-both",
        /// That of the repository with the highest priority.
        Prefer = "prefer",
        /// That with the latest datestamp of its source.
        Newest = "newest",
        /// That with the fewest harvests between its origin and the mirror, by its provenance, and of those one that no
        /// aggregator has altered. Of equal ones that of the repository with the highest priority.
        ClosestToOrigin = "closest-to-origin",
    }
}

serde_by_name!(Collisions);
