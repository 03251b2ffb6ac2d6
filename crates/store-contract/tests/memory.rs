//! The contract of the stores, for the stores in memory.

use oaimend_store_contract::{Memory, contract_tests, mirror_tests};

contract_tests!(Memory::default());
mirror_tests!(Memory::default());
