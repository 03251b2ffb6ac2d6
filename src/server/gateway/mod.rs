//! Answers requests for the pages of the gateway.
//!
//! Pages are made from the stores alone: no request for a page causes a request to a source.

mod answer;
mod check_report;
mod collection;
mod description;
mod lists;
mod masked_url;
mod overview;
mod record;
mod repository;
mod set_lists;
mod sitemaps;
pub(crate) mod state;
mod summary;
mod validators;

pub(crate) use answer::{GatewayResponse, answer, is_html_named};
pub(crate) use sitemaps::announced_sitemap;
