//! Additional headers of requests to a source.
//!
//! Invariant: values may be secret. No message, log line or `Debug` output contains one. Only requests to the source
//! itself contain them.

use http::header::{HeaderMap, HeaderName};
use std::fmt;

/// Additional headers of requests to a source.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SourceHeaders(HeaderMap);

impl SourceHeaders {
    /// Headers whose values are marked as sensitive.
    pub fn new(headers: HeaderMap) -> Self {
        Self(headers)
    }

    /// The headers, their values marked as sensitive. Send them to the source only.
    pub fn map(&self) -> &HeaderMap {
        &self.0
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }
}

impl fmt::Debug for SourceHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
