//! The program of `oaimend serve`: listeners, requests, pages, and the work in the background.
//!
//! `run` starts and stops it. Each connection passes `net`, and each request the quotas of `clients`. `routes` says what
//! answers it: `oai` for a repository, `deposit` for its writers, `api` for programs that read JSON, `dumps` for dumps and
//! changes, `pages` for people and crawlers, `admin` for operators. `background` harvests, notifies and maintains, `search`
//! indexes the mirror, `resolver` finds records by their identifiers, and `resourcesync` lists them for copies.
//! `source_lists` has the records that sources without a mirror list. `in_process` is `admin` without a server.

mod admin;
mod api;
mod background;
mod clients;
mod context;
mod deposit;
mod dumps;
mod health;
mod in_process;
mod net;
mod oai;
mod pages;
mod problem;
mod resolver;
mod resourcesync;
mod response;
mod routes;
mod run;
mod search;
mod served;
mod source_lists;
mod telemetry;
mod validators;

pub use in_process::{ApiResponse, InProcess};
pub use net::EarlySignals;
pub use run::{Running, Server};
pub use search::{RebuildLine, SearchState};
