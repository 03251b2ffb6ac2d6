//! The keys of the gateway in `oaimend.toml` and in mappings.

use oaimend::config::{CanonicalPage, Config, CorsOrigins, Flags, GatewayPolicy, RecordPages, Robots, Theme};
use std::path::Path;
use url::Url;

use crate::config::{check, folder};

fn load(folder: &Path) -> Config {
    let (config, mappings) = (Some(folder.join("oaimend.toml")), Some(folder.join("mappings")));
    Config::load(&Flags { config, mappings, ..Flags::default() }).expect("no faults")
}

#[test]
fn every_key_of_the_gateway_can_be_set() {
    let main = r#"
[gateway]
enabled = false
title = "Dunes & cliffs"
contact = "dunes@example.org"
robots = "deny"
canonical = "self"
theme_css = "theme.css"
cors_origins = ["https://search.example.org", "http://localhost:3000"]
hub = "https://hub.example.org/push"
"#;
    let mapping = |records: &str| format!("base_url = \"http://x/\"\n{records}\n");
    let folder = folder(&[
        ("oaimend.toml", main),
        ("theme.css", "h1 { color: teal }"),
        ("mappings/a.toml", &mapping("")),
        ("mappings/b.toml", &mapping("records = \"self\"")),
        ("mappings/c.toml", &mapping("records = \"link\"")),
        ("mappings/d.toml", &mapping("records = \"off\"")),
    ]);
    let config = load(folder.path());
    let theme = Theme { path: folder.path().join("theme.css"), css: "h1 { color: teal }".to_owned() };
    let expected = GatewayPolicy {
        enabled: false,
        title: "Dunes & cliffs".to_owned(),
        contact: Some("dunes@example.org".to_owned()),
        robots: Robots::Deny,
        canonical: CanonicalPage::Own,
        theme: Some(theme),
        cors_origins: CorsOrigins::Listed(vec![
            "https://search.example.org".to_owned(),
            "http://localhost:3000".to_owned(),
        ]),
        hub: Some(Url::parse("https://hub.example.org/push").expect("a literal URL")),
    };
    assert_eq!(config.gateway, expected);
    for (id, records) in
        [("a", RecordPages::Own), ("b", RecordPages::Own), ("c", RecordPages::Link), ("d", RecordPages::Off)]
    {
        assert_eq!(config.repositories.find(id).map(|mapping| mapping.records), Some(records), "{id}");
    }
}

#[test]
fn gateway_is_on_and_has_the_address_of_the_operator() {
    let main = "admin_email = \"oai@example.org\"\n";
    let folder = folder(&[("oaimend.toml", main), ("mappings/x.toml", "base_url = \"http://x/\"\n")]);
    let gateway = load(folder.path()).gateway;
    assert_eq!(gateway.contact.as_deref(), Some("oai@example.org"));
    assert!(gateway.enabled && gateway.theme.is_none(), "{gateway:?}");
}

#[test]
fn faults_of_the_gateway_name_the_expected_value() {
    let main = r#"[gateway]
enabled = "yes"
title = " "
contact = "mailto:a@example.org"
robots = "none"
theme_css = "missing.css"
cors_origins = ["https://search.example.org/"]
hub = "https://hub.example.org/#push"
"#;
    let long = "x".repeat((64 << 10) + 1);
    let mapping = "base_url = \"http://x/\"\nrecords = \"own\"\n";
    check(
        &[("oaimend.toml", main), ("mappings/x.toml", mapping)],
        &[],
        78,
        r#"
oaimend.toml:2: gateway.enabled is a string; expected true or false
oaimend.toml:3: gateway.title = " " is not a name; expected a text that is not blank
oaimend.toml:4: gateway.contact = "mailto:a@example.org" is not a mail address; expected one such as "oai@example.org", without mailto:
oaimend.toml:5: gateway.robots = "none" is not known; expected "allow" or "deny"
oaimend.toml:6: gateway.theme_css = "missing.css" cannot be read: No such file or directory (os error 2); expected a CSS file in UTF-8 of at most 65536 bytes
oaimend.toml:7: gateway.cors_origins: "https://search.example.org/" is not an origin; expected "*", or one such as "https://search.example.org"
oaimend.toml:8: gateway.hub = "https://hub.example.org/#push" is not the URL of a hub; expected one such as "https://hub.example.org/" (without user, password and fragment; everybody can read it in the feeds)
mappings/x.toml:2: records = "own" is not known; expected "self", "link" or "off"
"#,
    );
    check(
        &[("oaimend.toml", "[gateway]\ntheme_css = \"long.css\"\n"), ("long.css", &long)],
        &[],
        78,
        "oaimend.toml:2: gateway.theme_css = \"long.css\" is too long; expected a CSS file in UTF-8 of at most 65536 bytes",
    );
}
