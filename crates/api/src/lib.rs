//! The JSON API of every repository: parameters, cursors, documents and their OpenAPI description.
//!
//! A request to the API becomes a request of OAI-PMH, and [`OaiResponse`] reads the response to it, so that repair, mirror
//! and fail-over hold for JSON too. [`Operation`] lists the paths. The parameters are checked by the rules of the OpenAPI
//! document that clients read: both cannot differ.
//!
//! Pure: no I/O, no clock.

mod budget;
mod cursor;
mod documents;
mod fields;
mod frame;
mod open_api;
mod operation;
mod parameters;
mod problem;
mod response;
mod rules;
mod schemas;

pub use budget::{DocumentBudget, DocumentTooLong, to_json};
pub use cursor::{ListCursor, ListPosition, items_digest};
pub use documents::{
    FormatDocument, FormatList, RecordDocument, RecordPage, RepositoryDocument, RepositoryList,
    RepositorySummary, SearchHitDocument, SearchPage, SetDocument, SetPage,
};
pub use fields::{RecordField, RecordFields};
pub use frame::divide_list;
pub use open_api::open_api;
pub use operation::Operation;
pub use parameters::{
    FormatsParameters, NoParameters, RecordParameters, RecordsParameters, RepositoriesParameters,
    SearchParameters, SetsParameters,
};
pub use problem::Problem;
pub use response::{ListScopes, OaiError, OaiItem, OaiList, OaiResponse, TextFields, UnreadableResponse};
pub use rules::{ParameterFault, Parameters};
pub use schemas::{LIMIT_DEFAULT, LIMIT_MAX, SEARCH_LIMIT_DEFAULT};
