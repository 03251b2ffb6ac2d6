//! Kinds of texts: parsed ones, names of choices, files, and lists of them.

use super::{Entry, Kind, Located};
use oaimend_oai::Named;
use serde_json::json;
use std::path::{Path, PathBuf};
use toml::Value;

/// The value of a text, or a problem that names the expected value.
type Parsed<V> = Result<V, String>;
type Parse<'a, V> = dyn Fn(&str) -> Parsed<V> + 'a;

/// A text, and its value in the program.
pub(crate) struct Text<'a, V> {
    title: &'static str,
    parse: Box<Parse<'a, V>>,
    write: fn(&V) -> Option<String>,
    /// The only possible texts; empty: others are possible too.
    choices: Vec<&'static str>,
}

/// A text of this kind. The problem that `parse` returns names the expected value.
pub(crate) fn text<'a, V>(
    title: &'static str,
    parse: impl Fn(&str) -> Parsed<V> + 'a,
    write: fn(&V) -> Option<String>,
) -> Text<'a, V> {
    Text { title, parse: Box::new(parse), write, choices: Vec::new() }
}

/// Like [`text`], for a value that is never written, because it can contain secrets.
pub(crate) fn secret<'a, V>(title: &'static str, parse: impl Fn(&str) -> Parsed<V> + 'a) -> Text<'a, V> {
    text(title, parse, |_| None)
}

/// A text that is its own value.
pub(crate) fn string<'a>(
    title: &'static str,
    parse: impl Fn(&str) -> Parsed<String> + 'a,
) -> Text<'a, String> {
    text(title, parse, |value| Some(value.clone()))
}

/// The path of a file or a folder, which is not read here. A relative one starts at `folder`.
pub(crate) fn path<'a>(title: &'static str, folder: &'a Path) -> Text<'a, PathBuf> {
    text(title, |text| Ok(folder.join(text)), |path| Some(path.display().to_string()))
}

/// The path of a file that `read` reads. A relative one starts at `folder`.
pub(crate) fn file<'a, V>(folder: &'a Path, read: impl Fn(PathBuf) -> Parsed<V> + 'a) -> Text<'a, V> {
    secret("file", move |text| read(folder.join(text)))
}

impl<V> Text<'_, V> {
    /// Says that only these texts are possible.
    pub(crate) fn among(self, choices: Vec<&'static str>) -> Self {
        Self { choices, ..self }
    }

    /// The schema, and what says the reference about it.
    fn schema(&self) -> serde_json::Value {
        if self.choices.is_empty() {
            json!({ "type": "string", "title": self.title })
        } else {
            json!({ "type": "string", "title": self.title, "enum": self.choices })
        }
    }
}

impl<V> Kind for Text<'_, V> {
    type Value = V;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<V> {
        let text = entry.string()?;
        (self.parse)(text).map_err(|problem| entry.report_string(text, &problem)).ok()
    }

    fn write(&self, value: &V) -> Option<Value> {
        (self.write)(value).map(Value::from)
    }

    fn schema(&self) -> serde_json::Value {
        Self::schema(self)
    }
}

/// One of several names.
pub(crate) struct Choice<V> {
    values: Vec<(&'static str, V)>,
    /// The problem with another name; it names the expected ones.
    problem: String,
}

/// One of these names.
pub(crate) fn choice<V>(values: Vec<(&'static str, V)>) -> Choice<V> {
    let names: Vec<String> = values.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let expected = match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    };
    Choice { values, problem: format!("is not known; expected {expected}") }
}

/// The name of one value of an enum.
pub(crate) fn named<V: Named>() -> Choice<V> {
    choice(V::ALL.iter().map(|value| (value.name(), *value)).collect())
}

impl<V> Choice<V> {
    /// Replaces the text about another name.
    pub(crate) fn with_problem(self, problem: &str) -> Self {
        Self { problem: problem.to_owned(), ..self }
    }
}

impl<V: Clone + PartialEq> Kind for Choice<V> {
    type Value = V;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<V> {
        let text = entry.string()?;
        let value = self.values.iter().find(|(name, _)| *name == text);
        if value.is_none() {
            entry.report_string(text, &self.problem);
        }
        value.map(|(_, value)| value.clone())
    }

    fn write(&self, value: &V) -> Option<Value> {
        let found = self.values.iter().find(|(_, other)| other == value);
        found.map(|(name, _)| Value::from(*name))
    }

    fn schema(&self) -> serde_json::Value {
        let names: Vec<&str> = self.values.iter().map(|(name, _)| *name).collect();
        json!({ "type": "string", "enum": names })
    }
}

/// A list of texts.
pub(crate) struct List<'a, V> {
    title: &'static str,
    item: Text<'a, V>,
    is_unique: bool,
}

/// A list of texts; `title` is their plural.
pub(crate) fn list<'a, V>(title: &'static str, item: Text<'a, V>) -> List<'a, V> {
    List { title, item, is_unique: false }
}

/// Like [`list`], without the same text twice.
pub(crate) fn unique_list<'a, V>(title: &'static str, item: Text<'a, V>) -> List<'a, V> {
    List { title, item, is_unique: true }
}

impl<V> Kind for List<'_, V> {
    type Value = Vec<V>;

    /// Faulty items are left out: a file with faults is not used.
    fn read(&self, entry: &Entry<'_, '_>) -> Option<Vec<V>> {
        let items = entry.strings();
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let is_known = |other: &Located<&str>| other.value == item.value;
            match (self.item.parse)(item.value) {
                Ok(_) if self.is_unique && items[..index].iter().any(is_known) => {
                    entry.report_item(item, "is in the list twice");
                }
                Ok(value) => values.push(value),
                Err(problem) => entry.report_item(item, &problem),
            }
        }
        Some(values)
    }

    fn write(&self, values: &Vec<V>) -> Option<Value> {
        Some(Value::Array(values.iter().filter_map(|value| self.item.write(value)).collect()))
    }

    fn schema(&self) -> serde_json::Value {
        let title = format!("list of {}", self.title);
        json!({ "type": "array", "title": title, "items": self.item.schema(), "uniqueItems": self.is_unique })
    }
}
