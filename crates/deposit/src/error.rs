//! Why a record is not written.

use crate::bad_xml::BadXml;
use oaimend_store::MirrorError;

/// Why a record is not written. Nothing of the request was stored, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum DepositError {
    /// A document is not correct.
    #[error("{0}")]
    BadXml(#[from] BadXml),
    /// A record does not fit its format or the rules of OAI-PMH; the text says what to send instead.
    #[error("{0}")]
    Unfit(String),
    /// The repository has no such record.
    #[error("the repository has no record {0} in this format")]
    Unknown(String),
    /// Another repository has the identifier.
    #[error(
        "the repository {repository} has the identifier {identifier}; choose another one, or set foreign_identifiers = true \
         in the mapping"
    )]
    Foreign {
        /// The identifier.
        identifier: String,
        /// The repository.
        repository: String,
    },
    /// The writer has no right to the record.
    #[error("the token may not write the record {0}, because of its sets; use a token for all of them")]
    Forbidden(String),
    /// The stored record is not the expected one.
    #[error("the stored record {0} is not the one that If-Match or If-None-Match expects; read it again")]
    Changed(String),
    /// The schemas of the mapping cannot be used now; the text says why, for the operator.
    #[error("the schemas of the mapping cannot be used: {0}")]
    Unchecked(String),
    /// The store cannot be read or written.
    #[error("{0}")]
    Store(#[from] MirrorError),
}
