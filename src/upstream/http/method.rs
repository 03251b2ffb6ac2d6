//! By which method of HTTP a source is asked, and what it was seen to take.

use crate::config;
use crate::upstream::failure::{Failure, Reason};
use http::Method;
use std::sync::atomic::{AtomicBool, Ordering};

/// The methods of one source, and which of them is tried first.
#[derive(Debug)]
pub(crate) struct Methods {
    by_post: AtomicBool,
    both: bool,
}

impl Methods {
    pub(crate) fn new(configured: config::Method) -> Self {
        use config::Method::{Get, GetThenPost, Post, PostThenGet};
        Self {
            by_post: AtomicBool::new(matches!(configured, Post | PostThenGet)),
            both: match configured {
                Get | Post => false,
                GetThenPost | PostThenGet => true,
            },
        }
    }

    /// The method to begin with.
    pub(crate) fn first(&self) -> Method {
        if self.by_post.load(Ordering::Relaxed) { Method::POST } else { Method::GET }
    }

    /// The other one, where the mapping allows it and the failure says that this one is not taken.
    pub(crate) fn instead_of(&self, tried: &Method, failure: &Failure) -> Option<Method> {
        let is_not_taken = failure.reason == Reason::Status
            && matches!(failure.received_status, Some(400 | 405 | 414 | 501));
        let other = if *tried == Method::GET { Method::POST } else { Method::GET };
        (self.both && is_not_taken).then_some(other)
    }

    /// The source has answered a request that was made so: from now on the first try.
    pub(crate) fn worked(&self, method: &Method) {
        self.by_post.store(*method == Method::POST, Ordering::Relaxed);
    }
}
