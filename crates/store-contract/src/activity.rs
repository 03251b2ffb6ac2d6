//! The contract of [`ActivityStore`](oaimend_store::ActivityStore), as [`ActivityLog`] uses it.

use crate::Backend;
use oaimend_oai::UnixSecs;
use oaimend_store::{
    ActivityLog, ActivityUpdate, DayCounts, RepairExample, RepositoryActivity, SourceResult,
};

const NOW_SECS: UnixSecs = UnixSecs(1_700_000_000);

fn update(original: &str) -> ActivityUpdate {
    let record = Some("oai:x:1".to_owned());
    let example = RepairExample { record, original: original.to_owned(), replacement: String::new() };
    ActivityUpdate {
        counts: DayCounts { requests: 1, passed: 2, repaired: 3, quarantined: 4, failures: 5 },
        repairs: vec![("bare-ampersand", 3)],
        examples: vec![("bare-ampersand", example)],
        source: SourceResult::Failed {
            request: "verb=Identify".to_owned(),
            reason: "dns",
            details: "no".to_owned(),
            is_repetition: false,
        },
        oai_error: None,
    }
}

fn read(log: &ActivityLog, repository: &str) -> RepositoryActivity {
    log.read(repository, Clone::clone)
}

pub async fn saved_activity_replaces_the_older_one(backend: &impl Backend) {
    let stores = backend.open();
    let log = &stores.activity;
    log.note("x", NOW_SECS, update("a & b"));
    log.note("y", NOW_SECS, update("c"));
    log.save_changed();
    log.note("y", NOW_SECS.plus(1), update("d"));
    let expected = (read(log, "x"), read(log, "y"));
    assert_eq!(expected.1.last_days(NOW_SECS.plus(1), 1)[0].requests, 2);
    stores.close();
    let log = backend.open().activity;
    assert_eq!((read(&log, "x"), read(&log, "y")), expected);
    assert_eq!(read(&log, "z"), RepositoryActivity::default());
}

pub async fn a_closed_store_saves_no_activity(backend: &impl Backend) {
    let stores = backend.open();
    stores.close();
    stores.activity.note("x", NOW_SECS, update("a"));
    stores.activity.save_changed();
    assert_eq!(read(&stores.activity, "x").last_days(NOW_SECS, 1)[0].requests, 1, "this process knows it");
    assert_eq!(read(&backend.open().activity, "x"), RepositoryActivity::default());
}
