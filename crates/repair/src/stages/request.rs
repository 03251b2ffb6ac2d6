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

/// The request of a response, and what the response must say of it.
#[derive(Debug, Default)]
pub(crate) struct RequestState {
    facts: RequestFacts,
    next_token: Option<Vec<u8>>,
    requested_identifier: Option<Vec<u8>>,
    omits_arguments: bool,
}

impl RequestState {
    /// Returns its facts, from the configuration or the repaired head.
    pub(crate) fn facts(&self) -> &RequestFacts {
        &self.facts
    }

    pub(crate) fn set_facts(&mut self, facts: RequestFacts) {
        self.facts = facts;
    }

    /// Sets the token of the next page that the request element contains, as XML text.
    pub(crate) fn set_next_token(&mut self, token: Option<Vec<u8>>) {
        self.next_token = token;
    }

    pub(crate) fn take_next_token(&mut self) -> Option<Vec<u8>> {
        self.next_token.take()
    }

    /// Returns the identifier that GetRecord requested, if known.
    pub(crate) fn requested_identifier(&self) -> Option<&[u8]> {
        self.requested_identifier.as_deref()
    }

    /// Sets the verb of the response. Only GetRecord requests an identifier.
    pub(crate) fn set_verb(&mut self, verb: Verb) {
        self.requested_identifier =
            if verb == Verb::GetRecord { self.facts.identifier.clone() } else { None };
    }

    /// Notes an error code that requires a request element without arguments.
    pub(crate) fn omit_arguments(&mut self) {
        self.omits_arguments = true;
    }

    /// Returns whether the request element must have no arguments.
    pub(crate) fn omits_arguments(&self) -> bool {
        self.omits_arguments
    }
}
