//! The texts of the layout. The other texts of the pages are in the crate `pages`.

pub(crate) const SKIP: &str = "Skip to the content";
pub(crate) const BREADCRUMB: &str = "Breadcrumb";
pub(crate) const REPOSITORIES: &str = "Repositories";
pub(crate) const ABOUT: &str = "Metadata harvested by OAI-PMH, repaired and served by oaimend.";
/// Before the address of the operator.
pub(crate) const CONTACT: &str = "Contact: ";
pub(crate) const SEARCH_LABEL: &str = "Search the records";
pub(crate) const SEARCH: &str = "Search";
