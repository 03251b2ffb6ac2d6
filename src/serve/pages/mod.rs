//! Answers requests for the pages of the gateway.
//!
//! Pages of repositories and of mirrored records are made from the stores alone: no request for them causes a request to
//! a source. The pages of responses, and of records that are not mirrored, go through the proxy and its cache, as the
//! requests of harvesters do.

pub(crate) mod answer;
pub(crate) mod answered_request;
pub(crate) mod gateway;
mod identifier_failure;
pub(crate) mod records;
pub(crate) mod rendering;
pub(crate) mod repositories;
pub(crate) mod resolver;
mod response;
pub(crate) mod search;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod target;

pub(crate) use self::answered_request::{AnsweredRequest, ResponseBody};
pub(crate) use self::records::live_record::LiveRecordRequest;
pub(crate) use self::records::metadata_of;
pub(crate) use self::records::sitemaps::announced_sitemap;
pub(crate) use self::response::{CollectedPage, ResponsePageRequest, is_navigation};
pub(crate) use answer::{GatewayResponse, answer, is_html_named};
