//! The analysis of texts, the same for records and queries.
//!
//! A text is a row of words: runs of letters and digits. Words of scripts without spaces between words, such as Chinese,
//! are a row of characters, which match one by one and in pairs.

mod encoded;
mod fold;
mod highlight;
mod spelling;
mod stem;
mod words;

pub(crate) use encoded::{EncodedWords, WordReader};
pub use fold::fold_value;
pub use highlight::{Highlighter, Snippet};
pub(crate) use spelling::{spelling, written};
pub(crate) use stem::{KnownStems, StemLanguage};
pub(crate) use words::{QueryWords, TokenReader};
