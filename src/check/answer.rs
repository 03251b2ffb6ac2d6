//! A request of the check, and what came to it.

use super::tree::{self, Element};
use crate::upstream::Probed;
use std::fmt;
use url::form_urlencoded;

/// The namespace of OAI-PMH 2.0.
pub(super) const OAI: &str = "http://www.openarchives.org/OAI/2.0/";

/// A request, right or wrong on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The arguments in their order, decoded.
    pub(super) arguments: Vec<(&'static str, String)>,
    /// Whether it is sent as the form of a POST.
    pub(super) is_form: bool,
}

/// A time at which the source wanted to be asked later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PutOff {
    pub(super) status: u16,
    /// What `Retry-After` said.
    pub(super) retry_after: Option<String>,
}

/// What came.
#[derive(Clone, Debug)]
pub(super) enum Came {
    /// A whole answer, whatever its status.
    Whole(Probed),
    /// No whole answer, and why.
    Missing(String),
    /// It was not asked at all, and why.
    NotAsked(String),
}

/// A request and what came to it.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) asked: Asked,
    pub(super) came: Came,
    /// How often the source put us off before.
    pub(super) put_off: Vec<PutOff>,
    /// The document, or what is wrong with it.
    pub(super) document: Result<Element, String>,
}

impl Asked {
    pub(super) fn get(arguments: &[(&'static str, &str)]) -> Self {
        let arguments = arguments.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { arguments, is_form: false }
    }

    pub(super) fn post(arguments: &[(&'static str, &str)]) -> Self {
        Self { is_form: true, ..Self::get(arguments) }
    }

    /// The query or form.
    pub(super) fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.arguments);
        // A blank as every server reads it; a plus sign of a value is %2B.
        query.finish().replace('+', "%20")
    }

    /// The value of the verb.
    pub(super) fn verb(&self) -> &str {
        let verb = self.arguments.iter().find(|(name, _)| *name == "verb");
        verb.map_or("", |(_, verb)| verb.as_str())
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = if self.is_form { "POST " } else { "" };
        let query = if self.arguments.is_empty() { "(no arguments)".to_owned() } else { self.query() };
        write!(f, "{method}{query}")
    }
}

impl Answer {
    pub(super) fn new(asked: Asked, came: Came, put_off: Vec<PutOff>) -> Self {
        let document = match &came {
            Came::Whole(probed) => tree::read(&probed.body),
            Came::Missing(why) | Came::NotAsked(why) => Err(why.clone()),
        };
        Self { asked, came, put_off, document }
    }

    /// The document element, if this is an OAI-PMH 2.0 response.
    pub(super) fn root(&self) -> Option<&Element> {
        self.document.as_ref().ok().filter(|root| root.name == "OAI-PMH" && root.namespace == OAI)
    }

    /// Whether it was meant as an OAI-PMH response, well-formed or not.
    pub(super) fn looks_like_oai(&self) -> bool {
        let body = match &self.came {
            Came::Whole(probed) => probed.body.as_slice(),
            Came::Missing(_) | Came::NotAsked(_) => &[],
        };
        ["<OAI-PMH", ":OAI-PMH"].iter().any(|mark| memchr::memmem::find(body, mark.as_bytes()).is_some())
    }

    /// Whether its content can be judged: something came, and if it was meant as
    /// an OAI-PMH response it is well-formed.
    pub(super) fn is_readable(&self) -> bool {
        let is_broken = self.document.is_err() && self.looks_like_oai();
        matches!(self.came, Came::Whole(_)) && !is_broken
    }

    /// The element of the verb that was asked, if it came.
    pub(super) fn verb_element(&self) -> Option<&Element> {
        self.root()?.first(self.asked.verb())
    }

    /// The error codes.
    pub(super) fn errors(&self) -> Vec<&str> {
        let errors = self.root().into_iter().flat_map(|root| root.all("error"));
        errors.map(|error| error.attribute("code").unwrap_or_default()).collect()
    }

    /// Whether its errors are these, in any order, and nothing else.
    pub(super) fn is_error(&self, code: &str) -> bool {
        let errors = self.errors();
        !errors.is_empty() && errors.iter().all(|error| *error == code)
    }

    /// What came, in a few words.
    pub(super) fn gist(&self) -> String {
        let probed = match &self.came {
            Came::Whole(probed) => probed,
            Came::Missing(why) | Came::NotAsked(why) => return why.clone(),
        };
        let Some(root) = self.root() else {
            let what = match &self.document {
                Ok(root) => format!("<{}>, no OAI-PMH 2.0", root.name),
                Err(why) => why.clone(),
            };
            return if probed.status == 200 { what } else { format!("HTTP {}, {what}", probed.status) };
        };
        match root.all("error").next() {
            Some(error) => {
                format!("{}: {}", error.attribute("code").unwrap_or("error"), error.text.trim())
            }
            None => {
                root.children.last().map_or_else(|| "nothing".to_owned(), |verb| format!("<{}>", verb.name))
            }
        }
    }
}
