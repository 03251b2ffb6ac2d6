//! The identifier resolver as people and programs use it: its URLs, and what it found as a page and as JSON.
//!
//! [`ResolverTarget`] is what a request names. [`ResolverResult`] is what the mirror and other services know;
//! [`json_result`] writes it for programs, and [`ResolverPage`](super::html::ResolverPage) for people. Pure: no I/O.

mod address;
mod json;
mod result;

pub use address::{RESOLVER_PATH, ResolverAddress, ResolverTarget};
pub use json::{json_result, json_results};
pub use result::{FoundFormat, FoundItem, ResolverResult, ServiceResult, ServiceState, service_link};
