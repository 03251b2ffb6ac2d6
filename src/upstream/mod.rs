//! Turns an unreliable provider into one good response, or an explicit failure.
//!
//! `session` answers one request of a harvester with an ordered stream of events. It does not depend
//! on the proxy. Each folder is a layer and imports only from the layers before it: `xml`, `http`,
//! `static_repository`, `client`, `page`, `adapt`, `per_record`, `session`.

mod account;
mod adapt;
mod byte_rope;
mod client;
mod event;
mod failure;
mod http;
mod page;
mod per_record;
mod response_writer;
mod session;
mod static_repository;
mod xml;

pub use account::{Account, RepairMade};
pub(crate) use byte_rope::ByteRope;
pub use client::job::Job;
pub use client::probe::Probed;
pub use client::source_client::SourceClient;
pub use client::source_clients::SourceClients;
pub use event::{Event, ResponseHead};
pub use failure::{Failure, Outlook, Reason};
pub use http::decoding;
pub use session::detached_task::{DetachedTask, EventStream};
pub use session::list_session::answer;
pub use static_repository::FileState;
