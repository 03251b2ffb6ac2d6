//! Turns an unreliable provider into one good response, or an explicit failure.
//!
//! [`LiveRepository`] answers one request of a harvester with an ordered stream of events. It does not depend
//! on the proxy. Each folder is a layer and imports only from the layers before it: `settings`, `xml`, `http`,
//! `static_repository`, `tape_repository`, `client`, `page`, `adapt`, `per_record`, `session`.

mod adapt;
mod client;
mod http;
mod live_repository;
mod page;
mod per_record;
mod session;
pub mod settings;
mod static_repository;
mod tape_repository;
mod xml;

pub use client::probe::Probed;
pub use client::source_client::SourceClient;
pub use client::source_clients::SourceClients;
pub use http::decoding;
pub use http::download::{Download, DownloadError, Downloader};
pub use http::endpoint::Endpoint;
pub use http::rate_limit::{LimitUsage, RequestedBy};
pub use live_repository::LiveRepository;
pub use session::token_origin::origin_of_request;
pub use static_repository::FileState;
pub use tape_repository::TapeState;
