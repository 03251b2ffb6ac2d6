//! The embedded store: the contract, and its own files.

use oaimend_store::MirrorStore;
use oaimend_store_contract::mirror::a_closed_store_refuses;
use oaimend_store_contract::mirror::fixtures::MirrorBackend;
use oaimend_store_contract::mirror_tests;
use oaimend_store_local::RecordLog;
use std::sync::Arc;

/// A store in a temporary folder.
pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
}

impl MirrorBackend for Folder {
    fn open(&self) -> Arc<dyn MirrorStore> {
        Arc::new(RecordLog::open(self.0.path()).expect("it can be written to"))
    }
}

mirror_tests!(Folder::new());

#[tokio::test]
async fn a_store_without_records_takes_no_files() {
    let folder = Folder::new();
    let store = folder.open();
    a_closed_store_refuses(&Folder::new()).await;
    assert_eq!(store.repositories().await.expect("readable"), [""; 0]);
    store.close();
    assert_eq!(std::fs::read_dir(folder.0.path()).expect("readable").count(), 0);
}
