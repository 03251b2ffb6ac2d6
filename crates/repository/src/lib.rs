//! A repository as the proxy sees it: a request goes in, a stream of events comes out.
//!
//! [`Repository`] is the interface. `upstream` implements it with the live source, and
//! `mirror::view` with the mirror.

pub mod activity_update;
mod byte_rope;
mod event;
mod event_stream;
mod failure;
mod harvester_traits;
pub mod lists;
mod observed_repository;
pub mod rebase_namespaces;
mod record_view;
mod request;
mod response_summary;
mod response_writer;
mod secrets;
pub mod xml;

pub use activity_update::activity_update;
pub use byte_rope::ByteRope;
pub use event::{AnsweredBy, DeliveredRecord, Event, ListAge, ResponseHead};
pub use event_stream::{DetachedTask, EventStream};
pub use failure::{Failure, Outlook, Reason};
pub use failure::{for_harvesters, for_operators, printable};
pub use harvester_traits::HarvesterTraits;
pub use observed_repository::ObservedRepository;
pub use record_view::RecordView;
pub use request::{Repository, RepositoryRequest};
pub use response_summary::{
    IdentifyFields, ItemCounts, PageFacts, RepairMade, ResponseOutcome, ResponseSummary,
};
pub use response_writer::{ResponseWriter, Stop};
pub use secrets::{MASK, Secrets};
