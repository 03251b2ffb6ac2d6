//! Turns a flaky provider into one good answer, or an honest failure.
//!
//! `session` is the conversation for one request of a harvester, `fetch` one
//! HTTP exchange in it, `probe` one that hides nothing, `decoding` takes the content codings off its body.
//! Knows nothing of the proxy: what it makes is an ordered stream of events.

mod account;
mod address;
mod aside;
mod body;
mod breaker;
mod budget;
mod chain;
mod clients;
mod connecting;
mod conversing;
pub mod decoding;
mod dialect;
mod exchange;
mod failure;
mod fetch;
mod headers;
mod inquiry;
mod learning;
mod made;
mod memories;
mod method;
mod one_by_one;
mod outage;
mod outlet;
mod own_token;
mod page;
mod patience;
mod pieces;
mod politeness;
mod probe;
mod proof;
mod recall;
mod recovery;
mod redate;
mod repository;
mod session;
mod sieve;
mod skeleton;
mod splice;
mod static_repository;
mod torn;
mod transplant;

pub use account::{Account, RepairMade};
pub use clients::Clients;
pub use conversing::{Conversing, Driven};
pub use failure::{Failure, Outlook, Reason};
pub use fetch::Client;
pub use probe::Probed;
pub use session::{Answer, Event, Job, answer};
pub use static_repository::FileState;
