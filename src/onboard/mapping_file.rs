//! Writes a mapping file with what the responses of a source have shown. Pure.

use super::probe::{Findings, SLOW_RESPONSE};
use oaimend_base::clock;
use std::fmt::Write as _;
use std::time::SystemTime;
use toml::Value;

/// The `read_timeout_secs` for a slow source, in seconds.
const SLOW_READ_TIMEOUT_SECS: u64 = 120;
/// Maximum number of formats that a comment names.
const FORMATS_NAMED_MAX: usize = 12;

/// The content of a mapping file for a source that works. Settings that only a person can decide are comments.
pub fn write_mapping(
    base_url: &str,
    name: Option<&str>,
    findings: &Findings,
    probed_at: SystemTime,
) -> String {
    let mut file = String::new();
    let identify = findings.identify.as_ref();
    let name = identify.and_then(|identify| identify.name()).or_else(|| name.map(str::to_owned));
    if let Some(name) = name.filter(|name| !name.trim().is_empty()) {
        comment(&mut file, &name);
    }
    comment(&mut file, &describe_protocol(findings, probed_at));
    comment(&mut file, &describe_records(findings));
    if findings.repair_count() > 0 {
        let repairs: Vec<String> =
            findings.repairs.iter().map(|(id, count)| format!("{} {count}", id.name())).collect();
        comment(&mut file, &format!("Repairs in these responses: {}.", repairs.join(", ")));
    }
    setting(&mut file, "base_url", base_url);
    if findings.needs_post {
        comment(&mut file, "It refuses GET.");
        setting(&mut file, "method", "post");
    }
    if findings.slowest >= SLOW_RESPONSE {
        let secs = findings.slowest.as_secs();
        comment(&mut file, &format!("Its slowest response took {secs} s."));
        let _ = writeln!(file, "read_timeout_secs = {SLOW_READ_TIMEOUT_SECS}");
    }
    add_missing_values(&mut file, findings);
    file
}

fn describe_protocol(findings: &Findings, probed_at: SystemTime) -> String {
    let time = clock::utc_datetime(probed_at);
    let day = time.split('T').next().unwrap_or_default();
    let mut text = format!("Probed on {day}: OAI-PMH {}", findings.version.unwrap_or("2.0"));
    if let Some(identify) = &findings.identify {
        let _ = write!(text, ", granularity {}", identify.granularity.name());
        if let Some(deleted) = &identify.deleted_record {
            let _ = write!(text, ", deletedRecord {deleted}");
        }
    }
    let named: Vec<&str> = findings.formats.iter().take(FORMATS_NAMED_MAX).map(String::as_str).collect();
    if !named.is_empty() {
        let more = if named.len() < findings.formats.len() { ", and more" } else { "" };
        let _ = write!(text, "; formats {}{more}", named.join(", "));
    }
    text.push('.');
    text
}

fn describe_records(findings: &Findings) -> String {
    let prefix = findings.prefix.as_deref().unwrap_or_default();
    if let Some(error) = findings.list_error {
        return format!("ListRecords in {prefix} returns {}.", error.name());
    }
    let of = findings.list_size.map(|size| format!(" of {size}")).unwrap_or_default();
    let mut text = format!("The first page in {prefix} has {}{of} records", findings.records);
    if findings.quarantined > 0 {
        let _ = write!(text, ", and {} that cannot be repaired", findings.quarantined);
    }
    if let Some(continued) = &findings.continued {
        let _ = write!(text, "; it ends early ({})", continued.reason.name());
    }
    text.push('.');
    text
}

/// Adds the values that Identify lacks, for a person to fill in.
fn add_missing_values(file: &mut String, findings: &Findings) {
    let Some(identify) = &findings.identify else { return };
    let values = [
        ("repository_name", "the name of the repository", identify.name().is_none()),
        ("admin_email", "operator@source.example", identify.admin_emails().is_empty()),
        ("earliest_datestamp", "1990-01-01", identify.earliest_datestamp().is_none()),
        ("deleted_record", "transient", identify.deleted_record.is_none()),
    ];
    let missing: Vec<_> = values.into_iter().filter(|(_, _, is_missing)| *is_missing).collect();
    if missing.is_empty() {
        return;
    }
    file.push('\n');
    comment(file, "Identify has no legal value for these elements. Harvesters receive yours:");
    comment(file, "[identify]");
    for (key, example, _) in missing {
        comment(file, &format!("{key} = \"{example}\""));
    }
}

fn setting(file: &mut String, key: &str, value: &str) {
    let _ = writeln!(file, "{key} = {}", Value::from(value));
}

/// A comment of one line. The texts of a source may contain line breaks and control characters, which would end it.
fn comment(file: &mut String, text: &str) {
    let line: String =
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    let _ = writeln!(file, "# {}", line.trim());
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_mirror::view::identify::StoredIdentify;
    use oaimend_repair::RepairId;
    use std::time::Duration;

    const IDENTIFY: &str = "<OAI-PMH><Identify><repositoryName>A &#10;x = 1</repositoryName>\
        <adminEmail>a@a.example</adminEmail><deletedRecord>no</deletedRecord>\
        <granularity>YYYY-MM-DD</granularity></Identify></OAI-PMH>";

    #[test]
    fn file_has_the_facts_as_comments_and_the_settings_that_are_needed() {
        let findings = Findings {
            needs_post: true,
            version: Some("1.1"),
            identify: StoredIdentify::read(IDENTIFY),
            formats: vec!["oai_dc".to_owned(), "marc".to_owned()],
            prefix: Some("oai_dc".to_owned()),
            records: 100,
            list_size: Some(2_000),
            repairs: vec![(RepairId::from_name("control-character").expect("a repair"), 3)],
            quarantined: 1,
            slowest: Duration::from_secs(14),
            ..Findings::default()
        };
        let file = write_mapping("http://a.example/oai?a=\"1\"", None, &findings, SystemTime::UNIX_EPOCH);
        let expected = "# A  x = 1\n\
            # Probed on 1970-01-01: OAI-PMH 1.1, granularity YYYY-MM-DD, deletedRecord no; formats oai_dc, marc.\n\
            # The first page in oai_dc has 100 of 2000 records, and 1 that cannot be repaired.\n\
            # Repairs in these responses: control-character 3.\n\
            base_url = 'http://a.example/oai?a=\"1\"'\n\
            # It refuses GET.\n\
            method = \"post\"\n\
            # Its slowest response took 14 s.\n\
            read_timeout_secs = 120\n\
            \n\
            # Identify has no legal value for these elements. Harvesters receive yours:\n\
            # [identify]\n\
            # earliest_datestamp = \"1990-01-01\"\n";
        assert_eq!(file, expected);
        toml::from_str::<toml::Table>(&file).expect("it is TOML");
    }
}
