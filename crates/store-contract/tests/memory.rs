//! The contract of the stores, for the stores in memory.

use oaimend_store_contract::{Memory, contract_tests};

contract_tests!(Memory::default());
