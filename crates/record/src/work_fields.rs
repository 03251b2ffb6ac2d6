//! What a crosswalk reads from a record.

use crate::agent::{Agent, AgentKind, Orcid};
use crate::container::Container;
use crate::dublin_core::DublinCore;
use crate::limits::NUMBERS_MAX;
use crate::standard_number::{read_isbn, read_issn};
use crate::text::Text;

/// What a record says of its work, in any format with a crosswalk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkFields {
    /// The fields of Dublin Core. Until [`WorkFields::finish`], creators and contributors are missing.
    pub(crate) core: DublinCore,
    pub(crate) creators: Vec<Agent>,
    pub(crate) contributors: Vec<Agent>,
    /// ORCIDs of creators whose names are not certain.
    pub(crate) orcids: Vec<Orcid>,
    pub(crate) container: Container,
    /// The ISBNs of the work as digits, at most 50.
    pub(crate) isbns: Vec<String>,
    /// The URLs that the format calls full text.
    pub(crate) full_texts: Vec<String>,
}

impl WorkFields {
    /// Derives what depends on all fields.
    pub(crate) fn finish(mut self) -> Self {
        self.orcids = attribute_orcids(&mut self.creators);
        // Those of contributors belong to no author.
        attribute_orcids(&mut self.contributors);
        self.core.creators = self.creators.iter().map(|agent| agent.name.clone()).collect();
        self.core.contributors = self.contributors.iter().map(|agent| agent.name.clone()).collect();
        for text in &self.core.identifiers {
            if let Some(isbn) = read_isbn(&text.value)
                && !self.isbns.contains(&isbn)
                && self.isbns.len() < NUMBERS_MAX
            {
                self.isbns.push(isbn);
            }
        }
        for text in &self.core.sources {
            if let Some(container) = Container::read(&text.value) {
                self.container.complete(container);
            }
        }
        for text in self.core.identifiers.iter().chain(&self.core.relations) {
            let mut words = text.value.as_bytes().windows(4);
            let is_labelled = words.any(|word| word.eq_ignore_ascii_case(b"issn"));
            if is_labelled && let Some(issn) = read_issn(&text.value) {
                self.container.complete(Container { issns: vec![issn], ..Container::default() });
            }
        }
        self
    }
}

/// Gives ORCIDs that are values of their own to the names before them, where it is certain whose they are: after the
/// only name, or if each name has one. Removes them from the list, and returns the others.
fn attribute_orcids(agents: &mut Vec<Agent>) -> Vec<Orcid> {
    let is_name = |agent: &Agent| !agent.name.value.is_empty();
    let names = agents.iter().filter(|agent| is_name(agent)).count();
    let alternate = agents.chunks(2).all(
        |pair| matches!(pair, [name, orcid] if is_name(name) && name.orcid.is_none() && !is_name(orcid)),
    );
    let mut others = Vec::new();
    for agent in std::mem::take(agents) {
        match agents.last_mut() {
            _ if is_name(&agent) => agents.push(agent),
            Some(name) if alternate || (names == 1 && name.orcid.is_none()) => {
                name.orcid = agent.orcid;
                name.kind = AgentKind::Person;
            }
            _ => others.extend(agent.orcid),
        }
    }
    others
}

/// A list of texts of a field.
pub(crate) trait AddText {
    /// Adds a text if there is one.
    fn add(&mut self, text: Option<Text>);

    /// Adds a text without language.
    fn add_value(&mut self, value: &str);
}

impl AddText for Vec<Text> {
    fn add(&mut self, text: Option<Text>) {
        self.extend(text);
    }

    fn add_value(&mut self, value: &str) {
        let text = Text { value: value.trim().to_owned(), ..Text::default() };
        if !text.value.is_empty() {
            self.push(text);
        }
    }
}
