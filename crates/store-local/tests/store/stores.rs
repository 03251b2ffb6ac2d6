//! The contract of the stores of a data folder, except that of the mirror.

use oaimend_store_contract::{Backend, Stores, contract_tests};

/// The stores of a temporary folder.
struct DataFolder(tempfile::TempDir);

impl DataFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
}

impl Backend for DataFolder {
    fn open(&self) -> Stores {
        let store = oaimend_store_local::open(self.0.path()).expect("it can be written to");
        Stores {
            ledger: store.ledger,
            quarantine: store.quarantine,
            profiles: store.profiles,
            capabilities: store.capabilities,
            activity: store.activity,
            notices: store.notices,
            views: store.views,
            identifiers: store.identifiers,
            full_texts: store.full_texts,
        }
    }
}

contract_tests!(DataFolder::new());
