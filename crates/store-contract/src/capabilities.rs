//! The contract of [`CapabilityStore`](oaimend_store::CapabilityStore), as
//! [`DetectedCapabilities`](oaimend_store::DetectedCapabilities) use it.

use crate::Backend;
use oaimend_store::SourceCapabilities;

fn detected() -> SourceCapabilities {
    let version = Some("1.1".to_owned());
    SourceCapabilities { version, refuses_seconds: true, ..SourceCapabilities::default() }
}

pub async fn capabilities_survive_a_restart_but_not_a_new_mapping(backend: &impl Backend) {
    let stores = backend.open();
    let all = &stores.capabilities;
    assert_eq!(all.detected("x", "a"), SourceCapabilities::default());
    all.update("x", "a", |known| known.version = Some("1.1".to_owned())).await;
    assert_eq!(all.update("x", "a", |known| known.refuses_seconds = true).await, detected());
    all.update("y", "a", |known| known.misses_seconds = true).await;
    stores.close();
    let all = backend.open().capabilities;
    assert_eq!(all.detected("x", "a"), detected());
    assert_eq!(all.detected("x", "b"), SourceCapabilities::default());
    assert!(all.detected("y", "a").misses_seconds && !all.detected("y", "a").refuses_seconds);
}

pub async fn a_closed_store_saves_no_capabilities(backend: &impl Backend) {
    let stores = backend.open();
    stores.close();
    stores.capabilities.update("x", "a", |known| *known = detected()).await;
    assert_eq!(stores.capabilities.detected("x", "a"), detected(), "this process knows them");
    assert_eq!(backend.open().capabilities.detected("x", "a"), SourceCapabilities::default());
}
