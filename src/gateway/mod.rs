//! Pages for people and crawlers, made from the mirror.
//!
//! [`record`] reads a stored record and derives what its page says. [`html`] renders pages. Neither reads the store
//! or the network: the caller passes the XML and receives text. Everything in a record is untrusted.

pub mod html;
pub mod record;
