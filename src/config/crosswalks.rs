//! The `crosswalks` table of `oaimend.toml`, of a mapping and of a view: which formats are made on the fly.

use super::keys::{Entry, Kind, Located};
use oaimend_base::suggestions::find_nearest;
use oaimend_crosswalks::{BUILT_IN, CrosswalkChoice, CrosswalkChoices};
use serde_json::json;
use toml::Value;

/// A table of metadataPrefixes with the choice for each.
pub(super) struct Crosswalks;

const BUILT_IN_CHOICE: &str = "built-in";
const OFF_CHOICE: &str = "off";

impl Kind for Crosswalks {
    type Value = CrosswalkChoices;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<CrosswalkChoices> {
        let mut choices = CrosswalkChoices::default();
        for (Located { value: prefix, span }, value) in entry.named_strings() {
            let choice = match value.value {
                BUILT_IN_CHOICE => CrosswalkChoice::BuiltIn,
                OFF_CHOICE => CrosswalkChoice::Off,
                other => {
                    let text = format!(
                        "crosswalks.{} is {other:?}; expected \"{BUILT_IN_CHOICE}\" or \"{OFF_CHOICE}\"",
                        prefix.escape_debug()
                    );
                    entry.report(value.span, text);
                    continue;
                }
            };
            if prefixes().any(|known| known == prefix) {
                choices.0.insert(prefix.to_owned(), choice);
            } else {
                entry.report(span, unknown(prefix));
            }
        }
        Some(choices)
    }

    fn write(&self, choices: &CrosswalkChoices) -> Option<Value> {
        let name = |choice: &CrosswalkChoice| match choice {
            CrosswalkChoice::BuiltIn => BUILT_IN_CHOICE,
            CrosswalkChoice::Off => OFF_CHOICE,
        };
        let written = choices.0.iter().map(|(prefix, choice)| (prefix.clone(), name(choice).into()));
        Some(Value::Table(written.collect()))
    }

    fn schema(&self) -> serde_json::Value {
        let choice = json!({ "type": "string", "enum": [BUILT_IN_CHOICE, OFF_CHOICE] });
        let properties: serde_json::Map<_, _> =
            prefixes().map(|prefix| (prefix.to_owned(), choice.clone())).collect();
        json!({
            "type": "object",
            "title": "table of `\"built-in\"` and `\"off\"`",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

fn prefixes() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|row| row.prefix)
}

fn unknown(prefix: &str) -> String {
    let names: Vec<&str> = prefixes().collect();
    let name = prefix.escape_debug();
    match find_nearest(prefix, &names) {
        Some(near) => format!("there is no built-in crosswalk to \"{name}\"; did you mean \"{near}\"?"),
        None => format!("there is no built-in crosswalk to \"{name}\"; expected one of {}", names.join(", ")),
    }
}
