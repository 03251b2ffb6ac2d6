//! The keys of a table with their values, as data.

use serde_json::{Map, json};
use toml::Value;

/// The keys of a table, in the order of their declaration.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(crate) keys: Vec<Described>,
    /// Keys that require each other.
    pub(super) pairs: Vec<[&'static str; 2]>,
    /// Keys without which the table is faulty.
    pub(crate) required: Vec<&'static str>,
}

/// A key.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) what: What,
}

/// The value of a key.
#[derive(Debug)]
pub(crate) enum What {
    /// A value with its schema; `None`: it has none, or it is secret.
    Value { schema: serde_json::Value, value: Option<Value> },
    /// A table.
    Table(Description),
    /// Any number of tables with names that the operator chooses.
    NamedTables(Description),
    /// Any number of tables without names.
    Tables(Description),
}

impl Description {
    /// The values, as a file contains them.
    pub(crate) fn values(self) -> toml::Table {
        let value = |key: Described| match key.what {
            What::Value { value, .. } => Some((key.name.to_owned(), value?)),
            What::Table(table) => Some((key.name.to_owned(), Value::Table(table.values()))),
            What::NamedTables(_) | What::Tables(_) => None,
        };
        self.keys.into_iter().filter_map(value).collect()
    }

    /// The JSON Schema of the table. Its defaults are the values.
    pub(crate) fn schema(&self) -> serde_json::Value {
        let properties: Map<String, serde_json::Value> =
            self.keys.iter().map(|key| (key.name.to_owned(), key.schema())).collect();
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        for [first, second] in &self.pairs {
            schema["dependentRequired"][first] = json!([second]);
            schema["dependentRequired"][second] = json!([first]);
        }
        schema
    }
}

impl Described {
    fn schema(&self) -> serde_json::Value {
        let mut schema = match &self.what {
            What::Value { schema, value } => {
                let mut schema = schema.clone();
                if let Some(value) = value {
                    schema["default"] = json!(value);
                }
                schema
            }
            What::Table(table) => table.schema(),
            What::NamedTables(table) => {
                json!({ "type": "object", "additionalProperties": table.schema() })
            }
            What::Tables(table) => json!({ "type": "array", "items": table.schema() }),
        };
        schema["description"] = json!(self.meaning);
        schema
    }
}
