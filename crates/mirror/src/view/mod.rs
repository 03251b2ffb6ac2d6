//! The mirror as OAI-PMH 2.0 repositories: [`MirrorRepository`] is the view of one mirrored repository,
//! [`AggregateRepository`] that of all of them, [`SubjectRepository`] that of chosen records.
//!
//! Both answer from the store alone and never ask a source. They are conforming repositories of their own:
//!
//! - A datestamp is the stamp of a record: the time at which the mirror committed its last change, in seconds.
//!   `from` and `until` select by it. Days are accepted too.
//! - Deleted records stay for ever (`deletedRecord` is persistent).
//! - Lists are in the order of the commits. A list contains the stamps up to its start. A record that changes
//!   meanwhile moves after this end: its new version is in the next incremental list.
//! - All pages of a list have the responseDate of the first one, and no later commit has a stamp up to it. A
//!   harvester that continues from any responseDate misses nothing. One that continues from its own clock gets the
//!   changes since its last list, because its `from` is widened.
//! - resumptionTokens hold the position of the list under a MAC, and no session. They never expire, and survive
//!   restarts.
//! - A format that was never harvested completely fails with 503. A part of a repository never looks complete.
//! - A change of the configuration that changes the view of all repositories is a commit with a stamp too, and so is a
//!   change of what a derived format is made of.
//!
//! `lists` answers list requests; `merge` reads the records of several repositories in one order; `selection`
//! limits lists to chosen records, and `selected_list` reads those of a query; `component` answers services such as a search over a view; `collisions` chooses
//! between records with the same identifier; `aggregate_versions` stamps the changes of the configuration, `derived` those of derived formats;
//! `record_writer`, `record_xml` and `page_items` write records; `page_cache` keeps written pages, `origins` what
//! provenance says of the sources; `response` writes envelopes and sends events. Memory is limited by [`ViewOptions`] for
//! each request, and by the page cache for all of them.

mod aggregate_repository;
mod aggregate_versions;
mod answer;
pub(crate) mod catalog;
mod collisions;
mod component;
mod component_lists;
mod derived;
pub mod identify;
mod list_token;
pub(crate) mod lists;
mod merge;
mod mirror_repository;
mod options;
mod origin_distance;
mod origins;
mod page_cache;
pub(crate) mod page_items;
mod part;
pub(crate) mod presentation;
mod provenance;
mod record_writer;
pub mod record_xml;
pub(crate) mod response;
mod selected_list;
mod selection;
pub mod sets;
mod stores;
mod subject;
mod subject_repository;

pub use aggregate_repository::AggregateRepository;
pub use component::{Component, ComponentSet, ComponentSets, CountPlace, RankedList, RankedRecords};
pub use derived::DerivedVersions;
pub use mirror_repository::MirrorRepository;
pub use options::{AggregateSettings, MirroredSource, ViewOptions};
pub use selection::{
    ChosenSet, MemberRecord, Membership, QuerySets, SelectedList, SelectedRecord, Selection,
};
pub use stores::ViewStores;
pub use subject::Subject;
pub use subject_repository::SubjectRepository;
