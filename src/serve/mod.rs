//! The program of `oaimend serve`: listeners, requests, pages, and the work in the background.
//!
//! `run` starts and stops it. Each connection passes `net`; each request passes `router` and the quotas of `clients`.
//! Requests for a repository go to `oai`, those for pages to `pages`, and those of operators to `admin`. `background`
//! harvests, notifies and maintains.

mod admin;
mod background;
mod clients;
mod context;
mod health;
mod net;
mod oai;
mod pages;
mod response;
mod router;
mod routes;
mod run;
mod served;
mod telemetry;
mod validators;

pub use net::EarlySignals;
pub use run::{Running, Server};
