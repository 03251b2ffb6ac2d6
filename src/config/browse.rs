//! The keys of the categories by which records are browsed: the `[search.browse.NAME]` tables of `oaimend.toml`.

use super::keys::{Keys, Located, declare, string, unique_list};
use oaimend_views::odl::BrowseCategory;
use regex::Regex;

/// A category by which records are browsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategorySettings {
    name: String,
    field: String,
    pattern: Option<String>,
    replacement: String,
    separator: Option<String>,
    values: Vec<String>,
}

impl CategorySettings {
    /// The keys of the table of a category.
    pub(super) fn declare(name: Located<String>, keys: &mut Keys<'_, '_>) -> Self {
        let Located { value: name, span } = name;
        let mut category = Self {
            field: name.clone(),
            name,
            pattern: None,
            replacement: "$0".to_owned(),
            separator: None,
            values: Vec::new(),
        };
        let filled = |text: &str| {
            (!text.trim().is_empty())
                .then(|| text.to_owned())
                .ok_or_else(|| "is empty; expected a text".to_owned())
        };
        declare! { keys:
            /// The field whose texts are the values, such as `subject`, or `year` for the year of publication. Without it, it
            /// is the name of the category.
            field: string("field", filled) => category.field,
            /// A regular expression. A text that it does not match has no value in the category.
            pattern: string("regular expression", read_pattern) => category.pattern,
            /// The value of a text that the pattern matches. `$0` is the matched part, `$1` the first group.
            replacement: string("string", filled) => category.replacement,
            /// What separates the levels of a value. Without it, the category has one level.
            separator: string("string", filled) => category.separator,
            /// The only values of the category, in any case. Without them, every text is a value.
            values: unique_list("strings", string("string", filled)) => category.values,
        }
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if let Some(table) = keys.reading()
            && !category.name.bytes().all(is_legal)
        {
            let value = category.name.escape_debug();
            let expected = "expected letters, digits, '-' and '_'";
            table.report_fault(
                span,
                format!("search.browse: \"{value}\" is no name of a category; {expected}"),
            );
        }
        category
    }

    /// The category.
    pub(super) fn category(&self) -> BrowseCategory {
        BrowseCategory {
            name: self.name.clone(),
            field: self.field.clone(),
            pattern: self.pattern.as_deref().and_then(|pattern| Regex::new(pattern).ok()),
            replacement: self.replacement.clone(),
            separator: self.separator.clone(),
            values: self.values.clone(),
        }
    }
}

/// Checks a regular expression.
fn read_pattern(text: &str) -> Result<String, String> {
    let problem = |error: regex::Error| format!("is no regular expression: {error}");
    Regex::new(text).map_err(problem).map(|_| text.to_owned())
}
