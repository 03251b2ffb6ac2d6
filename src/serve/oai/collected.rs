//! A response of a repository in memory, from which its page is made.

use crate::serve::pages::rendering::RenderMemory;
use crate::serve::pages::{AnsweredRequest, ResponseBody};
use http::header;
use oaimend_pages::html::NoResponseReason;
use pingora_error::{Error, ErrorSource, ErrorType, Result};
use pingora_http::ResponseHeader;

/// A response that is collected.
pub(super) struct CollectedResponse {
    pub(super) head: Option<Box<ResponseHeader>>,
    body: Vec<u8>,
    memory: RenderMemory,
    /// Why it does not fit into memory.
    overflow: Option<NoResponseReason>,
}

impl CollectedResponse {
    pub(super) fn new(memory: RenderMemory) -> Self {
        Self { head: None, body: Vec::new(), memory, overflow: None }
    }

    /// Adds a piece of the body.
    ///
    /// # Errors
    ///
    /// It is longer than the limit, or too many other responses are being rendered.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<()> {
        if let Err(reason) = self.memory.reserve(self.body.len() + piece.len()) {
            (self.body, self.overflow) = (Vec::new(), Some(reason));
            return Error::e_explain(ErrorType::InternalError, "the response cannot be held in memory");
        }
        self.body.extend_from_slice(piece);
        Ok(())
    }

    /// The response, after it was collected with this result.
    ///
    /// # Errors
    ///
    /// There is nothing to show: the client is gone, or the response has no header.
    pub(super) fn finish(self, collected: Result<()>) -> Result<AnsweredRequest> {
        let Self { head, body, memory, overflow } = self;
        let body = match (collected, overflow) {
            (Err(error), _) if *error.esource() == ErrorSource::Downstream => return Err(error),
            (_, Some(reason)) => ResponseBody::NotShown(reason),
            (Ok(()), None) => ResponseBody::Whole(body),
            (Err(error), None) if head.is_none() => return Err(error),
            (Err(_), None) => ResponseBody::BrokenOff(body),
        };
        let Some(head) = head else {
            return Error::e_explain(ErrorType::InternalError, "a response without a header");
        };
        Ok(AnsweredRequest { status: head.status.as_u16(), headers: kept_headers(&head), body, memory })
    }
}

/// The headers that the page of a response has too.
fn kept_headers(head: &ResponseHeader) -> Vec<(&'static str, String)> {
    let kept = ["Age", "Cache-Status", "Proxy-Status", header::RETRY_AFTER.as_str(), "Cache-Control"];
    let value = |name: &&'static str| {
        let value = head.headers.get(*name).and_then(|value| value.to_str().ok())?;
        Some((*name, value.to_owned()))
    };
    kept.iter().filter_map(value).collect()
}
