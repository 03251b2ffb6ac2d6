//! The effective configuration: a mapping with all values, as the content of a mapping file.

use super::gateway::RecordPages;
use super::mapping::Mapping;
use super::mirror::ServeFrom;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_repair::catalog::CATALOG;
use oaimend_repair::{IdentifyValues, ProvenanceScope, RepairSet};
use oaimend_repository::MASK;
use oaimend_upstream::settings::{HeadersVia, Limits, Method, OnUnrepairable, PageFallback, Politeness};
use std::time::Duration;
use toml::{Table, Value};

impl Mapping {
    /// The mapping with all its values, as the content of its file. Keys without a value are left out.
    ///
    /// `base_url` is written in place of the own one, so that the caller can leave secrets out. Passwords, tokens and the
    /// values of headers are never written.
    pub fn to_toml(&self, base_url: &str) -> String {
        let mut root = Table::new();
        match &self.source.static_file {
            Some(file) => {
                let path = file.path.as_ref().map(|path| path.display().to_string());
                put(&mut root, "static_file", path.unwrap_or_else(|| base_url.to_owned()));
                put_secs(&mut root, "static_check_secs", file.check);
            }
            None => put(&mut root, "base_url", base_url),
        }
        put_some(
            &mut root,
            "user",
            self.source.credentials.as_ref().map(oaimend_base::credentials::Credentials::user),
        );
        let token_file = self.source.bearer_token.as_ref().map(|token| token.path().display().to_string());
        put_some(&mut root, "bearer_token_file", token_file);
        put(&mut root, "proxy", self.source.proxy.shown());
        put_secs(&mut root, "connect_timeout_secs", self.source.connect_timeout);
        put_secs(&mut root, "read_timeout_secs", self.source.read_timeout);
        put(&mut root, "user_agent", self.source.user_agent.as_str());
        put_some(&mut root, "from", self.source.from.as_deref());
        put(&mut root, "allow_private", self.source.allow_private);
        put(&mut root, "redirect_hosts", self.source.redirect_hosts.clone());
        let on_unrepairable = match self.source.on_unrepairable {
            OnUnrepairable::Quarantine => "quarantine",
            OnUnrepairable::Fail => "fail",
        };
        put(&mut root, "on_unrepairable", on_unrepairable);
        put(&mut root, "stale_lists", self.stale_lists);
        put(&mut root, "provenance", provenance_name(self.source.provenance));
        put_some(&mut root, "report_to", self.report_to.as_ref().map(super::ReportTo::name));
        let serve = match self.serve {
            ServeFrom::Live => "live",
            ServeFrom::LiveThenMirror => "live-then-mirror",
            ServeFrom::Mirror => "mirror",
        };
        put(&mut root, "serve", serve);
        let records = match self.records {
            RecordPages::Own => "self",
            RecordPages::Link => "link",
            RecordPages::Off => "off",
        };
        put(&mut root, "records", records);
        self.put_quirks(&mut root);
        let headers = self.source.headers.names().into_iter().map(|name| (name.to_owned(), MASK.into()));
        put(&mut root, "headers", headers.collect::<Table>());
        put(&mut root, "tls", self.tls_table());
        let repairs = [("off", self.source.off), ("enable", self.source.enabled)]
            .map(|(key, set)| (key.to_owned(), names(set)));
        put(&mut root, "repairs", Table::from_iter(repairs));
        put(&mut root, "identify", identify_table(&self.source.identify));
        if self.source.static_file.is_none() {
            put(&mut root, "politeness", politeness_table(&self.source.politeness));
        }
        if let Some(mirror) = &self.mirror {
            put(&mut root, "mirror", mirror_table(mirror));
        }
        put(&mut root, "limits", limits_table(&self.source.limits));
        root.to_string()
    }

    fn tls_table(&self) -> Table {
        let mut table = Table::new();
        let ca_file = self.source.ca_file.as_ref().map(|path| path.display().to_string());
        put_some(&mut table, "ca_file", ca_file);
        if let Some(files) = &self.source.client_certificate {
            put(&mut table, "client_certificate", files.certificate.display().to_string());
            put(&mut table, "client_key", files.key.display().to_string());
        }
        put(&mut table, "verify", self.source.verify);
        table
    }

