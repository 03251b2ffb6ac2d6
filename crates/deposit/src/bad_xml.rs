//! Where a written document is not correct.

use std::fmt::{self, Display};

/// Why a written document is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadXml {
    /// The line, from 1 on.
    pub line: usize,
    /// The column in characters, from 1 on.
    pub column: usize,
    /// The fault, in words.
    pub problem: String,
}

impl BadXml {
    /// A problem at this byte of a document.
    pub(crate) fn at(document: &[u8], byte: usize, problem: impl Into<String>) -> Self {
        let before = document.get(..byte.min(document.len())).unwrap_or(document);
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        Self {
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: 1 + String::from_utf8_lossy(&before[line_start..]).chars().count(),
            problem: problem.into(),
        }
    }
}

impl Display for BadXml {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}: {}", self.line, self.column, self.problem)
    }
}

impl std::error::Error for BadXml {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        let document = "ä\nöx".as_bytes();
        let place = |byte| {
            let found = BadXml::at(document, byte, "x");
            (found.line, found.column)
        };
        assert_eq!(
            [place(0), place(2), place(3), place(5), place(99)],
            [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]
        );
    }
}
