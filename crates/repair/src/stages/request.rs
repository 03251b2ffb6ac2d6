//! The request that a response answers, as far as it is known.

use oaimend_oai::Verb;

/// The facts known of the request.
#[derive(Debug, Default)]
pub(crate) struct RequestFacts {
    pub(crate) verb: Option<Verb>,
    pub(crate) identifier: Option<Vec<u8>>,
    /// Whether the request resumes a list.
    pub(crate) resumes: bool,
    /// Whether the caller configured these facts. Otherwise they come from the response.
    pub(crate) is_configured: bool,
}
