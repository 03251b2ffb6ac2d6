//! Runs the engine without the lock of the interpreter, and turns a panic into an exception.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Runs `work` while other Python threads continue.
///
/// # Errors
///
/// `RuntimeError` if `work` panics. Without this, PyO3 raises an exception that `except Exception` does not
/// catch. After a panic the caller must drop everything that `work` changed.
pub(crate) fn run_detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    result.map_err(|_| PyRuntimeError::new_err(PANIC_MESSAGE))
}

const PANIC_MESSAGE: &str = "the repair engine failed: this is a fault of oaimend, not of the page. \
    Another attempt with the same page fails too. Please report it, with the bytes of the page";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_exception_of_python() {
        Python::initialize();
        Python::attach(|py| {
            assert_eq!(run_detached(py, || 7).expect("nothing fails"), 7);
            let error = run_detached(py, || panic!("on purpose")).expect_err("the work panics");
            assert!(error.is_instance_of::<PyRuntimeError>(py));
        });
    }
}
