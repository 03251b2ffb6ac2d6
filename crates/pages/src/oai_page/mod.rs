//! The content of an OAI-PMH response, as its page shows it.
//!
//! [`OaiPage`] is read from the XML of a response. [`RequestAddress`] contains the URLs of requests on this server.
//!
//! Pure: no I/O, no clock. Texts are never HTML here.

mod address;
mod model;
mod read;

pub use address::RequestAddress;
pub use model::{
    IdentifyFacts, ItemList, ListToken, MetadataFormat, OaiContent, OaiError, OaiPage, RecordItem, SetItem,
};
pub use read::UnreadableResponse;
