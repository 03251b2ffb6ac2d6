//! The response of a repository that a page is made from.

use super::rendering::RenderMemory;
use oaimend_pages::html::NoResponseReason;

/// The response of the repository.
pub(crate) struct AnsweredRequest {
    pub(crate) status: u16,
    /// The headers that the page has too.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: ResponseBody,
    /// Held until the page is rendered.
    pub(crate) memory: RenderMemory,
}

/// The body of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseBody {
    Whole(Vec<u8>),
    /// The start of one that was broken off.
    BrokenOff(Vec<u8>),
    /// One that no page can contain.
    NotShown(NoResponseReason),
}
