//! The earlier pages of the lists that requests continue: what their harvesters have received.

mod continuation_token;
mod item_hash;
mod list_history;

pub use continuation_token::{ContinuationToken, hash_of_all};
pub use item_hash::ItemHash;
pub use list_history::{DeliveredItems, DeliveredPages, ListHistories, ListHistory};
