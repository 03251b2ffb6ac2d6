//! The repair of a response that is in memory as a whole, and its result.

use std::collections::BTreeMap;

use oaimend::repair::journal::{self, Entry};
use oaimend::repair::{NotOai, Outcome, Repairer};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

use crate::guard::run_detached;
use crate::options::{Options, config_for};
use crate::report::{Quarantined, Repair};
use crate::stream::{Collector, report_tuple};

/// The outcome and the counts of one response.
#[pyclass(frozen, get_all, module = "oaimend")]
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    outcome: &'static str,
    why: Option<&'static str>,
    message: Option<&'static str>,
    version: Option<&'static str>,
    records: u64,
    quarantined: u64,
    lost: u64,
    unread: u64,
    swallowed: u64,
    unresolved: u64,
    repairs: BTreeMap<&'static str, u64>,
    decoded_as: &'static str,
    held_bytes_peak: usize,
}

impl From<oaimend::repair::Summary> for Summary {
    fn from(summary: oaimend::repair::Summary) -> Self {
        let reason = match summary.outcome {
            Outcome::NotOai(reason) => Some(reason),
            _ => None,
        };
        Self {
            outcome: summary.outcome.name(),
            why: reason.map(NotOai::name),
            message: reason.map(NotOai::message),
            version: summary.version,
            records: summary.records,
            quarantined: summary.quarantined,
            lost: summary.lost,
            unread: summary.unread,
            swallowed: summary.swallowed,
            unresolved: summary.unresolved,
            repairs: summary.repairs.iter().map(|(id, count)| (id.name(), count)).collect(),
            decoded_as: summary.decoded_as,
            held_bytes_peak: summary.held_bytes_peak,
        }
    }
}

#[pymethods]
impl Summary {
    #[getter]
    fn is_complete(&self) -> bool {
        matches!(self.outcome, "clean" | "repaired") && self.quarantined == 0 && self.lost == 0
    }

    fn __repr__(&self) -> String {
        let why = self.why.map(|why| format!(" why={why}")).unwrap_or_default();
        format!(
            "<Summary {}{why} records={} quarantined={} lost={}>",
            self.outcome, self.records, self.quarantined, self.lost
        )
    }
}

/// A repaired response.
#[pyclass(frozen, module = "oaimend")]
pub(crate) struct Repaired {
    bytes: Py<PyBytes>,
    report: Py<PyTuple>,
    summary: Py<Summary>,
}

#[pymethods]
impl Repaired {
    #[getter]
    fn bytes(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes.clone_ref(py)
    }

    #[getter]
    fn report(&self, py: Python<'_>) -> Py<PyTuple> {
        self.report.clone_ref(py)
    }

    #[getter]
    fn summary(&self, py: Python<'_>) -> Py<Summary> {
        self.summary.clone_ref(py)
    }

    #[getter]
    fn outcome(&self) -> &'static str {
        self.summary.get().outcome
    }

    #[getter]
    fn is_complete(&self) -> bool {
        self.summary.get().is_complete()
    }

    #[getter]
    fn repairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.entries::<Repair>(py)
    }

    #[getter]
    fn quarantined<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.entries::<Quarantined>(py)
    }

    fn undo<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if self.outcome() == "not-oai" {
            return Ok(None);
        }
        let entries: Vec<Entry> =
            self.report.bind(py).iter().filter_map(|entry| journal_entry(&entry)).collect();
        let output = self.bytes.bind(py).as_bytes();
        let text = run_detached(py, || journal::undo(output, &entries))?;
        Ok(text.map(|text| PyBytes::new(py, &text)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (bytes, entries) = (self.bytes.bind(py).as_bytes().len(), self.report.bind(py).len());
        format!("<Repaired {}, {bytes} bytes, {entries} entries in the report>", self.outcome())
    }
}

impl Repaired {
    /// The entries of one kind.
    fn entries<'py, T: PyTypeInfo>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let entries = self.report.bind(py).iter().filter(Bound::is_instance_of::<T>);
        PyTuple::new(py, entries.collect::<Vec<_>>())
    }
}

/// The entry of the journal; `None` for an entry that is not a change.
fn journal_entry(entry: &Bound<'_, PyAny>) -> Option<Entry> {
    if let Ok(repair) = entry.cast::<Repair>() {
        return Some(repair.get().journal_entry());
    }
    entry.cast::<Quarantined>().ok().map(|item| item.get().journal_entry())
}

/// Repairs a whole response.
#[pyfunction]
#[pyo3(signature = (page, *, request = None, charset = None, options = None))]
pub(crate) fn repair(
    py: Python<'_>,
    page: PyBackedBytes,
    request: Option<&str>,
    charset: Option<String>,
    options: Option<&Options>,
) -> PyResult<Repaired> {
    let config = config_for(options, request, charset);
    let (collector, summary) = run_detached(py, || {
        let mut collector = Collector::default();
        let mut repairer = Repairer::new(&config);
        repairer.push(&page, &mut collector);
        let summary = repairer.finish(&mut collector);
        (collector, summary)
    })?;
    Ok(Repaired {
        bytes: PyBytes::new(py, &collector.bytes).unbind(),
        report: report_tuple(py, collector.report)?.unbind(),
        summary: Py::new(py, Summary::from(summary))?,
    })
}
