//! The keys of the mirror in `oaimend.toml` and in mappings.

use oaimend::config::{Config, Flags, MirrorPolicy};
use std::path::Path;

use crate::config::{check, folder};

fn load(folder: &Path) -> Config {
    let (config, mappings) = (Some(folder.join("oaimend.toml")), Some(folder.join("mappings")));
    Config::load(&Flags { config, mappings, ..Flags::default() }).expect("no faults")
}

#[test]
fn every_key_of_the_mirror_can_be_set() {
    let main = r#"
[mirror]
harvests_max = 2
aggregate = false
aggregate_name = "Dunes & cliffs"
aggregate_emails = ["dunes@example.org"]
total_elements = true
"#;
    let folder = folder(&[("oaimend.toml", main), ("mappings/x.toml", "base_url = \"http://x/\"\n")]);
    let config = load(folder.path());
    let mirror = MirrorPolicy {
        harvests_max: 2,
        aggregate: false,
        aggregate_name: Some("Dunes & cliffs".to_owned()),
        aggregate_emails: vec!["dunes@example.org".to_owned()],
        total_elements: true,
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
"#;
    check(
        &[("oaimend.toml", main), ("mappings/_all.toml", "base_url = \"http://x/\"\n")],
        &[],
        78,
        r#"
oaimend.toml:2: mirror.harvests_max = 0 is out of range; expected a whole number from 1 to 1000
oaimend.toml:3: mirror.aggregate is an integer; expected true or false
oaimend.toml:4: mirror.aggregate_name = " " is not a name; expected a text that is not blank
oaimend.toml:5: mirror.aggregate_emails: "b" is not a mail address; expected one such as "oai@example.org", without mailto:
mappings/_all.toml:1: the file name "_all" is not a repository id; expected letters, digits, '.', '_' and '-', the first a letter or digit
"#,
    );
}

#[test]
fn admin_email_is_the_address_of_all_repositories() {
    let main = "admin_email = \"oai@example.org\"\n";
    let folder = folder(&[("oaimend.toml", main), ("mappings/x.toml", "base_url = \"http://x/\"\n")]);
    assert_eq!(load(folder.path()).mirror.aggregate_emails, ["oai@example.org"]);
}
