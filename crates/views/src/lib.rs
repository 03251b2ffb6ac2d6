//! Parts of the mirror as OAI-PMH repositories: query sets, views, ODL-Search, ODL-Browse and ODL-Recent.

mod index_requests;
pub mod odl;
mod query_sets;
mod subject;

pub use query_sets::IndexQuerySets;
pub use subject::{FoundMember, LiveMember, NewestMember, SubjectViews, ViewSettings};
