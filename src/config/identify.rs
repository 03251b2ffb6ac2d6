//! The `identify` table of a mapping: values for fields that the source's Identify lacks.

use super::keys::{Choice, Keys, Text, choice, declare, string};
use oaimend_oai::datestamp::{self, Granularity};
use oaimend_oai::is_xml_char;
use oaimend_repair::IdentifyValues;

/// The keys of the table.
pub(super) fn declare(values: &mut IdentifyValues, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// `repositoryName`.
        repository_name: string("string", read_name) => values.repository_name,
        /// `adminEmail`. Without it oaimend uses `admin_email` of `oaimend.toml`.
        admin_email: mail_address() => values.admin_email,
        /// `earliestDatestamp`. It must not be later than any datestamp of the source.
        earliest_datestamp: string("datestamp", read_datestamp) => values.earliest_datestamp,
    }
    let deleted_record = one_of(["no", "transient", "persistent"])
        .with_problem("is not known; expected \"no\" or \"transient\" or \"persistent\"");
    declare! { keys:
        /// `deletedRecord`. `"transient"` promises the least.
        deleted_record: deleted_record => values.deleted_record,
        /// `granularity`.
        granularity: one_of([Granularity::Day, Granularity::Second].map(Granularity::name)) => values.granularity,
    }
}

fn one_of<const N: usize>(names: [&'static str; N]) -> Choice<String> {
    choice(names.map(|name| (name, name.to_owned())).into())
}

/// The address of a person or of an office.
pub(super) fn mail_address() -> Text<'static, String> {
    string("mail address", read_email)
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
