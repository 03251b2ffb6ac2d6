//! The repair of a response that is in memory as a whole, and its result.

use std::borrow::Cow;
use std::collections::BTreeMap;

use oaimend_repair::journal::{self, Entry};
use oaimend_repair::{Outcome, Repairer};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyTuple};

use crate::guard::run_detached;
use crate::input::read_bytes;
use crate::options::{Options, config_for};
use crate::report::{Quarantined, Repair};
use crate::stream::{Collector, report_tuple};

/// A text of the engine, or of a pickle.
type Text = Cow<'static, str>;
/// The outcome, why, its message, and the version.
type Reasons = (String, Option<String>, Option<String>, Option<String>);
/// The counts of records: kept, quarantined, lost, unread, swallowed, and the unresolved fields.
type Counts = (u64, u64, u64, u64, u64, u64);

/// The outcome and the counts of one response.
#[pyclass(frozen, eq, get_all, module = "oaimend")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    outcome: Text,
    why: Option<Text>,
    message: Option<Text>,
    version: Option<Text>,
    records: u64,
    quarantined: u64,
    lost: u64,
    unread: u64,
    swallowed: u64,
    unresolved: u64,
    repairs: BTreeMap<Text, u64>,
    decoded_as: Text,
    held_bytes_peak: usize,
}

impl From<oaimend_repair::Summary> for Summary {
    fn from(summary: oaimend_repair::Summary) -> Self {
        let reason = match summary.outcome {
            Outcome::NotOai(reason) => Some(reason),
            _ => None,
        };
        Self {
            outcome: summary.outcome.name().into(),
            why: reason.map(|reason| reason.name().into()),
            message: reason.map(|reason| reason.message().into()),
            version: summary.version.map(Text::from),
            records: summary.records,
            quarantined: summary.quarantined,
            lost: summary.lost,
            unread: summary.unread,
            swallowed: summary.swallowed,
            unresolved: summary.unresolved,
            repairs: summary.repairs.iter().map(|(id, count)| (id.name().into(), count)).collect(),
            decoded_as: summary.decoded_as.into(),
            held_bytes_peak: summary.held_bytes_peak,
        }
    }
}

#[pymethods]
impl Summary {
    /// Makes a summary from [`__getnewargs__`](Self::__getnewargs__).
    #[new]
    fn new(reasons: Reasons, counts: Counts, repairs: Vec<(String, u64)>, decoding: (String, usize)) -> Self {
        let text = |text: Option<String>| text.map(Text::from);
        let (outcome, why, message, version) = reasons;
        let (records, quarantined, lost, unread, swallowed, unresolved) = counts;
        let (decoded_as, held_bytes_peak) = decoding;
        Self {
            outcome: outcome.into(),
            why: text(why),
            message: text(message),
            version: text(version),
            records,
            quarantined,
            lost,
            unread,
            swallowed,
            unresolved,
            repairs: repairs.into_iter().map(|(name, count)| (name.into(), count)).collect(),
            decoded_as: decoded_as.into(),
            held_bytes_peak,
        }
    }

    /// The arguments of `__new__`, for pickle.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let reasons = (&*self.outcome, self.why.as_deref(), self.message.as_deref(), self.version.as_deref());
        let counts: Counts =
            (self.records, self.quarantined, self.lost, self.unread, self.swallowed, self.unresolved);
        let repairs = PyTuple::new(py, self.repairs.iter().map(|(name, count)| (&**name, *count)))?;
        (reasons, counts, repairs, (&*self.decoded_as, self.held_bytes_peak)).into_pyobject(py)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

    #[getter]
    fn is_complete(&self) -> bool {
        matches!(&*self.outcome, "clean" | "repaired") && self.quarantined == 0 && self.lost == 0
    }

    fn __repr__(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(" why={why}")).unwrap_or_default();
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
    /// The input, if the output says nothing about it: the outcome is `not-oai`.
    input: Option<Py<PyBytes>>,
}

#[pymethods]
impl Repaired {
    #[new]
    fn new(
        bytes: Py<PyBytes>,
        report: Py<PyTuple>,
        summary: Py<Summary>,
        input: Option<Py<PyBytes>>,
    ) -> Self {
        Self { bytes, report, summary, input }
    }

    /// The arguments of `__new__`, for pickle.
    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (&self.bytes, &self.report, &self.summary, &self.input).into_pyobject(py)
    }

    fn __eq__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let is_equal = self.__getnewargs__(py)?.eq(other.get().__getnewargs__(py)?)?;
        Ok(PyBool::new(py, is_equal).to_owned().into_any())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.__getnewargs__(py)?.hash()
    }

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
    fn outcome(&self) -> &str {
        &self.summary.get().outcome
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
        if let Some(input) = &self.input {
            return Ok(Some(input.bind(py).clone()));
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
    page: &Bound<'_, PyAny>,
    request: Option<&str>,
    charset: Option<String>,
    options: Option<&Options>,
) -> PyResult<Repaired> {
    let page = read_bytes(page)?;
    let config = config_for(options, request, charset);
    let (collector, summary) = run_detached(py, || {
        let mut collector = Collector::default();
        let mut repairer = Repairer::new(&config);
        repairer.push(&page, &mut collector);
        let summary = repairer.finish(&mut collector);
        (collector, summary)
    })?;
    let is_unusable = matches!(summary.outcome, Outcome::NotOai(_));
    Ok(Repaired {
        input: is_unusable.then(|| PyBytes::new(py, &page).unbind()),
        bytes: PyBytes::new(py, &collector.bytes).unbind(),
        report: report_tuple(py, collector.report)?.unbind(),
        summary: Py::new(py, Summary::from(summary))?,
    })
}
