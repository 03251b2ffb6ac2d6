//! The effective configuration of a mapping is the mapping.

use super::Mapping;
use oaimend_upstream::settings::Limits;
use std::path::Path;
use toml::{Table, Value};

/// A mapping file in which every key has a value that is not the default.
const ALL_KEYS: &str = r#"
base_url = "https://source.example/oai?key=secret"
connect_timeout_secs = 7
read_timeout_secs = 77
user_agent = "a/1 \"b\""
from = "a@example.org"
proxy = "http://proxy.example:3128"
allow_private = true
redirect_hosts = ["10.0.0.2:8080"]
on_unrepairable = "fail"
stale_lists = true
provenance = "altered"
report_to = "provider@example.org"
serve = "live-then-mirror"
records = "link"
charset = "windows-1251"
granularity = "YYYY-MM-DD"
method = "post-then-get"
page_fallback = "off"
refetch_broken_records = false
list_order = "datestamp"
version = "1.1"
v1_headers_via = "getrecord"
request_granularity = "day"
default_set = "a:b"
raw_token = true
verb_first = true
[tls]
verify = false
[repairs]
off = ["bare-ampersand", "verb-element"]
enable = ["double-encoded"]
[identify]
repository_name = "Maps <&> 'Plans'"
admin_email = "oai@example.org"
earliest_datestamp = "2001-02-03"
deleted_record = "transient"
granularity = "YYYY-MM-DD"
[politeness]
list_requests_max = 3
gap_millis = 250
requests_per_minute_max = 12
[mirror]
prefixes = ["oai_dc", "marc21"]
sets = ["x"]
interval_secs = 3600
request_gap_millis = 15
weight = 2.5
priority = 4
[limits]
record_bytes_max = 1025
tag_bytes_max = 1026
junk_bytes_max = 1027
head_bytes_max = 1028
spool_bytes_max = 1029
repairs_per_record_max = 30
entity_bytes_max = 35
depth_max = 31
attributes_per_tag_max = 32
redirects_max = 3
static_records_max = 34
static_file_bytes_max = 1035
response_bytes_max = 1036
quarantine_bytes_max = 37
inflate_ratio_max = 38
inflate_empty_bytes_max = 1037
first_record_timeout_secs = 39
outage_retry_secs = 40
quarantine_resolved_days_max = 41
quarantine_open_days_max = 42
"#;

fn read(text: &str) -> Mapping {
    let mapping = Mapping::read("x", Path::new("x.toml"), text, &Limits::default());
    mapping.unwrap_or_else(|faults| panic!("{faults:?}\n{text}"))
}

#[test]
fn the_written_mapping_is_the_same_mapping() {
    for text in [ALL_KEYS, "base_url = \"https://source.example/oai\""] {
        let mapping = read(text);
        let written = mapping.to_toml(mapping.source.base_url.as_str());
        assert_eq!(read(&written), mapping, "{written}");
    }
}

#[test]
fn every_key_of_a_mapping_is_written() {
    let written = read(ALL_KEYS).to_toml("https://source.example/oai?key=***");
    let [given, written]: [Table; 2] = [ALL_KEYS, &written].map(|text| text.parse().expect("it is TOML"));
    for (key, value) in &given {
        let tables = value.as_table().zip(written.get(key).and_then(Value::as_table));
        match tables {
            Some((given, written)) => {
                assert!(given.keys().all(|key| written.contains_key(key)), "{key}: {written}");
            }
            None => assert!(written.contains_key(key), "{key}"),
        }
    }
    assert!(!written.to_string().contains("secret"), "{written}");
}
