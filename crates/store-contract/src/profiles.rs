//! The contract of [`ProfileStore`](oaimend_store::ProfileStore), as
//! [`RepositoryProfiles`](oaimend_store::RepositoryProfiles) use it.

use crate::Backend;
use oaimend_oai::datestamp::Granularity;
use oaimend_store::{ProfileDates, ProfileUpdate, SetUsage};

fn update(set: &str, usage: SetUsage) -> ProfileUpdate {
    let dates = ProfileDates {
        granularity: Some(Granularity::Day),
        earliest: Some("2015-01-01".to_owned()),
        oldest_seen: Some("2014-05-05".to_owned()),
    };
    ProfileUpdate { dates, sets: [(set.to_owned(), usage)].into() }
}

const LEGAL: SetUsage = SetUsage { escaped: false, legal: true };
const ESCAPED: SetUsage = SetUsage { escaped: true, legal: false };

pub async fn profiles_survive_a_restart(backend: &impl Backend) {
    let stores = backend.open();
    stores.profiles.update("x", update("a~x2B.b", LEGAL)).await;
    stores.profiles.update("x", update("c~x2B.d", ESCAPED)).await;
    stores.profiles.update("y", update("c~x2B.d", LEGAL)).await;
    let changed = ProfileDates { granularity: Some(Granularity::Second), ..ProfileDates::default() };
    stores.profiles.update("x", ProfileUpdate { dates: changed, ..ProfileUpdate::default() }).await;
    let expected = stores.profiles.dates("x");
    assert_eq!(expected.granularity, Some(Granularity::Second));
    stores.close();
    let stores = backend.open();
    let profiles = &stores.profiles;
    assert_eq!((profiles.dates("x"), profiles.dates("z")), (expected, ProfileDates::default()));
    assert_eq!(profiles.source_set("x", "a~x2B.b"), None, "sets of earlier saves stay");
    assert_eq!(profiles.source_set("x", "c~x2B.d").as_deref(), Some("c+d"));
    assert_eq!(profiles.source_set("y", "a~x2B.b").as_deref(), Some("a+b"));
    assert_eq!(profiles.update("x", update("c~x2B.d", LEGAL)).await, ["c~x2B.d"], "its other use was saved");
    stores.close();
    assert_eq!(backend.open().profiles.collisions("x"), ["c~x2B.d"]);
}

pub async fn a_closed_store_saves_no_profile(backend: &impl Backend) {
    let stores = backend.open();
    stores.close();
    stores.profiles.update("x", update("a~x2B.b", LEGAL)).await;
    assert_eq!(stores.profiles.source_set("x", "a~x2B.b"), None, "this process knows it");
    assert_eq!(backend.open().profiles.dates("x"), ProfileDates::default());
}
