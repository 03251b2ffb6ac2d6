//! The pages of OAI-PMH responses.

mod errors;
mod links;
mod lists;
mod not_shown;
mod page;
mod single;
#[cfg(test)]
mod tests;

pub use not_shown::NoResponseReason;
pub use page::{ResponsePage, ShownResponse};
