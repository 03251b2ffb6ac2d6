//! The identifier resolver of a server: which mirrored records have an identifier, and which other services know it.
//!
//! `state` opens the table of identifiers over the mirrored repositories, `following` keeps it at the last commit in the
//! background, and `broker` asks the services.

pub(crate) mod broker;
mod following;
mod state;

pub(crate) use broker::Broker;
pub(crate) use following::ResolverFollowing;
pub(crate) use state::ResolverState;
