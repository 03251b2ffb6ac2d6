//! The mirror: harvested copies of repositories, served while their sources are down.
//!
//! [`rules`] contains the decisions about time on which its promise depends. [`Stamps`] applies them to the store.
//! [`view`] serves the store as repositories. `harvest` harvests repositories into the store. `failover` answers in
//! place of a source that fails. [`status`] describes the copies for operators, `maintenance` the results of their
//! commands, and `export` writes records to files. [`RepositoryFacts`] and [`intervals_secs`] connect the store with the
//! schedule. [`PlannedHarvests`] shows the schedule to operators, and [`plan_chart`] draws it.

#[cfg(feature = "program")]
pub mod export;
#[cfg(feature = "program")]
pub mod failover;
#[cfg(feature = "program")]
pub mod harvest;
#[cfg(feature = "program")]
mod harvest_plan;
#[cfg(feature = "program")]
pub mod maintenance;
#[cfg(feature = "program")]
mod plan_chart;
#[cfg(feature = "program")]
mod planned_harvests;
pub mod rules;
#[cfg(feature = "program")]
pub mod settings;
#[cfg(feature = "program")]
mod spans;
#[cfg(feature = "program")]
mod stamps;
#[cfg(feature = "program")]
pub mod status;
#[cfg(feature = "program")]
pub mod view;

#[cfg(feature = "program")]
pub use harvest_plan::{RepositoryFacts, intervals_secs};
#[cfg(feature = "program")]
pub use plan_chart::plan_chart;
#[cfg(feature = "program")]
pub use planned_harvests::{PlannedHarvests, PlannedRepository};
#[cfg(feature = "program")]
pub use stamps::Stamps;
