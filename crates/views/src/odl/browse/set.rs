//! The sets of ODL-Browse. Pure: no I/O.

use super::category::BrowseCategory;
use oaimend_oai::set_spec;
use std::sync::Arc;

/// The name of the grammar, before the first separator.
const GRAMMAR: &str = "odlbrowse1";

/// A value of a category, as a set names it.
#[derive(Clone, Debug)]
pub(super) struct BrowseSet {
    pub(super) category: Arc<BrowseCategory>,
    /// The value, level by level.
    pub(super) path: Vec<String>,
}

impl BrowseSet {
    /// Reads a set in either form. `set` may have the escapes of setSpecs.
    ///
    /// # Errors
    ///
    /// The text of a `badArgument`.
    pub(super) fn read(set: &str, categories: &[Arc<BrowseCategory>]) -> Result<Self, String> {
        let form =
            "write odlbrowse1/CATEGORY/VALUE, such as odlbrowse1/subject/Maps; ListSets lists all values";
        let Some(rest) = set.strip_prefix(GRAMMAR) else {
            return Err(format!("this set is no value of a category; {form}"));
        };
        let decoded = |text: &str| {
            set_spec::unescape_part(text).ok_or_else(|| format!("the set is no text in UTF-8; {form}"))
        };
        // With colons each level is escaped for itself. With slashes nothing is, or all that follows the grammar.
        let (name, levels): (String, Vec<String>) = if let Some(rest) = rest.strip_prefix(':') {
            let (name, levels) = rest.split_once(':').unwrap_or((rest, ""));
            (decoded(name)?, levels.split(':').map(decoded).collect::<Result<_, _>>()?)
        } else {
            let rest = decoded(rest.strip_prefix('/').unwrap_or_default())?;
            let (name, levels) = rest.split_once('/').unwrap_or((&rest, ""));
            (name.to_owned(), levels.split('/').map(str::to_owned).collect())
        };
        let Some(category) = categories.iter().find(|category| category.name == name) else {
            let names: Vec<&str> = categories.iter().map(|category| category.name.as_str()).collect();
            return Err(format!("there is no category \"{name}\", only {}; {form}", names.join(", ")));
        };
        let is_flat = category.separator.is_none();
        let path = if is_flat { vec![levels.join("/")] } else { levels };
        if path.iter().any(String::is_empty) {
            return Err(format!("a value of the category {name} is empty; {form}"));
        }
        Ok(Self { category: Arc::clone(category), path })
    }

    /// The set in the characters of the schema.
    pub(super) fn set_spec(&self) -> String {
        let levels = self.path.iter().map(|level| format!(":{}", set_spec::escape_part(level)));
        format!("{GRAMMAR}:{}{}", self.category.name, levels.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn categories() -> Vec<Arc<BrowseCategory>> {
        let subject = BrowseCategory::of_field("subject");
        let class = BrowseCategory { separator: Some(">".to_owned()), ..BrowseCategory::of_field("class") };
        vec![Arc::new(subject), Arc::new(class)]
    }

    #[test]
    fn a_set_is_read_with_slashes_and_with_colons() {
        for (set, name, path) in [
            ("odlbrowse1/subject/Maps", "subject", vec!["Maps"]),
            ("odlbrowse1/subject/Maps and: plans/charts", "subject", vec!["Maps and: plans/charts"]),
            ("odlbrowse1/subject~x2F.Maps~x20.and~x20.plans", "subject", vec!["Maps and plans"]),
            ("odlbrowse1:subject:Maps~x3A.~x20.plans", "subject", vec!["Maps: plans"]),
            ("odlbrowse1:subject:a~x2F.b", "subject", vec!["a/b"]),
            ("odlbrowse1/class/A/B", "class", vec!["A", "B"]),
            ("odlbrowse1:class:A:B~x2F.C", "class", vec!["A", "B/C"]),
        ] {
            let read = BrowseSet::read(set, &categories()).expect(set);
            assert_eq!(
                (read.category.name.as_str(), read.path.clone()),
                (name, path.iter().map(|&level| level.to_owned()).collect())
            );
            let again = BrowseSet::read(&read.set_spec(), &categories()).expect(set);
            assert_eq!(again.path, read.path, "{}", read.set_spec());
            assert_eq!(set_spec::escape(read.set_spec().as_bytes()), read.set_spec().as_bytes());
        }
    }

    #[test]
    fn a_wrong_set_is_refused_with_the_right_form() {
        for (set, expected) in [
            ("", "no value of a category"),
            ("odlbrowse", "no value of a category"),
            ("subject/Maps", "no value of a category"),
            ("odlbrowse1", "there is no category \"\", only subject, class"),
            ("odlbrowse1/", "there is no category"),
            ("odlbrowse1:", "there is no category"),
            ("odlbrowse1/author/x", "there is no category \"author\""),
            ("odlbrowse1/subject", "is empty"),
            ("odlbrowse1/subject/", "is empty"),
            ("odlbrowse1:class:A::B", "is empty"),
            ("odlbrowse1/class/A//B", "is empty"),
            ("odlbrowse1:subject:~xFF.", "no text in UTF-8"),
        ] {
            let text = BrowseSet::read(set, &categories()).map(|set| set.path).expect_err(set);
            assert!(text.contains(expected) && text.contains("write odlbrowse1/"), "{set}: {text}");
        }
    }
}
