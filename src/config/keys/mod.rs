//! The declaration of configuration keys: each key once, with its kind of value, its field and its meaning.
//!
//! Each table has one function that names its keys in order, such as `Cache::declare`. [`Keys`] is what this function is
//! called with. [`read`] takes the values of a file over; [`describe`] collects the keys with their values, for the
//! effective configuration, the JSON Schema and the reference pages. A new key is one more entry of [`declare!`].

mod description;
mod numbers;
mod read;
mod texts;

pub(crate) use description::{Description, What};
pub(crate) use numbers::{Decimals, Flag, millis, requests, seconds, whole};
pub(crate) use read::{Entry, Located, Table, redact_value};
pub(crate) use texts::{
    Choice, List, Text, choice, file, list, named, path, secret, string, text, unique_list,
};

use description::Described;
use oaimend_base::error::Fault;
use read::Document;
use std::path::Path;

/// Declares keys of a table: the meaning, as it is in the reference and in the schema, the name, the kind of value, and
/// the field that the key sets.
macro_rules! declare {
    ($keys:ident: $($(#[doc = $meaning:literal])+ $name:ident: $kind:expr => $field:expr,)+) => {
        $($keys.key(stringify!($name), $kind, &mut $field, concat!($($meaning),+).trim_ascii_start());)+
    };
}

pub(crate) use declare;

/// A kind of value: how it is read and written, and what a JSON Schema says about it.
pub(crate) trait Kind {
    /// The type of the value in the program.
    type Value;

    /// Reads the value of a key. Faults are reported at the entry.
    fn read(&self, entry: &Entry<'_, '_>) -> Option<Self::Value>;

    /// The value as a file contains it; `None`: it is secret, or the file has no such value.
    fn write(&self, value: &Self::Value) -> Option<toml::Value>;

    /// The JSON Schema of the value. Its `title` is the name of the kind in the reference.
    fn schema(&self) -> serde_json::Value;
}

/// A field that a key sets: a value, or one that may be missing.
pub(crate) trait Slot<V> {
    fn set(&mut self, value: V);
    fn value(&self) -> Option<&V>;
}

impl<V> Slot<V> for V {
    fn set(&mut self, value: V) {
        *self = value;
    }

    fn value(&self) -> Option<&V> {
        Some(self)
    }
}

impl<V> Slot<V> for Option<V> {
    fn set(&mut self, value: V) {
        *self = Some(value);
    }

    fn value(&self) -> Option<&V> {
        self.as_ref()
    }
}

/// A walk over the keys of a table.
pub(crate) enum Keys<'d, 't> {
    /// Takes the values of a file over.
    Read(Table<'d, 't>),
    /// Collects the keys.
    Describe(&'d mut Description),
}

/// Reads the text of a file by the keys of its root table, and returns its faults.
pub(crate) fn read(file: &Path, text: &str, declare: impl FnOnce(&mut Keys<'_, '_>)) -> Vec<Fault> {
    let document = Document::new(file, text);
    let mut keys = Keys::Read(document.root());
    declare(&mut keys);
    keys.finish();
    document.into_faults()
}

/// Reads the tables of one key of a file, and returns their faults. The other keys are read by others.
pub(crate) fn read_tables(
    file: &Path,
    text: &str,
    name: &'static str,
    declare: impl FnMut(&mut Keys<'_, '_>),
) -> Vec<Fault> {
    let document = Document::new(file, text);
    Keys::Read(document.root()).tables(name, "", declare);
    document.into_faults()
}

/// The keys of a root table, with their current values.
pub(crate) fn describe(declare: impl FnOnce(&mut Keys<'_, '_>)) -> Description {
    let mut description = Description::default();
    declare(&mut Keys::Describe(&mut description));
    description
}

impl<'d, 't> Keys<'d, 't> {
    /// A key: its name, its kind, the field that it sets, and its meaning.
    pub(crate) fn key<K: Kind>(
        &mut self,
        name: &'static str,
        kind: K,
        slot: &mut impl Slot<K::Value>,
        meaning: &'static str,
    ) {
        match self {
            Self::Read(table) => {
                if let Some(value) = table.take_entry(name).and_then(|entry| kind.read(&entry)) {
                    slot.set(value);
                }
            }
            Self::Describe(description) => {
                let value = (*slot).value().and_then(|value| kind.write(value));
                description.keys.push(Described {
                    name,
                    meaning,
                    what: What::Value { schema: kind.schema(), value },
                });
            }
        }
    }

    /// A table of keys. `declare` names them; an absent table is read as an empty one.
    pub(crate) fn table(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        declare: impl FnOnce(&mut Keys<'_, '_>),
    ) {
        match self {
            Self::Read(table) => {
                let mut keys = Self::Read(table.take_table(name));
                declare(&mut keys);
                keys.finish();
            }
            Self::Describe(description) => {
                let table = describe(declare);
                description.keys.push(Described { name, meaning, what: What::Table(table) });
            }
        }
    }

    /// Tables with names that the operator chooses, all with the same keys. A description calls `declare` once.
    pub(crate) fn named_tables(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        mut declare: impl FnMut(&mut Keys<'_, '_>, Located<String>),
    ) {
        match self {
            Self::Read(table) => {
                for (name, table) in table.take_tables(name) {
                    let mut keys = Self::Read(table);
                    declare(&mut keys, name);
                    keys.finish();
                }
            }
            Self::Describe(description) => {
                let any = Located { value: "NAME".to_owned(), span: 0..0 };
                let table = describe(|keys| declare(keys, any));
                description.keys.push(Described { name, meaning, what: What::NamedTables(table) });
            }
        }
    }

    /// An array of tables, all with the same keys. A description calls `declare` once.
    pub(crate) fn tables(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        mut declare: impl FnMut(&mut Keys<'_, '_>),
    ) {
        match self {
            Self::Read(table) => {
                for table in table.take_list(name) {
                    let mut keys = Self::Read(table);
                    declare(&mut keys);
                    keys.finish();
                }
            }
            Self::Describe(description) => {
                let table = describe(declare);
                description.keys.push(Described { name, meaning, what: What::Tables(table) });
            }
        }
    }

    /// Two keys of which one needs the other. `expected` names the second one if only the first is set.
    pub(crate) fn pair(&mut self, [first, second]: [&'static str; 2], expected: &str) {
        match self {
            Self::Read(table) => {
                for (given, missing, expected) in [(first, second, expected), (second, first, "both")] {
                    if table.has_key(given) && !table.has_key(missing) {
                        let given = table.full_key(given);
                        let missing = table.full_key(missing);
                        table
                            .report_missing(format!("{given} is set without {missing}; expected {expected}"));
                    }
                }
            }
            Self::Describe(description) => description.pairs.push([first, second]),
        }
    }

    /// A key that must be set where its table exists; `problem` is the text of the fault.
    pub(crate) fn require(&mut self, name: &'static str, problem: &str) {
        match self {
            Self::Read(table) if table.is_present() && !table.has_key(name) => {
                table.report_missing(problem.to_owned());
            }
            Self::Read(_) => {}
            Self::Describe(description) => description.required.push(name),
        }
    }

    /// The table that is read, for rules about several keys.
    pub(crate) fn reading(&mut self) -> Option<&mut Table<'d, 't>> {
        match self {
            Self::Read(table) => Some(table),
            Self::Describe(_) => None,
        }
    }

    fn finish(self) {
        if let Self::Read(table) = self {
            table.finish();
        }
    }
}
