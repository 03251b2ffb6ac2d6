//! The tables of the reference pages docs/reference/configuration.md and configuration-mapping.md: made from the
//! declarations of the keys.
//!
//! A page has lines such as `<!-- keys of listen, admin -->` and `<!-- end -->`. Between them are the rows of these keys
//! and of all keys of these tables. Each key is on the page exactly once.

use super::federations::FederationFile;
use super::keys::{self, Description, What};
use super::mapping::Mapping;
use super::settings::SettingsValues;
use super::views::ViewFile;
use serde_json::Value;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- keys of ";
const END: &str = "<!-- end -->";

/// A row of a table.
struct Row {
    /// The whole names of keys of one kind and meaning, and their defaults.
    names: Vec<String>,
    defaults: Vec<String>,
    kind: String,
    meaning: String,
}

impl Row {
    fn line(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let (names, defaults) = (names.join(", "), self.defaults.join(", "));
        format!("| {names} | {} | {defaults} | {} |\n", self.kind, self.meaning)
    }
}

fn rows(table: &Description, prefix: &str, rows: &mut Vec<Row>) {
    for key in &table.keys {
        let name = format!("{prefix}{}", key.name);
        match &key.what {
            What::Value { schema, value } => {
                let default = match value {
                    _ if table.required.contains(&key.name) => "required".to_owned(),
                    Some(value) => shown_default(value),
                    None => "none".to_owned(),
                };
                let meaning = key.meaning.trim_end_matches('.').replace('|', "\\|");
                let (names, defaults) = (vec![name], vec![default]);
                rows.push(Row { names, defaults, kind: kind(schema), meaning });
            }
            What::Table(table) | What::Tables(table) => self::rows(table, &format!("{name}."), rows),
            What::NamedTables(table) => self::rows(table, &format!("{name}.NAME."), rows),
        }
    }
}

/// The rows, with those of one kind and meaning as one.
fn merged(rows: Vec<Row>) -> Vec<Row> {
    let mut merged: Vec<Row> = Vec::new();
    for row in rows {
        match merged.iter_mut().find(|other| (&other.kind, &other.meaning) == (&row.kind, &row.meaning)) {
            Some(other) => {
                other.names.extend(row.names);
                other.defaults.extend(row.defaults);
            }
            None => merged.push(row),
        }
    }
    merged
}

fn shown_default(value: &toml::Value) -> String {
    match value {
        toml::Value::Array(items) if items.len() > 3 => format!("{} values", items.len()),
        _ => format!("`{}`", value.to_string().replace(env!("CARGO_PKG_VERSION"), "VERSION")),
    }
}

/// The kind of a value, by its schema.
fn kind(schema: &Value) -> String {
    if let Some(title) = schema["title"].as_str() {
        return title.to_owned();
    }
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        return names.join(", ");
    }
    let number = |key: &str| schema[key].as_u64().map(shown_number).unwrap_or(schema[key].to_string());
    match (schema["minimum"].is_null(), schema["exclusiveMaximum"].is_null()) {
        _ if schema["type"] == "boolean" => "boolean".to_owned(),
        (true, _) => format!("above {}, up to {}", number("exclusiveMinimum"), number("maximum")),
        (_, true) => format!("{} to {}", number("minimum"), number("maximum")),
        (_, false) => format!("{} to less than {}", number("minimum"), number("exclusiveMaximum")),
    }
}

/// A number as people read it: a high power of two, or with commas.
fn shown_number(number: u64) -> String {
    if number >= 1 << 30 && number.is_power_of_two() {
        return format!("2^{}", number.ilog2());
    }
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// The page with its tables, and the keys that it does not list.
fn with_tables(page: &str, keys: Vec<Row>) -> (String, Vec<String>) {
    let (mut new, mut rest) = (String::new(), keys);
    let mut parts = page.split_inclusive('\n');
    while let Some(line) = parts.next() {
        new.push_str(line);
        let Some(wanted) = line.trim_end().strip_prefix(BEGIN).and_then(|names| names.strip_suffix(" -->"))
        else {
            continue;
        };
        let wanted: Vec<&str> = wanted.split(", ").collect();
        let is_wanted = |row: &Row| {
            let below =
                |table: &&str| row.names[0].strip_prefix(*table).is_some_and(|rest| rest.starts_with('.'));
            wanted.contains(&&*row.names[0]) || wanted.iter().any(below)
        };
        new.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        let (listed, others): (Vec<Row>, Vec<Row>) = rest.into_iter().partition(is_wanted);
        rest = others;
        new.extend(merged(listed).iter().map(Row::line));
        new.push('\n');
        let end = parts.find(|line| line.trim_end() == END);
        new.push_str(end.unwrap_or("the end of the table is missing\n"));
    }
    (new, rest.into_iter().flat_map(|row| row.names).collect())
}

/// Compares a file with its new content, or writes it if the environment says so.
#[track_caller]
fn check_file(path: &str, content: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("OAIMEND_BLESS").is_some() {
        std::fs::write(&file, content).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == content, "{path} is old: OAIMEND_BLESS=1 cargo test --lib config::reference");
}

#[track_caller]
fn check_page(path: &str, table: &Description) {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default();
    let mut all = Vec::new();
    rows(table, "", &mut all);
    let (new, missing) = with_tables(&page, all);
    assert!(missing.is_empty(), "{path} has no line \"{BEGIN}…\" for {missing:?}");
    check_file(path, &new);
}

#[test]
fn the_reference_lists_the_keys_of_the_settings() {
    let mut settings = SettingsValues::default();
    let table = keys::describe(|keys| settings.declare(keys, Path::new("")));
    check_page("docs/reference/configuration.md", &table);
}

#[test]
fn the_reference_lists_the_keys_of_mappings() {
    let mut table = Mapping::describe_defaults();
    // They are the same as in oaimend.toml, and documented there.
    table.keys.retain(|key| key.name != "limits");
    check_page("docs/reference/configuration-mapping.md", &table);
}

#[test]
fn the_reference_lists_the_keys_of_views() {
    check_page("docs/how-to/views.md", &ViewFile::describe_defaults());
}

#[test]
fn the_reference_lists_the_keys_of_federations() {
    check_page("docs/how-to/federation.md", &FederationFile::describe_defaults());
}

#[test]
fn the_schemas_of_the_examples_are_new() {
    for (path, schema) in [
        ("packaging/debian/oaimend.schema.json", super::settings_schema()),
        ("mappings/mapping.schema.json", super::mapping_schema()),
        ("examples/views/view.schema.json", super::view_schema()),
        ("examples/federations/federation.schema.json", super::federation_schema()),
    ] {
        check_file(path, &format!("{schema:#}\n"));
    }
}
