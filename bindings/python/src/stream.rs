//! The repair of a response that arrives in chunks.

use oaimend_repair::Sink;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::guard::run_detached;
use crate::input::read_bytes;
use crate::options::{Options, config_for};
use crate::repaired::Summary;
use crate::report::{Quarantined, Repair, ReportEntry, SwallowedItems, UnresolvedField};

/// Collects bytes and entries of the report.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    pub(crate) bytes: Vec<u8>,
    pub(crate) report: Vec<ReportEntry>,
    /// The resumptionToken, as written in the XML.
    token: Option<String>,
    /// The identifiers of the items.
    identifiers: DefaultHasher,
    items: u64,
}

fn to_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Sink for Collector {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn record_committed(&mut self, facts: &oaimend_repair::RecordFacts<'_>, _bytes: &[u8]) {
        self.items += 1;
        facts.identifier.hash(&mut self.identifiers);
    }

    fn resumption_token(&mut self, token: &oaimend_repair::TokenFacts<'_>) {
        self.token = Some(to_text(token.token)).filter(|token| !token.is_empty());
    }

    fn repaired(&mut self, repair: &oaimend_repair::Repair<'_>) {
        self.report.push(ReportEntry::Repair(Repair {
            id: repair.id,
            offset: repair.offset,
            record: repair.record.map(to_text),
            original: repair.original.to_vec(),
            replacement: repair.replacement.to_vec(),
        }));
    }

    fn record_quarantined(&mut self, item: &oaimend_repair::Quarantined<'_>) {
        self.report.push(ReportEntry::Quarantined(Quarantined {
            why: item.why,
            offset: item.offset,
            identifier: item.identifier.map(to_text),
            raw: item.raw.to_vec(),
        }));
    }

    fn items_swallowed(&mut self, section: &oaimend_repair::SwallowedItems<'_>) {
        self.report.push(ReportEntry::Swallowed(SwallowedItems {
            record: section.identifier.map(to_text),
            offset: section.offset,
            identifiers: section.items.iter().map(|item| item.identifier.map(to_text)).collect(),
        }));
    }

    fn unresolved(&mut self, field: &oaimend_repair::UnresolvedField) {
        self.report.push(ReportEntry::Unresolved(UnresolvedField {
            element: field.element.into(),
            offset: field.offset,
            why: field.issue.name().into(),
        }));
    }
}

/// Repairs one response, chunk by chunk.
#[pyclass(module = "oaimend")]
pub(crate) struct Repairer {
    /// `None` after the end, and after a panic.
    engine: Option<oaimend_repair::Repairer>,
    collector: Collector,
    summary: Option<Py<Summary>>,
}

#[pymethods]
impl Repairer {
    #[new]
    #[pyo3(signature = (*, request = None, charset = None, options = None))]
    fn new(request: Option<&str>, charset: Option<String>, options: Option<&Options>) -> Self {
        let engine = oaimend_repair::Repairer::new(&config_for(options, request, charset));
        Self { engine: Some(engine), collector: Collector::default(), summary: None }
    }

    fn push<'py>(&mut self, py: Python<'py>, chunk: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let chunk = read_bytes(chunk)?;
        let mut engine = self.take_engine()?;
        let collector = &mut self.collector;
        let engine = run_detached(py, move || {
            engine.push(&chunk, collector);
            engine
        })?;
        self.engine = Some(engine);
        Ok(self.take_bytes(py))
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let engine = self.take_engine()?;
        let collector = &mut self.collector;
        let summary = run_detached(py, move || engine.finish(collector))?;
        self.summary = Some(Py::new(py, Summary::from(summary))?);
        Ok(self.take_bytes(py))
    }

    #[getter]
    fn verdict(&self) -> Option<&'static str> {
        self.engine.as_ref().and_then(oaimend_repair::Repairer::verdict).map(oaimend_repair::Outcome::name)
    }

    #[getter]
    fn summary(&self, py: Python<'_>) -> Option<Py<Summary>> {
        self.summary.as_ref().map(|summary| summary.clone_ref(py))
    }

    #[getter]
    fn resumption_token(&self) -> Option<&str> {
        self.collector.token.as_deref()
    }

    #[getter]
    fn items_hash(&self) -> Option<u64> {
        (self.collector.items > 0).then(|| self.collector.identifiers.finish())
    }

    fn take_report<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        report_tuple(py, std::mem::take(&mut self.collector.report))
    }
}

impl Repairer {
    fn take_engine(&mut self) -> PyResult<oaimend_repair::Repairer> {
        self.engine.take().ok_or_else(|| {
            PyValueError::new_err("this Repairer has ended; create another one for the next response")
        })
    }

    fn take_bytes<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = PyBytes::new(py, &self.collector.bytes);
        self.collector.bytes.clear();
        bytes
    }
}

/// The entries as a tuple of Python.
pub(crate) fn report_tuple(py: Python<'_>, report: Vec<ReportEntry>) -> PyResult<Bound<'_, PyTuple>> {
    let entries: Vec<Py<PyAny>> =
        report.into_iter().map(|entry| entry.into_object(py)).collect::<PyResult<_>>()?;
    PyTuple::new(py, entries)
}
