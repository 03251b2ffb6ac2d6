//! A request of the check, and its response.

use super::html_page;
use super::tree::{self, Element};
use oaimend_upstream::Probed;
use std::fmt;
use std::time::Duration;
use url::form_urlencoded;

/// The next step of a running check.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A request is about to be sent.
    Request {
        /// Its number; the first is 1.
        number: usize,
        /// The request.
        request: &'a CheckRequest,
    },
    /// The check waits, because the source asked to retry later.
    Wait {
        /// The length of the wait.
        time: Duration,
        /// The status of the response that asked for it.
        status: u16,
    },
}

/// The namespace of OAI-PMH 2.0.
pub(crate) const OAI: &str = "http://www.openarchives.org/OAI/2.0/";

/// A request, valid or deliberately invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRequest {
    /// The decoded arguments, in order.
    pub(crate) arguments: Vec<(&'static str, String)>,
    /// Whether the arguments are sent as a POST form.
    pub(crate) is_form: bool,
}

/// A response with which the source asked to retry later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deferral {
    pub(crate) status: u16,
    /// The value of `Retry-After`.
    pub(crate) retry_after: Option<String>,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub(crate) enum Received {
    /// A complete response, whatever its status.
    Complete(Probed),
    /// No complete response, and why.
    Failed(String),
    /// No request was sent, and why.
    Skipped(String),
}

/// A request and its response.
#[derive(Clone, Debug)]
pub(crate) struct CheckResponse {
    pub(crate) request: CheckRequest,
    pub(crate) received: Received,
    /// The earlier responses that asked to retry later.
    pub(crate) deferrals: Vec<Deferral>,
    /// The document, or why it could not be parsed.
    pub(crate) document: Result<Element, String>,
}

impl CheckRequest {
    pub(crate) fn get(arguments: &[(&'static str, &str)]) -> Self {
        let arguments = arguments.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { arguments, is_form: false }
    }

    pub(crate) fn post(arguments: &[(&'static str, &str)]) -> Self {
        Self { is_form: true, ..Self::get(arguments) }
    }

    /// The query or form.
    pub(crate) fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.arguments);
        // %20 is a blank for every server; a plus sign of a value is %2B.
        query.finish().replace('+', "%20")
    }

    /// The value of the verb.
    pub(crate) fn verb(&self) -> &str {
        let verb = self.arguments.iter().find(|(name, _)| *name == "verb");
        verb.map_or("", |(_, verb)| verb.as_str())
    }
}

impl fmt::Display for CheckRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = if self.is_form { "POST " } else { "" };
        let query = if self.arguments.is_empty() { "(no arguments)".to_owned() } else { self.query() };
        write!(f, "{method}{query}")
    }
}

impl CheckResponse {
    pub(crate) fn new(request: CheckRequest, received: Received, deferrals: Vec<Deferral>) -> Self {
        let document = match &received {
            Received::Complete(probed) => {
                let parsed = tree::parse(&probed.body);
                parsed.map_err(|why| html_page::describe(&probed.body).unwrap_or(why))
            }
            Received::Failed(why) | Received::Skipped(why) => Err(why.clone()),
        };
        Self { request, received, deferrals, document }
    }

    /// The document element, if this is an OAI-PMH 2.0 response.
    pub(crate) fn root(&self) -> Option<&Element> {
        self.document.as_ref().ok().filter(|root| root.name == "OAI-PMH" && root.namespace == OAI)
    }

    /// Whether the body contains an OAI-PMH start tag, well-formed or not.
    pub(crate) fn looks_like_oai(&self) -> bool {
        let body = match &self.received {
            Received::Complete(probed) => probed.body.as_slice(),
            Received::Failed(_) | Received::Skipped(_) => &[],
        };
        ["<OAI-PMH", ":OAI-PMH"].iter().any(|mark| memchr::memmem::find(body, mark.as_bytes()).is_some())
    }

    /// The description of an HTML page, if the response is one.
    pub(crate) fn html_page(&self) -> Option<String> {
        match &self.received {
            Received::Complete(probed) => html_page::describe(&probed.body),
            Received::Failed(_) | Received::Skipped(_) => None,
        }
    }

    /// Whether the content can be judged: the response is complete, and well-formed if it looks
    /// like OAI-PMH.
    pub(crate) fn is_readable(&self) -> bool {
        let is_broken = self.document.is_err() && self.looks_like_oai();
        matches!(self.received, Received::Complete(_)) && !is_broken
    }

    /// The element of the requested verb, if the response contains it.
    pub(crate) fn verb_element(&self) -> Option<&Element> {
        self.root()?.child(self.request.verb())
    }

    /// The error codes.
    pub(crate) fn errors(&self) -> Vec<&str> {
        let errors = self.root().into_iter().flat_map(|root| root.children_named("error"));
        errors.map(|error| error.attribute("code").unwrap_or_default()).collect()
    }

    /// Whether all errors have this code, and there is one.
    pub(crate) fn has_only_error(&self, code: &str) -> bool {
        let errors = self.errors();
        !errors.is_empty() && errors.iter().all(|error| *error == code)
    }

    /// The response in a few words, for a finding.
    pub(crate) fn summarize(&self) -> String {
        let probed = match &self.received {
            Received::Complete(probed) => probed,
            Received::Failed(why) | Received::Skipped(why) => return why.clone(),
        };
        let Some(root) = self.root() else {
            let what = match &self.document {
                Ok(root) => self.html_page().unwrap_or_else(|| format!("<{}>, not OAI-PMH 2.0", root.name)),
                Err(why) => why.clone(),
            };
            return if probed.status == 200 { what } else { format!("HTTP {}, {what}", probed.status) };
        };
        match root.children_named("error").next() {
            Some(error) => {
                format!("{}: {}", error.attribute("code").unwrap_or("error"), error.text.trim())
            }
            None => {
                root.children.last().map_or_else(|| "nothing".to_owned(), |verb| format!("<{}>", verb.name))
            }
        }
    }
}