    /// The keys about the particulars of a source. A static repository file has only some of them.
    fn put_quirks(&self, root: &mut Table) {
        let quirks = &self.source.quirks;
        put_some(root, "charset", quirks.charset);
        put_some(root, "granularity", quirks.granularity.map(|granularity| granularity.name()));
        if self.source.static_file.is_some() {
            return;
        }
        let method = match quirks.method {
            Method::Get => "get",
            Method::Post => "post",
            Method::GetThenPost => "get-then-post",
            Method::PostThenGet => "post-then-get",
        };
        put(root, "method", method);
        let page_fallback = match quirks.page_fallback {
            PageFallback::Off => "off",
            PageFallback::GetRecord => "getrecord",
        };
        put(root, "page_fallback", page_fallback);
        put(root, "refetch_broken_records", quirks.refetch_broken_records);
        put(root, "list_order", if quirks.is_ordered_by_datestamp { "datestamp" } else { "unknown" });
        put_some(root, "version", quirks.version.map(oaimend_upstream::settings::Version::name));
        let headers_via = match quirks.v1_headers_via {
            HeadersVia::ListRecords => "listrecords",
            HeadersVia::GetRecord => "getrecord",
        };
        put(root, "v1_headers_via", headers_via);
        put(root, "request_granularity", if quirks.in_days { "day" } else { "as-requested" });
        put_some(root, "default_set", quirks.default_set.as_deref());
        put(root, "raw_token", quirks.raw_token);
        put(root, "verb_first", quirks.verb_first);
    }
}

fn provenance_name(scope: Option<ProvenanceScope>) -> &'static str {
    scope.map_or("off", ProvenanceScope::name)
}

/// The names of repairs, in the order of the catalog.
fn names(set: RepairSet) -> Value {
    let names = CATALOG.iter().filter(|entry| set.contains(entry.id)).map(|entry| Value::from(entry.name));
    Value::Array(names.collect())
}

fn identify_table(values: &IdentifyValues) -> Table {
    let mut table = Table::new();
    put_some(&mut table, "repository_name", values.repository_name.as_deref());
    put_some(&mut table, "admin_email", values.admin_email.as_deref());
    put_some(&mut table, "earliest_datestamp", values.earliest_datestamp.as_deref());
    put_some(&mut table, "deleted_record", values.deleted_record.as_deref());
    put_some(&mut table, "granularity", values.granularity.as_deref());
    table
}

fn politeness_table(politeness: &Politeness) -> Table {
    let mut table = Table::new();
    put_number(&mut table, "list_requests_max", politeness.list_requests_max as u64);
    put_number(&mut table, "gap_millis", politeness.gap.as_millis() as u64);
    if let Some(max) = politeness.requests_per_minute_max {
        put_number(&mut table, "requests_per_minute_max", u64::from(max.get()));
    }
    table
}

fn mirror_table(settings: &MirrorSettings) -> Table {
    let mut table = Table::new();
    put(&mut table, "prefixes", settings.prefixes.clone());
    put(&mut table, "sets", settings.sets.clone());
    put(&mut table, "set_membership", settings.set_membership.name());
    if let Some(interval) = settings.interval {
        put_secs(&mut table, "interval_secs", interval);
    }
    put_number(&mut table, "request_gap_millis", settings.request_gap.as_millis() as u64);
    put(&mut table, "weight", settings.weight);
    put_number(&mut table, "priority", settings.priority);
    table
}

fn limits_table(limits: &Limits) -> Table {
    let (mut table, repair) = (Table::new(), &limits.repair);
    for (key, count) in [
        ("record_bytes_max", repair.record_bytes_max),
        ("tag_bytes_max", repair.tag_bytes_max),
        ("junk_bytes_max", repair.junk_bytes_max),
        ("head_bytes_max", repair.head_bytes_max),
        ("repairs_per_record_max", repair.repairs_per_record_max),
        ("entity_bytes_max", repair.entity_bytes_max),
        ("depth_max", repair.depth_max),
        ("attributes_per_tag_max", repair.attributes_per_tag_max),
        ("spool_bytes_max", limits.spool_bytes_max),
        ("redirects_max", limits.redirects_max),
        ("static_records_max", limits.static_records_max),
    ] {
        put_number(&mut table, key, count as u64);
    }
    put_number(&mut table, "static_file_bytes_max", limits.static_file_bytes_max);
    put_number(&mut table, "response_bytes_max", limits.response_bytes_max);
    put_number(&mut table, "quarantine_bytes_max", limits.quarantine_bytes_max);
    put_number(&mut table, "quarantine_resolved_days_max", limits.quarantine_resolved_days_max);
    put_number(&mut table, "quarantine_open_days_max", limits.quarantine_open_days_max);
    put_number(&mut table, "inflate_ratio_max", limits.inflate_ratio_max);
    put_number(&mut table, "inflate_empty_bytes_max", limits.inflate_empty_bytes_max);
    put_secs(&mut table, "first_record_timeout_secs", limits.first_record_timeout);
    put_secs(&mut table, "outage_retry_secs", limits.outage_retry);
    table
}

fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

fn put_some(table: &mut Table, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        put(table, key, value);
    }
}

fn put_number(table: &mut Table, key: &str, number: u64) {
    put(table, key, i64::try_from(number).unwrap_or(i64::MAX));
}

fn put_secs(table: &mut Table, key: &str, time: Duration) {
    put_number(table, key, time.as_secs());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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
}
