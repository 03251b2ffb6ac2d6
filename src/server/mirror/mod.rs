//! The mirror of a running server: the views of its repositories, harvests at their times, and maintenance.

pub(crate) mod admin;
pub(crate) mod harvest_runs;
pub(crate) mod harvest_schedule;
pub(crate) mod maintain;
pub(crate) mod state;
pub(crate) mod views;
