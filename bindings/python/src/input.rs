//! The bytes of a page, as Python passes them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyMemoryView, PyString};

/// The bytes of `bytes`, `bytearray`, `memoryview` and other objects with a buffer.
///
/// # Errors
///
/// `TypeError` for other objects. A text has lost the bytes and their charset, so the message says where they are.
pub(crate) fn read_bytes(page: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if let Ok(bytes) = page.extract() {
        return Ok(bytes);
    }
    if let Ok(view) = PyMemoryView::from(page) {
        return view.call_method0("tobytes")?.extract().map_err(Into::into);
    }
    let advice = match page.cast::<PyString>() {
        Ok(_) => {
            "pass the bytes as they were received, such as response.content, or a file opened with \"rb\". \
             If only the text is left, pass text.encode()"
        }
        Err(_) => "bytearray, memoryview and other buffers of bytes are possible too",
    };
    Err(PyTypeError::new_err(format!("expected bytes, not {}: {advice}", page.get_type().name()?)))
}
