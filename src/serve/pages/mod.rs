//! Answers requests for the pages of the gateway.
//!
//! Pages of repositories and records are made from the stores alone: no request for them causes a request to a source.
//! The pages of responses go through the proxy and its cache, as the requests of harvesters do.

pub(crate) mod answer;
mod check_report;
mod collection;
mod description;
pub(crate) mod gateway;
mod lists;
pub(crate) mod overview;
pub(crate) mod record;
mod record_cache;
pub(crate) mod rendering;
pub(crate) mod repository;
mod response;
mod set_lists;
mod sitemaps;
pub(crate) mod start;
pub(crate) mod state;
mod summary;
pub(crate) mod target;

pub(crate) use answer::{GatewayResponse, answer, is_html_named};
pub(crate) use response::{AnsweredRequest, ResponseBody, ResponsePageRequest, is_navigation};
pub(crate) use sitemaps::announced_sitemap;
