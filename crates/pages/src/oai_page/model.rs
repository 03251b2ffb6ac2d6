//! The parts of an OAI-PMH response that pages show.

use oaimend_record::{Field, RecordDocument, Text};

/// A response of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OaiPage {
    /// The responseDate, as written.
    pub response_date: String,
    /// The content.
    pub content: OaiContent,
}

/// The content of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OaiContent {
    /// No content: the response ended before it.
    #[default]
    Nothing,
    /// Errors.
    Errors(Vec<OaiError>),
    /// `Identify`.
    Identify(IdentifyFacts),
    /// `ListMetadataFormats`.
    Formats(Vec<MetadataFormat>),
    /// `ListSets`.
    Sets(ItemList<SetItem>),
    /// `ListRecords` or `ListIdentifiers`.
    Records(ItemList<RecordItem>),
    /// `GetRecord`.
    Record {
        /// The XML of the record, with declarations of its namespaces.
        xml: String,
        /// The record; `None` if it cannot be read.
        document: Option<RecordDocument>,
    },
}

/// An error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OaiError {
    /// The code, as written.
    pub code: String,
    /// Its text.
    pub text: Text,
}

/// The description of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentifyFacts {
    /// The elements without the descriptions: name and text, in their order.
    pub facts: Vec<(String, Text)>,
    /// The elements of all descriptions.
    pub descriptions: Vec<Field>,
}

impl IdentifyFacts {
    /// The text of the first element with this name.
    pub fn fact(&self, name: &str) -> Option<&Text> {
        self.facts.iter().find(|(other, _)| other == name).map(|(_, text)| text)
    }
}

/// A format of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataFormat {
    /// The metadataPrefix.
    pub prefix: Text,
    /// The URL of the schema.
    pub schema: Text,
    /// The namespace.
    pub namespace: Text,
}

/// The items of a list, at most 5,000.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemList<T> {
    /// The items in their order.
    pub items: Vec<T>,
    /// The number of items that `items` leaves out.
    pub left_out_items: usize,
    /// The resumptionToken.
    pub token: Option<ListToken>,
}

/// A resumptionToken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListToken {
    /// The token; empty on the last page.
    pub value: Text,
    /// The number of items before this page.
    pub cursor: Option<u64>,
    /// The number of items of the whole list.
    pub complete_list_size: Option<u64>,
}

/// A set of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetItem {
    /// The setSpec.
    pub spec: Text,
    /// The name.
    pub name: Text,
    /// The texts of its descriptions.
    pub description: Text,
}

/// A record or header in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordItem {
    /// The identifier.
    pub identifier: Text,
    /// The datestamp, as written.
    pub datestamp: Text,
    /// The first setSpecs.
    pub set_specs: Vec<Text>,
    /// Whether its header says that the record is deleted.
    pub is_deleted: bool,
    /// The first title in Dublin Core.
    pub title: Option<Text>,
    /// The first creators in Dublin Core.
    pub creators: Vec<Text>,
}
