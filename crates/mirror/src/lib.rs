//! The mirror: harvested copies of repositories, served while their sources are down.
//!
//! The crate [`oaimend_rules`] contains the decisions about time on which its promise depends. [`Stamps`] applies them to the store.
//! [`view`] serves the store as repositories. `harvest` harvests repositories into the store. `failover` answers in
//! place of a source that fails. [`status`] describes the copies for operators, `maintenance` the results of their
//! commands, and `export` writes records to files. [`RepositoryFacts`] and [`intervals_secs`] connect the store with the
//! schedule. [`repository_index`] lists the served repositories as a repository. [`PlannedHarvests`] shows the schedule to operators, and [`plan_chart`] draws it.

pub mod export;
pub mod failover;
pub mod harvest;
mod harvest_plan;
pub mod maintenance;
mod plan_chart;
mod planned_harvests;
pub mod repository_index;
pub mod settings;
mod spans;
mod stamps;
pub mod status;
pub mod view;

pub use harvest_plan::{RepositoryFacts, intervals_secs};
pub use plan_chart::{plan_chart, policies_chart};
pub use planned_harvests::{PlannedHarvests, PlannedRepository};
pub use spans::{SpanKind, SpanTable, Spans};
pub use stamps::Stamps;
