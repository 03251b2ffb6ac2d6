//! A federation: several repositories as one, without a copy of their records (Jerez, Liu, Hochstenbach and Van de
//! Sompel, "The multi-faceted use of the OAI-PMH in the LANL Repository", 2004, section 6).
//!
//! [`FederationRepository`] answers each request by requests to its members. A list goes through the members in the
//! order of the repository index. A page is a page of one member, and only its headers are edited while it streams.
//!
//! What always holds:
//!
//! - A list never ends as complete while a member has not said that it has no more records. A member that fails is a
//!   503 at its place, or in place of the end ([`OnFailure`]).
//! - All pages of a list have one responseDate and one `until`: the time of the first page. A record that changes
//!   meanwhile is in the next list.
//! - A member whose clock is behind, or whose mirror answers with an older state, has its changes in the next list: the
//!   `from` of later lists is widened to that state, as the mirror does for its own lists.
//! - A repository that joins is delivered from its beginning to each harvester that has not seen it.
//!
//! The files, each using those before it: `settings` says what a federation consists of, `header_editor` edits pages,
//! `member_page` opens them, `facts` and `formats` ask members what they are, `ages` keeps the times of lists,
//! `list_state` is the content of tokens, `session` answers one request, and `lists`, `look_ahead`, `sets`, `records` and
//! `identify` are its verbs.

mod ages;
mod facts;
mod federation_repository;
mod formats;
mod header_editor;
mod identify;
mod list_state;
mod lists;
mod look_ahead;
mod member_page;
mod records;
mod session;
mod sets;
mod settings;
mod state;

pub use federation_repository::FederationRepository;
pub use settings::{
    FederationServices, FederationSettings, Member, MemberRepositories, OnFailure, RecordLocator,
};
pub use state::FederationState;
