//! The JSON Schemas of the files, with which editors complete and check keys.

use super::federations::FederationFile;
use super::keys;
use super::local::MappingKind;
use super::mapping::Mapping;
use super::settings::SettingsValues;
use super::views::ViewFile;
use serde_json::{Value, json};
use std::path::Path;

/// The JSON Schema of `oaimend.toml`. Rules about several keys are checked by the reader only.
pub fn settings_schema() -> Value {
    let mut settings = SettingsValues::default();
    let keys = keys::describe(|keys| settings.declare(keys, Path::new("")));
    with_title(keys.schema(), "oaimend.toml")
}

/// The JSON Schema of a mapping file. Rules about several keys are checked by the reader only.
pub fn mapping_schema() -> Value {
    let mut schema = with_title(Mapping::describe_defaults().schema(), "A mapping file of oaimend");
    schema["oneOf"] = json!([
        { "required": ["base_url"] },
        { "required": ["static_file"] },
        { "required": ["tape_file"] },
        { "properties": { "kind": { "const": MappingKind::Local.name() } }, "required": ["kind"] },
    ]);
    schema
}

/// The JSON Schema of the file of a view. Names of repositories and queries are checked by the reader only.
pub fn view_schema() -> Value {
    with_title(ViewFile::describe_defaults().schema(), "A view of oaimend")
}

/// The JSON Schema of the file of a federation. Names of repositories are checked by the reader only.
pub fn federation_schema() -> Value {
    with_title(FederationFile::describe_defaults().schema(), "A federation of oaimend")
}

fn with_title(mut schema: Value, title: &str) -> Value {
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}
