//! Chooses the HTTP method for a source by its earlier responses.

use crate::settings;
use http::Method;
use oaimend_repository::{Failure, Reason};
use std::sync::atomic::{AtomicBool, Ordering};

/// The HTTP methods of one source, and which one is tried first.
#[derive(Debug)]
pub(crate) struct Methods {
    by_post: AtomicBool,
    both: bool,
}

impl Methods {
    pub(crate) fn new(configured: settings::Method) -> Self {
        use settings::Method::{Get, GetThenPost, Post, PostThenGet};
        Self {
            by_post: AtomicBool::new(matches!(configured, Post | PostThenGet)),
            both: match configured {
                Get | Post => false,
                GetThenPost | PostThenGet => true,
            },
        }
    }

    /// The method of the first attempt.
    pub(crate) fn first(&self) -> Method {
        if self.by_post.load(Ordering::Relaxed) { Method::POST } else { Method::GET }
    }

    /// The other method, if the mapping allows it and the failure shows that the source refuses this one.
    pub(crate) fn alternative_to(&self, tried: &Method, failure: &Failure) -> Option<Method> {
        let is_refused = failure.reason == Reason::Status
            && matches!(failure.received_status, Some(400 | 405 | 414 | 501));
        let other = if *tried == Method::GET { Method::POST } else { Method::GET };
        (self.both && is_refused).then_some(other)
    }

    /// Notes a response: this method is tried first from now on.
    pub(crate) fn note_success(&self, method: &Method) {
        self.by_post.store(*method == Method::POST, Ordering::Relaxed);
    }
}
