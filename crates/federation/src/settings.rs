//! What a federation consists of, and what it needs.

use crate::state::FederationState;
use async_trait::async_trait;
use oaimend_base::clock::Clock;
use oaimend_mirror::SpanTable;
use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{UnixSecs, named_enum, set_spec};
use oaimend_repository::{Failure, Repository};
use oaimend_store::TokenKey;
use std::sync::Arc;

named_enum! {
    /// What happens to a list when a member fails.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OnFailure {
        /// 503 at its place.
        #[default]
        Fail = "fail",
        /// The other members first, then 503 in place of the end.
        Last = "last",
        /// The mirror of the member answers; without one as `fail`. The opened repositories do this.
        Mirror = "mirror",
    }
}

/// The settings of a federation.
#[derive(Clone, Debug)]
pub struct FederationSettings {
    /// Its name, as in its URL. Its tokens are valid for no other one.
    pub name: String,
    /// `repositoryName`.
    pub repository_name: String,
    /// What it is about, for Identify.
    pub description: Option<String>,
    /// `adminEmail`; empty: those of the members.
    pub admin_emails: Vec<String>,
    /// What happens when a member fails.
    pub on_failure: OnFailure,
    /// Its repositories ([`Member::in_index_order`]).
    pub members: Arc<[Member]>,
    /// Maximum number of bytes of a page that is held for HTTP/1.0.
    pub spool_bytes_max: usize,
}

/// A repository of a federation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The id of the repository.
    pub id: String,
    /// The time at which its records joined the federation: the creationTime in the repository index. A list `from` this
    /// time or an earlier one contains all its records.
    pub joined_secs: UnixSecs,
}

impl Member {
    /// Members in the order of the repository index: by the time at which they joined, and then by their ids.
    pub fn in_index_order(mut members: Vec<Self>) -> Arc<[Self]> {
        members.sort_by(|one, other| (one.joined_secs, &one.id).cmp(&(other.joined_secs, &other.id)));
        members.into()
    }

    /// Its set.
    pub(crate) fn set(&self) -> String {
        set_spec::escape_part(&self.id)
    }
}

/// Opens the members of a federation.
#[async_trait]
pub trait MemberRepositories: Send + Sync {
    /// The repository of this id, at the moment of a request.
    ///
    /// # Errors
    ///
    /// It cannot be queried now.
    async fn open(&self, id: &str) -> Result<Box<dyn Repository>, Failure>;

    /// The granularity of the repository of this id, if it is known without a request.
    fn granularity(&self, id: &str) -> Option<Granularity>;
}

/// Knows which members hold an identifier, so that not all of them are queried.
#[async_trait]
pub trait RecordLocator: Send + Sync {
    /// Whether it knows the items of a repository.
    fn covers(&self, id: &str) -> bool;

    /// The ids of repositories that hold an item. Others that it covers are queried only if none of the rest has it.
    async fn locate(&self, identifier: &str) -> Vec<String>;
}

/// What federations share.
#[derive(Clone)]
pub struct FederationServices {
    /// Opens members.
    pub repositories: Arc<dyn MemberRepositories>,
    /// Finds the members with an identifier. `None`: all are queried.
    pub locator: Option<Arc<dyn RecordLocator>>,
    /// What requests learn of members.
    pub state: Arc<FederationState>,
    /// The times that harvesters derive from lists.
    pub spans: SpanTable,
    /// Signs the tokens.
    pub token_key: TokenKey,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for FederationServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FederationServices(..)")
    }
}
