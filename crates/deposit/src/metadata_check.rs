//! Checks metadata by the schemas that an operator has configured.

use crate::deposit::Deposit;
use crate::error::DepositError;
use async_trait::async_trait;
use std::fmt::Debug;

/// Judges metadata by XML Schemas.
#[async_trait]
pub trait MetadataCheck: Debug + Send + Sync {
    /// The first violation in a well-formed document.
    ///
    /// # Errors
    ///
    /// The document cannot be judged now, and why.
    async fn first_violation(&self, document: Vec<u8>) -> Result<Option<Violation>, String>;
}

/// A place where a document is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its line, from 1; `None` if it is unknown.
    pub line: Option<usize>,
    /// The rule of the schema that is broken, in the words of the validator.
    pub text: String,
}

/// The document around the metadata. The schemas do not declare these elements.
const BEFORE: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n";
const AFTER: &str = "</OAI-PMH>\n";

/// Judges all records.
///
/// # Errors
///
/// A record is not valid, or cannot be judged now.
pub(crate) async fn judge(check: &dyn MetadataCheck, deposits: &[Deposit]) -> Result<(), DepositError> {
    let mut document = BEFORE.to_owned();
    let mut first_lines = Vec::new();
    let mut next_line = 2;
    for deposit in deposits {
        let Some(payload) = &deposit.payload else { continue };
        first_lines.push((next_line, deposit.identifier.as_str()));
        document.push_str(&payload.xml);
        document.push('\n');
        next_line += 1 + payload.xml.matches('\n').count();
    }
    if first_lines.is_empty() {
        return Ok(());
    }
    document.push_str(AFTER);
    match check.first_violation(document.into_bytes()).await {
        Ok(None) => Ok(()),
        Ok(Some(Violation { line, text })) => {
            let of_line = first_lines.iter().rev().find(|(first, _)| line.is_some_and(|line| *first <= line));
            let identifier = of_line.or(first_lines.first()).map_or("", |(_, identifier)| identifier);
            Err(DepositError::Unfit(format!(
                "the metadata of {identifier} is not valid by its schema: {text}"
            )))
        }
        Err(why) => Err(DepositError::Unchecked(why)),
    }
}
