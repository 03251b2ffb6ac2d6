//! The keys of the mirror in `oaimend.toml` and in mappings.

use oaimend::config::{Config, Flags};
use oaimend_mirror::settings::{MirrorPolicy, MirrorSettings, SetMembership};
use oaimend_rules::schedule::{FreshnessTarget, IntervalBounds};
use oaimend_store::{Collisions, Duplicates};
use std::path::Path;
use std::time::Duration;

use crate::config::{check, folder};

fn load(folder: &Path) -> Config {
    let (config, mappings) = (Some(folder.join("oaimend.toml")), Some(folder.join("mappings")));
    Config::load(&Flags { config, mappings, ..Flags::default() }).expect("no faults")
}

#[test]
fn every_key_of_the_mirror_can_be_set() {
    let main = r#"
[mirror]
freshness = 0.5
interval_min_secs = 600
interval_max_secs = 6_000
harvests_max = 2
aggregate = false
aggregate_name = "Dunes & cliffs"
aggregate_emails = ["dunes@example.org"]
collisions = "newest"
total_elements = true
dump_reserve_bytes = 5_000
"#;
    let mapping = "base_url = \"http://x/\"\n[mirror]\npriority = 7\nweight = 2\ninterval_secs = 61\n\
                   set_membership = \"harvest\"\nduplicates = \"first\"\n";
    let folder = folder(&[("oaimend.toml", main), ("mappings/x.toml", mapping)]);
    let config = load(folder.path());
    let settings = config.repositories.find("x").and_then(|mapping| mapping.mirror.clone());
    let interval = Some(Duration::from_secs(61));
    let set_membership = SetMembership::Harvest;
    let duplicates = Duplicates::First;
    let expected = MirrorSettings {
        priority: 7,
        weight: 2.0,
        interval,
        set_membership,
        duplicates,
        ..MirrorSettings::default()
    };
    assert_eq!(settings, Some(expected));
    let mirror = MirrorPolicy {
        freshness: FreshnessTarget::new(0.5).expect("a share"),
        intervals: IntervalBounds::new(600.0, 6_000.0).expect("bounds"),
        harvests_max: 2,
        aggregate: false,
        aggregate_name: Some("Dunes & cliffs".to_owned()),
        aggregate_emails: vec!["dunes@example.org".to_owned()],
        collisions: Collisions::Newest,
        total_elements: true,
        dump_reserve_bytes: 5_000,
    };
    assert_eq!(config.mirror, mirror);
}

#[test]
fn faults_of_the_mirror_name_the_expected_value() {
    let main = r#"[mirror]
harvests_max = 0
aggregate = 1
aggregate_name = " "
aggregate_emails = ["a@example.org", "b"]
collisions = "both"
freshness = 1
interval_min_secs = 86400
interval_max_secs = 3600
"#;
    let good = "base_url = \"http://x/\"\n";
    let mapping = format!(
        "{good}[mirror]\npriority = 1001\nweight = -0.5\ninterval_secs = \"1h\"\nset_membership = \"all\"\n\
         duplicates = \"last\"\n"
    );
    check(
        &[("oaimend.toml", main), ("mappings/_all.toml", good), ("mappings/x.toml", &mapping)],
        &[],
        78,
        r#"
oaimend.toml:2: mirror.harvests_max = 0 is out of range; expected a whole number from 1 to 1000
oaimend.toml:3: mirror.aggregate is an integer; expected true or false
oaimend.toml:4: mirror.aggregate_name = " " is not a name; expected a text that is not blank
oaimend.toml:5: mirror.aggregate_emails: "b" is not a mail address; expected one such as "oai@example.org", without mailto:
oaimend.toml:6: mirror.collisions = "both" is not known; expected "keep-both", "prefer", "newest" or "closest-to-origin"
oaimend.toml:7: mirror.freshness = 1 is out of range; expected a number from 0.5 to less than 1
oaimend.toml:9: mirror.interval_max_secs = 3600 is out of range; expected a whole number from 86400 to 31536000
mappings/_all.toml:1: the file name "_all" is not a repository id; expected letters, digits, '.', '_' and '-', the first a letter or digit
mappings/x.toml:3: mirror.priority = 1001 is out of range; expected a whole number from 0 to 1000
mappings/x.toml:4: mirror.weight = -0.5 is out of range; expected a number above 0, up to 1000
mappings/x.toml:5: mirror.interval_secs is a string; expected a whole number from 60 to 31536000
mappings/x.toml:6: mirror.set_membership = "all" is not known; expected "headers" or "harvest"
mappings/x.toml:7: mirror.duplicates = "last" is not known; expected "first", "newest" or "suffix"
"#,
    );
}

#[test]
fn suffixes_exclude_harvested_sets() {
    let mapping =
        "base_url = \"http://x/\"\n[mirror]\nduplicates = \"suffix\"\nset_membership = \"harvest\"\n";
    check(
        &[("mappings/x.toml", mapping)],
        &[],
        78,
        r#"
mappings/x.toml:2: mirror.duplicates = "suffix" excludes mirror.set_membership = "harvest": a list of a set does not show which of several records with one identifier it contains
"#,
    );
}

#[test]
fn admin_email_is_the_address_of_all_repositories() {
    let main = "admin_email = \"oai@example.org\"\n";
    let folder = folder(&[("oaimend.toml", main), ("mappings/x.toml", "base_url = \"http://x/\"\n")]);
    assert_eq!(load(folder.path()).mirror.aggregate_emails, ["oai@example.org"]);
}

#[test]
fn longest_interval_is_at_least_the_shortest_one() {
    let main = "[mirror]\ninterval_min_secs = 1_000_000\n";
    let folder = folder(&[("oaimend.toml", main), ("mappings/x.toml", "base_url = \"http://x/\"\n")]);
    let intervals = load(folder.path()).mirror.intervals;
    assert_eq!((intervals.min_secs(), intervals.max_secs()), (1e6, 1e6));
}
