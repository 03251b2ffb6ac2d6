//! Services over the view of all repositories that choose the records of their lists themselves, such as a search.
//!
//! A component is a repository with the records, formats and `GetRecord` of the view (Suleman and Fox, "Beyond
//! Harvesting": XOAI-PMH). It differs in its description, in its sets, and in the lists of its sets, whose records
//! have an order of their own. A list without a set is that of the view.

use async_trait::async_trait;
use oaimend_repository::Failure;
use std::fmt::Debug;

/// What distinguishes a service from the view of all repositories.
#[async_trait]
pub trait Component: Debug + Send + Sync {
    /// Its name in tokens. Its tokens are valid for no other repository.
    fn name(&self) -> &'static str;

    /// The name and the version of its protocol, for Identify.
    fn protocol(&self) -> (&'static str, &'static str);

    /// Its next sets after a position, in a fixed order, at most `count_max`; `None` if its sets cannot be listed.
    ///
    /// # Errors
    ///
    /// They are not known for now.
    async fn sets(&self, after: Option<&str>, count_max: usize) -> Result<Option<ComponentSets>, Failure>;

    /// The records of a set in this format; `None` if the view lists them in the order of their commits.
    ///
    /// # Errors
    ///
    /// They are not known for now.
    async fn ranked(&self, set: &str, prefix: &str) -> Result<Option<RankedList>, Failure>;
}

/// Sets of a component.
#[derive(Clone, Debug, Default)]
pub struct ComponentSets {
    /// The sets.
    pub sets: Vec<ComponentSet>,
    /// The position after which the next ones are; `None` at the end.
    pub next: Option<String>,
}

/// A set of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentSet {
    /// Its setSpec, in the characters of the schema.
    pub set_spec: String,
    /// Its name.
    pub name: String,
    /// The number of its records.
    pub records: u64,
}

/// The list of a set.
#[derive(Clone, Debug)]
pub enum RankedList {
    /// These records.
    Records(RankedRecords),
    /// The text of a `badArgument`: the set is none of the component.
    Refused(String),
}

/// Records in an order of their own.
#[derive(Clone, Debug, Default)]
pub struct RankedRecords {
    /// The repositories and identifiers of the records. Those that were deleted since are left out.
    pub records: Vec<(String, String)>,
    /// The number of records before the first one.
    pub offset: u64,
    /// The number of records from which these were taken.
    pub hits: u64,
    /// Where the response says how many there are.
    pub count_place: CountPlace,
}

/// Where a response says how many records match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountPlace {
    /// Nowhere.
    #[default]
    Nowhere,
    /// In the `hits` of a `responseContainer` (Suleman and Fox, "Response-Level Containers").
    ResponseContainer,
    /// In the `completeListSize` of an empty resumptionToken, as jOAI does.
    ResumptionToken,
}

/// The description of a protocol in Identify. The papers give no namespace, but the schema of Identify demands one.
pub(super) fn odl_description((protocol, version): (&str, &str)) -> String {
    format!(
        "<description><odl-description xmlns=\"http://oai.dlib.vt.edu/odl/\"><protocol>{protocol}</protocol>\
         <version>{version}</version></odl-description></description>"
    )
}
