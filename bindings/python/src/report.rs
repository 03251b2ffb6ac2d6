//! The entries of a report, as classes of Python. They are values: comparable, hashable, and can be pickled.

use std::borrow::Cow;

use oaimend_repair::journal::{Change, Entry};
use oaimend_repair::{QuarantineReason, RepairId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// One entry of a report.
#[derive(Clone, Debug)]
pub(crate) enum ReportEntry {
    Repair(Repair),
    Quarantined(Quarantined),
    Unresolved(UnresolvedField),
    Swallowed(SwallowedItems),
}

impl ReportEntry {
    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Self::Repair(entry) => Py::new(py, entry)?.into_any(),
            Self::Quarantined(entry) => Py::new(py, entry)?.into_any(),
            Self::Unresolved(entry) => Py::new(py, entry)?.into_any(),
            Self::Swallowed(entry) => Py::new(py, entry)?.into_any(),
        })
    }
}

/// One repair: `original` at `offset` became `replacement`.
#[pyclass(frozen, eq, module = "oaimend")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    pub(crate) id: RepairId,
    pub(crate) offset: u64,
    pub(crate) record: Option<String>,
    pub(crate) original: Vec<u8>,
    pub(crate) replacement: Vec<u8>,
}

impl Repair {
    /// The entry of the journal, to undo it.
    pub(crate) fn journal_entry(&self) -> Entry {
        Entry {
            change: Change::Repaired(self.id),
            offset: self.offset,
            record: None,
            original: self.original.clone(),
            replacement: self.replacement.clone(),
        }
    }
}

#[pymethods]
impl Repair {
    #[new]
    fn new(
        name: &str,
        offset: u64,
        record: Option<String>,
        original: Vec<u8>,
        replacement: Vec<u8>,
    ) -> PyResult<Self> {
        let id = RepairId::from_name(name).ok_or_else(|| unknown("repair", name))?;
        Ok(Self { id, offset, record, original, replacement })
    }

    /// The arguments of `__new__`, for pickle.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.name(), self.offset, &self.record, self.original(py), self.replacement(py)).into_pyobject(py)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.id.name()
    }

    #[getter]
    fn certainty(&self) -> &'static str {
        self.id.certainty().name()
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    #[getter]
    fn record(&self) -> Option<&str> {
        self.record.as_deref()
    }

    #[getter]
    fn original<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.original)
    }

    #[getter]
    fn replacement<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.replacement)
    }

    fn __repr__(&self) -> String {
        let place = match &self.record {
            Some(record) => format!("offset={}, record={record:?}", self.offset),
            None => format!("offset={}", self.offset),
        };
        format!("<Repair {} {place}>", self.id.name())
    }
}

/// An item that was quarantined.
#[pyclass(frozen, eq, module = "oaimend")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) why: QuarantineReason,
    pub(crate) offset: u64,
    pub(crate) identifier: Option<String>,
    pub(crate) raw: Vec<u8>,
}

impl Quarantined {
    /// The entry of the journal, to undo it.
    pub(crate) fn journal_entry(&self) -> Entry {
        Entry {
            change: Change::Quarantined(self.why),
            offset: self.offset,
            record: None,
            original: self.raw.clone(),
            replacement: Vec::new(),
        }
    }
}

#[pymethods]
impl Quarantined {
    #[new]
    fn new(why: &str, offset: u64, identifier: Option<String>, raw: Vec<u8>) -> PyResult<Self> {
        let why = QuarantineReason::from_name(why).ok_or_else(|| unknown("quarantine reason", why))?;
        Ok(Self { why, offset, identifier, raw })
    }

    /// The arguments of `__new__`, for pickle.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.why(), self.offset, &self.identifier, self.raw(py)).into_pyobject(py)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

    #[getter]
    fn why(&self) -> &'static str {
        self.why.name()
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    #[getter]
    fn identifier(&self) -> Option<&str> {
        self.identifier.as_deref()
    }

    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.raw)
    }

    fn __repr__(&self) -> String {
        let identifier = self.identifier.as_deref().unwrap_or("unknown identifier");
        format!("<Quarantined {identifier} why={} offset={}>", self.why.name(), self.offset)
    }
}

/// A field that violates the schema and stays unchanged.
#[pyclass(frozen, eq, get_all, module = "oaimend")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnresolvedField {
    pub(crate) element: Cow<'static, str>,
    pub(crate) offset: u64,
    pub(crate) why: Cow<'static, str>,
}

#[pymethods]
impl UnresolvedField {
    #[new]
    fn new(element: String, offset: u64, why: String) -> Self {
        Self { element: element.into(), offset, why: why.into() }
    }

    /// The arguments of `__new__`, for pickle.
    fn __getnewargs__(&self) -> (&str, u64, &str) {
        (&self.element, self.offset, &self.why)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__().into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        format!("<UnresolvedField {} why={} offset={}>", self.element, self.why, self.offset)
    }
}

/// A closed section that contains items of the list.
#[pyclass(frozen, eq, get_all, module = "oaimend")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SwallowedItems {
    pub(crate) record: Option<String>,
    pub(crate) offset: u64,
    pub(crate) identifiers: Vec<Option<String>>,
}

#[pymethods]
impl SwallowedItems {
    #[new]
    fn new(record: Option<String>, offset: u64, identifiers: Vec<Option<String>>) -> Self {
        Self { record, offset, identifiers }
    }

    /// The arguments of `__new__`, for pickle.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (&self.record, self.offset, PyTuple::new(py, &self.identifiers)?).into_pyobject(py)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

    fn __repr__(&self) -> String {
        format!("<SwallowedItems {} items offset={}>", self.identifiers.len(), self.offset)
    }
}

/// The error for a name of another version.
fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("{name:?} is not a {what}; `oaimend explain` lists all names"))
}
