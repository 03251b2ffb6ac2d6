//! The fail-over: the mirror answers in place of a source that fails.
//!
//! [`FailoverRepository`] asks the source first. If the source fails before the first byte of its response, the mirror
//! answers: with the datestamps, sets and identifiers of the source, and with the state of the mirror as its
//! responseDate. It also continues lists that the source has begun:
//!
//! - The ledger tells which request began the list and which items the harvester has. The mirror sends the others.
//! - A list that the mirror has begun or continued stays with the mirror, also after the source is back. Its tokens
//!   contain the position, and no session.
//! - The times of all pages are recorded as spans. A later `from` in a span is widened to the state that the list
//!   showed, so no change is missed. `docs/explanation/complete-harvests.md` explains the rules.
//!
//! Requests for an identifier that the mirror has given to one of several records with the same identifier go to the
//! mirror at once: the source does not know it.
//!
//! The mirror does not answer if its response could be wrong or incomplete. The failure of the source is then
//! returned: for formats and sets that are not mirrored completely, for records that the mirror does not have, and for
//! lists that the ledger does not know.

mod answer;
mod failover_repository;
mod list_token;
mod lists;
mod source_view;

pub use failover_repository::FailoverRepository;
