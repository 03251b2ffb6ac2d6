//! The repair engine as the Python module `oaimend._engine`.
//!
//! The module has the classes of the engine and no I/O. The Python files in `python/oaimend/` add the adapters
//! for HTTP clients. `_engine.pyi` documents every item for Python.

mod guard;
mod input;
mod options;
mod repaired;
mod report;
mod stream;

use pyo3::prelude::*;

/// The module `oaimend._engine`.
#[pymodule]
mod _engine {
    #[pymodule_export]
    use crate::options::{Limits, Options};
    #[pymodule_export]
    use crate::repaired::{Repaired, Summary, repair};
    #[pymodule_export]
    use crate::report::{Quarantined, Repair, SwallowedItems, UnresolvedField};
    #[pymodule_export]
    use crate::stream::Repairer;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
