//! The pages of the admin listener about the mirror, and its metrics.

use oaimend_oai::UnixSecs;
use std::time::Duration;

use oaimend::config::Mapping;
use oaimend_base::clock::Clock as _;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;
use serde_json::{Value, json};

use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::proxy::{Proxy, at_once};
use crate::fixtures::source::{Source, fetch, post};

/// A proxy that mirrors the source once a day.
fn mirroring(source: &Source) -> Proxy {
    Proxy::tuned(source, |mapping| {
        let interval = Duration::from_secs(86_400);
        mapping.mirror = Some(MirrorSettings { interval: Some(interval), ..MirrorSettings::default() });
    })
}

#[test]
fn state_of_the_mirror_is_shown() {
    let mut collection = Collection::of(25);
    collection.entries.get_mut(&identifier(3)).expect("it exists").deleted = true;
    let now_secs = collection.now_secs;
    let (source, _collection) = collection.start();
    let proxy = mirroring(&source);
    proxy.wait_for_harvests("x", 1);
    let state = proxy.admin_json("/-/mirror/x");
    let format = &state["formats"][0];
    assert_eq!(
        (&state["state"], &format["prefix"], &format["records"], &format["deleted"]),
        (&json!("complete"), &json!("oai_dc"), &json!(24), &json!(1)),
        "{state}"
    );
    let reached = oaimend_oai::datestamp::from_secs(
        UnixSecs(now_secs - 1),
        oaimend_oai::datestamp::Granularity::Second,
    );
    assert_eq!(format["complete_until"], reached.as_str());
    assert_eq!(format["coverage"].as_array().map(Vec::len), Some(1), "{state}");
    let sets = state["sets"].as_array().expect("a list");
    let even = sets.iter().find(|set| set["set_spec"] == "even").expect("the set");
    assert_eq!((&even["name"], &even["records"]["oai_dc"]), (&json!("Even numbers"), &json!(13)));
    assert_eq!(state["last_harvest"]["stored"], 24, "{state}");
    assert!(state["next_harvest_at"].is_string(), "{state}");
    assert_eq!(state["harvest"], Value::Null);
    let all = proxy.admin_json("/-/mirror");
    assert_eq!(all["repositories"].as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!(all["repositories"][0]["formats"], state["formats"]);
    assert!(proxy.admin_json("/-/mirror/nope")["error"].is_string());
}

#[test]
fn failures_of_a_harvest_are_shown() {
    let (source, _collection) =
        Collection { fails_at: Some("verb=List".to_owned()), ..Collection::of(5) }.start();
    let proxy = mirroring(&source);
    let harvest = proxy.wait_for_harvests("x", 1);
    assert_eq!(harvest["last"]["is_success"], false, "{harvest}");
    let state = proxy.admin_json("/-/mirror/x");
    let error = state["last_harvest"]["errors"][0].as_str().unwrap_or_default();
    assert!(error.contains("404"), "{state}");
    assert_eq!((&state["state"], &state["lag_secs"]), (&json!("never-harvested"), &Value::Null), "{state}");
}

#[test]
fn operator_starts_a_harvest() {
    let (source, collection) = Collection::of(25).start();
    let proxy = mirroring(&source);
    proxy.wait_for_harvests("x", 1);
    assert_eq!(post(proxy.admin(), "/-/mirror/x/sync", "").status, 202);
    let harvest = proxy.wait_for_harvests("x", 2);
    assert_eq!(harvest["last"]["summary"], "0 stored, 0 deleted, 0 unchanged, 0 missing", "{harvest}");
    {
        // The source does not answer while the test holds the collection.
        let mut collection = collection.lock().expect("no test panics while it holds this");
        let now_secs = collection.now_secs + DAY_SECS;
        let entry = collection.entries.get_mut(&identifier(7)).expect("it exists");
        (entry.datestamp_secs, entry.title) = (now_secs, "Changed".to_owned());
        collection.now_secs = now_secs;
        assert_eq!(post(proxy.admin(), "/-/mirror/x/sync", "").status, 202);
        assert_eq!(post(proxy.admin(), "/-/mirror/x/sync", "").status, 409);
        while proxy.admin_json("/-/mirror/x")["state"] != "harvesting" {
            std::thread::yield_now();
        }
        assert_eq!(post(proxy.admin(), "/-/mirror/x/sync", "").status, 409);
        assert_eq!(proxy.admin_json("/-/mirror/x/harvest")["ended"], 2);
    }
    let harvest = proxy.wait_for_harvests("x", 3);
    assert_eq!(harvest["last"]["summary"], "1 stored, 0 deleted, 0 unchanged, 0 missing", "{harvest}");
}

#[test]
fn deletions_wait_until_an_operator_accepts_them() {
    let (source, collection) = Collection { deleted_record: "no", ..Collection::of(60) }.start();
    let proxy = mirroring(&source);
    proxy.wait_for_harvests("x", 1);
    collection.lock().expect("no panic").entries.retain(|identifier, _| identifier.ends_with('1'));
    drop(proxy.clock.pause(Duration::from_secs(86_400)));
    let harvest = proxy.wait_for_harvests("x", 2);
    assert_eq!(
        (&harvest["last"]["is_success"], &harvest["last"]["is_complete"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(proxy.admin_json("/-/mirror/x")["formats"][0]["held_deletions"], 54);
    assert_eq!(post(proxy.admin(), "/-/mirror/x/sync?accept_deletions=true", "").status, 202);
    proxy.wait_for_harvests("x", 3);
    let format = &proxy.admin_json("/-/mirror/x")["formats"][0];
    assert_eq!((&format["held_deletions"], &format["records"]), (&json!(0), &json!(6)), "{format}");
}

#[test]
fn wrong_requests_for_a_harvest_are_refused() {
    let (source, _collection) = Collection::of(5).start();
    let proxy = mirroring(&source);
    for (path, headers, status) in [
        ("/-/mirror/nope/sync", "", 404),
        ("/-/mirror/x", "", 405),
        ("/-/mirror/x/sync?accept_deletions=yes", "", 400),
        ("/-/mirror/x/sync", "Origin: http://evil.example\r\n", 403),
        ("/-/mirror/nope/verify", "", 404),
        ("/-/mirror/x/compact?thorough=true", "", 400),
        ("/-/mirror/x/forget", "Origin: http://evil.example\r\n", 403),
    ] {
        assert_eq!(post(proxy.admin(), path, headers).status, status, "{path} {headers}");
    }
    let unmirrored = Proxy::of(&source);
    assert_eq!(post(unmirrored.admin(), "/-/mirror/x/sync", "").status, 404);
}

#[test]
fn maintenance_and_records_are_answered_while_the_server_runs() {
    let (source, collection) = Collection::of(25).start();
    let proxy = mirroring(&source);
    proxy.wait_for_harvests("x", 1);
    let result = |path: &str| post(proxy.admin(), path, "").text();
    assert_eq!(result("/-/mirror/x/verify"), "{\"verified\":{\"damaged\":0,\"records\":25}}\n");
    assert!(result("/-/mirror/x/compact").starts_with("{\"compacted\":{\"freed_bytes\":"));
    let compared: Value =
        serde_json::from_str(&result("/-/mirror/x/verify?against_source=true")).expect("JSON");
    assert_eq!(
        (&compared["compared"]["listed"], &compared["compared"]["missing"]["count"]),
        (&json!(25), &json!(0))
    );
    let records =
        fetch(proxy.admin(), "/-/mirror/x/records?format=ids&from=2020-01-03&until=2020-01-05").text();
    assert_eq!(records.lines().count(), 3, "{records}");
    let get = |path: &str| fetch(proxy.admin(), path).status;
    assert_eq!(get("/-/mirror/nope/records"), 404);
    for query in ["format=csv", "from=yesterday", "verb=ListRecords"] {
        assert_eq!(get(&format!("/-/mirror/x/records?{query}")), 400, "{query}");
    }
    {
        // The source does not answer while the test holds the collection.
        let _collection = collection.lock().expect("no test panics while it holds this");
        assert_eq!(post(proxy.admin(), "/-/mirror/x/sync", "").status, 202);
        while proxy.admin_json("/-/mirror/x")["state"] != "harvesting" {
            std::thread::yield_now();
        }
        let refused = post(proxy.admin(), "/-/mirror/x/forget", "");
        assert_eq!(refused.status, 409, "{}", refused.text());
    }
    proxy.wait_for_harvests("x", 2);
    assert_eq!(result("/-/mirror/x/forget"), "{\"forgotten\":{\"is_mirrored\":true}}\n");
    let harvest = proxy.wait_for_harvests("x", 3);
    assert_eq!(harvest["last"]["summary"], "25 stored, 0 deleted, 0 unchanged, 0 missing", "{harvest}");
}

#[test]
fn mirror_of_a_mirror_reads_the_number_of_its_records() {
    let mut collection = Collection::of(250);
    collection.entries.get_mut(&identifier(3)).expect("it exists").deleted = true;
    let (source, _collection) = collection.start();
    // A mirror gets the number in any case, because its requests say that it needs it.
    for total_elements in [true, false] {
        let settings = || Some(MirrorSettings::default());
        let first = Proxy::with(|config| {
            config.mirror.total_elements = total_elements;
            config.repositories.add_fixed(Mapping { mirror: settings(), ..at_once(&source) });
        });
        first.wait_for_harvests("x", 1);
        let base_url = format!("http://{}/_mirror/x", first.address());
        let mapping = Mapping::new("y", &base_url, &Limits::default()).expect("a legal mapping");
        let second = Proxy::with(|config| {
            config.repositories.add_fixed(Mapping { mirror: settings(), ..mapping });
        });
        second.wait_for_harvests("y", 1);
        let state = second.admin_json("/-/mirror/y");
        assert_eq!(
            (&state["total_elements"], &state["formats"][0]["records"]),
            (&json!(250), &json!(249)),
            "{state}"
        );
        let page = second.get("/y?verb=ListRecords&metadataPrefix=oai_dc").text();
        assert!(page.contains("completeListSize=\"250\"") && !page.contains("totalElements"), "{page}");
    }
}

#[test]
fn metrics_have_the_size_and_the_age_of_each_mirror() {
    let mut collection = Collection::of(25);
    collection.entries.get_mut(&identifier(3)).expect("it exists").deleted = true;
    let (source, collection) = collection.start();
    let proxy = mirroring(&source);
    proxy.wait_for_harvests("x", 1);
    let metric = |name: &str| {
        let text = fetch(proxy.admin(), "/-/metrics").text();
        let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next()?.parse::<i64>().ok())
    };
    assert_eq!(metric("oaimend_mirror_records{repository=\"x\"}"), Some(24));
    assert_eq!(metric("oaimend_mirror_tombstones{repository=\"x\"}"), Some(1));
    assert!(metric("oaimend_mirror_bytes{repository=\"x\"}").is_some_and(|bytes| bytes > 100));
    let lag = || metric("oaimend_mirror_lag_seconds{repository=\"x\"}").expect("it was harvested");
    let (lag_before, success) = (lag(), metric("oaimend_mirror_last_success_timestamp_seconds{"));
    assert!((0..60).contains(&lag_before), "{lag_before}");
    let harvests = |outcome: &str| {
        metric(&format!("oaimend_mirror_harvests_total{{outcome=\"{outcome}\",repository=\"x\"}}"))
    };
    assert_eq!((harvests("complete"), harvests("failed")), (Some(1), None));
    collection.lock().expect("no panic").fails_at = Some("verb".to_owned());
    drop(proxy.clock.pause(Duration::from_secs(5_000)));
    assert_eq!(post(proxy.admin(), "/-/mirror/x/sync", "").status, 202);
    proxy.wait_for_harvests("x", 2);
    assert_eq!((harvests("complete"), harvests("failed")), (Some(1), Some(1)));
    assert!(lag() >= lag_before + 5_000, "{lag_before} {}", lag());
    assert_eq!(metric("oaimend_mirror_last_success_timestamp_seconds{"), success);
}
