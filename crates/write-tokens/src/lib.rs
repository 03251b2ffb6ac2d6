//! Write tokens: the secrets of clients that may write to local repositories, with their rights.
//!
//! [`WriteTokens`] keeps the tokens of a data folder in `write-tokens.json`, with a hash in place of each token. The
//! commands that create and revoke tokens replace the file, and the server finds the rights of each request in it. A
//! client reads its token with [`read_token_file`].
//!
//! - A change holds from the next request on, also in a server that runs already.
//! - A file that cannot be read or is damaged is an error, and never a file without tokens.
//! - Two writers at once lose nothing, and a writer that is killed leaves the file as it was before or after its change.

mod error;
mod rights;
mod stored_tokens;
mod token_file;
mod write_tokens;

#[cfg(test)]
mod tests;

pub use error::{Refusal, TokensError};
pub use rights::WriteRights;
pub use stored_tokens::{NAME_BYTES_MAX, SET_SPEC_BYTES_MAX, SETS_MAX, TOKENS_MAX};
pub use token_file::{TOKEN_FILE_BYTES_MAX, TokenFileError, read_token_file};
pub use write_tokens::{CreatedWriteToken, FILE_BYTES_MAX, NewWriteToken, WriteTokenInfo, WriteTokens};
