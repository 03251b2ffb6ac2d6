//! The `crosswalks` table of `oaimend.toml`, of a mapping and of a view: which formats are made on the fly.

use super::keys::{Entry, Kind, Located};
use oaimend_base::suggestions::find_nearest;
use oaimend_crosswalks::{BUILT_IN, CrosswalkChoice, CrosswalkChoices, LINKS_PREFIX, SheetCrosswalk};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use toml::Value;

/// A table of metadataPrefixes with the choice for each.
pub(super) struct Crosswalks;

const BUILT_IN_CHOICE: &str = "built-in";
const OFF_CHOICE: &str = "off";

impl Kind for Crosswalks {
    type Value = CrosswalkChoices;

    fn read(&self, entry: &Entry<'_, '_>) -> Option<CrosswalkChoices> {
        let mut choices = CrosswalkChoices::default();
        for (Located { value: prefix, span }, Located { value, span: place }) in entry.named_strings() {
            let is_known = prefixes().any(|known| known == prefix);
            let choice = match value {
                BUILT_IN_CHOICE if is_known => Ok(CrosswalkChoice::BuiltIn),
                BUILT_IN_CHOICE => Err((span, unknown(prefix))),
                OFF_CHOICE => Ok(CrosswalkChoice::Off),
                path => read_sheet(prefix, &entry.folder().join(path)).map_err(|problem| {
                    (place, format!("crosswalks.{} is {path:?}: {problem}", prefix.escape_debug()))
                }),
            };
            match choice {
                Ok(choice) => drop(choices.0.insert(prefix.to_owned(), choice)),
                Err((span, text)) => entry.report(span, text),
            }
        }
        Some(choices)
    }

    fn write(&self, choices: &CrosswalkChoices) -> Option<Value> {
        let name = |choice: &CrosswalkChoice| match choice {
            CrosswalkChoice::BuiltIn => Some(BUILT_IN_CHOICE.into()),
            CrosswalkChoice::Off => Some(OFF_CHOICE.into()),
            // Its text is known, and not the name of its file.
            CrosswalkChoice::Sheet(_) => None,
        };
        let written = choices.0.iter().filter_map(|(prefix, choice)| Some((prefix.clone(), name(choice)?)));
        Some(Value::Table(written.collect()))
    }

    fn schema(&self) -> serde_json::Value {
        json!({
            "type": "object",
            "title": "table of `\"built-in\"`, `\"off\"` and files",
            "properties": prefixes().map(|prefix| (prefix, json!({ "type": "string" }))).collect::<BTreeMap<_, _>>(),
            "additionalProperties": { "type": "string", "pattern": "^off$|\\.xslt?$" },
        })
    }
}

/// Reads the file of a sheet for a metadataPrefix; the error text says what is wrong.
fn read_sheet(prefix: &str, path: &Path) -> Result<CrosswalkChoice, String> {
    if path.extension().is_none_or(|extension| extension != "xsl" && extension != "xslt") {
        return Err(format!(
            "expected \"{BUILT_IN_CHOICE}\", \"{OFF_CHOICE}\" or a file that ends with .xsl"
        ));
    }
    let text = std::fs::read(path).map_err(|error| format!("the sheet cannot be read: {error}"))?;
    SheetCrosswalk::read(prefix, text).map(|sheet| CrosswalkChoice::Sheet(Arc::new(sheet)))
}

fn prefixes() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|row| row.prefix).chain([LINKS_PREFIX])
}

fn unknown(prefix: &str) -> String {
    let names: Vec<&str> = prefixes().collect();
    let name = prefix.escape_debug();
    match find_nearest(prefix, &names) {
        Some(near) => format!("there is no built-in crosswalk to \"{name}\"; did you mean \"{near}\"?"),
        None => format!("there is no built-in crosswalk to \"{name}\"; expected one of {}", names.join(", ")),
    }
}
