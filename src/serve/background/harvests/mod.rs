//! The harvests of a running server, at their times and by request of an operator.

pub(crate) mod harvester;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod state;
