//! A category: a field of the records, and how its texts become values.

use oaimend_search::query::FieldName;
use regex::Regex;

/// A category by which records are browsed.
#[derive(Clone, Debug)]
pub struct BrowseCategory {
    /// The name in sets: letters, digits, `-` and `_`.
    pub name: String,
    /// The field, such as `subject`; `year` for the year of publication.
    pub field: String,
    /// Which texts of the field have a value; `None`: all.
    pub pattern: Option<Regex>,
    /// The value of a text that the pattern matches, with groups of the pattern such as `$1`.
    pub replacement: String,
    /// What separates the levels of a value, such as `/`; `None`: the category is flat.
    pub separator: Option<String>,
    /// The allowed values; empty: any.
    pub values: Vec<String>,
}

impl BrowseCategory {
    /// A flat category whose values are the texts of a field of the same name.
    pub fn of_field(field: &str) -> Self {
        Self {
            name: field.to_owned(),
            field: field.to_owned(),
            pattern: None,
            replacement: "$0".to_owned(),
            separator: None,
            values: Vec::new(),
        }
    }

    /// The categories of a server that configures none.
    pub fn defaults() -> Vec<Self> {
        ["creator", "subject", "type", "language", YEAR].into_iter().map(Self::of_field).collect()
    }

    /// Whether the values are the texts of the field, so that the index itself can list them.
    pub(super) fn is_direct(&self) -> bool {
        !self.is_year() && self.pattern.is_none() && self.separator.is_none() && self.values.is_empty()
    }

    /// Whether the values are years of publication, which the index knows beside the texts.
    pub(super) fn is_year(&self) -> bool {
        self.field == YEAR
    }

    /// The field in which the index has the texts.
    pub(super) fn text_field(&self) -> FieldName {
        FieldName(if self.is_year() { "date".to_owned() } else { self.field.clone() })
    }

    /// The value of a text of the field, level by level; `None` if it has none in this category.
    pub(super) fn path_of(&self, text: &str) -> Option<Vec<String>> {
        let value = match &self.pattern {
            None if self.is_year() => year_of(text)?,
            None => text.to_owned(),
            Some(pattern) => {
                let mut value = String::new();
                pattern.captures(text)?.expand(&self.replacement, &mut value);
                value
            }
        };
        let value = value.trim();
        let value = match self.values.as_slice() {
            [] => value,
            allowed => allowed.iter().find(|allowed| allowed.to_lowercase() == value.to_lowercase())?,
        };
        let levels: Vec<String> = match &self.separator {
            None => vec![value.to_owned()],
            Some(separator) => value.split(separator.as_str()).map(|level| level.trim().to_owned()).collect(),
        };
        let levels: Vec<String> = levels.into_iter().filter(|level| !level.is_empty()).collect();
        (!levels.is_empty()).then_some(levels)
    }
}

/// The field of the years of publication.
const YEAR: &str = "year";

/// The first number of four digits in a date.
fn year_of(date: &str) -> Option<String> {
    let mut numbers = date.split(|character: char| !character.is_ascii_digit());
    numbers.find(|number| number.len() == 4).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_a_value() {
        let category = |pattern: Option<&str>, separator: Option<&str>, values: &[&str]| BrowseCategory {
            pattern: pattern.map(|pattern| Regex::new(pattern).expect("a legal pattern")),
            separator: separator.map(str::to_owned),
            values: values.iter().map(|&value| value.to_owned()).collect(),
            ..BrowseCategory::of_field("subject")
        };
        for (category, text, expected) in [
            (category(None, None, &[]), " Maps ", Some(vec!["Maps"])),
            (category(None, None, &[]), " ", None),
            (category(Some("[0-9]{4}"), None, &[]), "c1999-05", Some(vec!["1999"])),
            (category(Some("[0-9]{4}"), None, &[]), "n.d.", None),
            (category(None, Some("::"), &[]), "A:: B ::::C", Some(vec!["A", "B", "C"])),
            (category(None, Some("::"), &[]), "::", None),
            (category(None, None, &["Maps", "Plans"]), "maps", Some(vec!["Maps"])),
            (category(None, None, &["Maps", "Plans"]), "map", None),
        ] {
            let expected = expected.map(|levels| levels.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(category.path_of(text), expected, "{text}");
        }
        let year = BrowseCategory::of_field("year");
        assert_eq!(year.path_of("31.12.1999"), Some(vec!["1999".to_owned()]));
        assert_eq!(year.path_of("19991231"), None);
        let first =
            BrowseCategory { replacement: "$2 $1".to_owned(), ..category(Some("(.*), (.*)"), None, &[]) };
        assert_eq!(first.path_of("Fox, Edward"), Some(vec!["Edward Fox".to_owned()]));
    }
}
