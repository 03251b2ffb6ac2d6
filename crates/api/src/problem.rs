//! The document of an error (RFC 9457).

use serde::Serialize;
use utoipa::ToSchema;

/// Why there is no result: whose fault it is, whether to retry, and what to do now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The name of the status.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What happened, and what to do now.
    pub detail: String,
    /// The line of the fault in the body of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub line: Option<usize>,
    /// Its column, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub column: Option<usize>,
}
