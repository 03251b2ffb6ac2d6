//! The `identify` table of a mapping: values for fields that the source's Identify lacks.

use super::file::Table;
use oaimend_oai::{datestamp, is_xml_char};
use oaimend_repair::IdentifyValues;

/// Reads the `identify` table of a mapping.
pub(super) fn read(mut table: Table<'_, '_>) -> IdentifyValues {
    let mut values = IdentifyValues::default();
    values.repository_name = table.read_parsed("repository_name", read_name);
    values.admin_email = table.read_parsed("admin_email", read_email);
    values.earliest_datestamp = table.read_parsed("earliest_datestamp", read_datestamp);
    values.deleted_record =
        table.read_parsed("deleted_record", |text| read_one_of(text, &["no", "transient", "persistent"]));
    values.granularity =
        table.read_parsed("granularity", |text| read_one_of(text, &["YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ"]));
    table.finish();
    values
}

/// Reads the name of a repository; the error text names the expected value.
pub(super) fn read_name(text: &str) -> Result<String, String> {
    if !text.trim().is_empty() && text.chars().all(is_xml_char) {
        return Ok(text.to_owned());
    }
    Err("is not a name; expected a text that is not blank".to_owned())
}

/// Reads a mail address; the error text names the expected value.
pub(super) fn read_email(text: &str) -> Result<String, String> {
    let parts = text.split_once('@').filter(|(name, _)| !name.is_empty());
    let domain = parts.and_then(|(_, domain)| domain.rsplit_once('.'));
    let is_address = domain.is_some_and(|(host, top)| !host.is_empty() && !top.is_empty());
    if is_address && text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.starts_with("mailto:") {
        return Ok(text.to_owned());
    }
    Err("is not a mail address; expected one such as \"oai@example.org\", without mailto:".to_owned())
}

fn read_datestamp(text: &str) -> Result<String, String> {
    if datestamp::is_legal(text.as_bytes()) {
        return Ok(text.to_owned());
    }
    Err("is not a datestamp; expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ".to_owned())
}

fn read_one_of(text: &str, known: &[&str]) -> Result<String, String> {
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    let known: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
    Err(format!("is not known; expected {}", known.join(" or ")))
}
