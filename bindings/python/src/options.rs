//! The options of a repair: the settings of a repository, and the facts of one response.

use std::sync::Arc;

use oaimend_oai::RequestEcho;
use oaimend_oai::datestamp::{self, Granularity};
use oaimend_repair::catalog::CATALOG;
use oaimend_repair::{RepairConfig, RepairId, RepairSet};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

macro_rules! limits {
    ($($field:ident)*) => {
        /// The limits of the engine, see [`oaimend_repair::Limits`].
        #[pyclass(frozen, eq, module = "oaimend")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct Limits(oaimend_repair::Limits);

        #[pymethods]
        impl Limits {
            #[new]
            #[expect(clippy::too_many_arguments, reason = "Python names each of them")]
            #[pyo3(signature = (*, $($field = None),*))]
            fn new($($field: Option<usize>),*) -> Self {
                let mut limits = oaimend_repair::Limits::default();
                $(limits.$field = $field.unwrap_or(limits.$field);)*
                Self(limits)
            }

            $(#[getter]
            fn $field(&self) -> usize {
                self.0.$field
            })*

            /// The arguments of `__new__`, for pickle.
            fn __getnewargs_ex__<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
                let named = PyDict::new(py);
                $(named.set_item(stringify!($field), self.0.$field)?;)*
                Ok((PyTuple::empty(py), named))
            }

            fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
                PyTuple::new(py, [$(self.0.$field),*])?.hash()
            }

            fn __repr__(&self) -> String {
                let fields = [$(format!("{}={}", stringify!($field), self.0.$field)),*];
                format!("Limits({})", fields.join(", "))
            }
        }
    };
}

limits! {
    record_bytes_max
    repairs_per_record_max
    entity_bytes_max
    depth_max
    attributes_per_tag_max
    tag_bytes_max
    junk_bytes_max
    head_bytes_max
}

/// The settings of a repository.
#[pyclass(frozen, eq, module = "oaimend")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    off: RepairSet,
    enabled: RepairSet,
    text_charset: Option<String>,
    granularity: Option<Granularity>,
    lowest_datestamp: Option<String>,
    limits: Limits,
}

#[pymethods]
impl Options {
    #[new]
    #[pyo3(signature = (*, off = Vec::new(), enabled = Vec::new(), text_charset = None, granularity = None, lowest_datestamp = None, limits = None))]
    fn new(
        off: Vec<String>,
        enabled: Vec<String>,
        text_charset: Option<String>,
        granularity: Option<&str>,
        lowest_datestamp: Option<String>,
        limits: Option<&Limits>,
    ) -> PyResult<Self> {
        if let Some(stamp) =
            lowest_datestamp.as_deref().filter(|stamp| !datestamp::is_legal(stamp.as_bytes()))
        {
            return Err(PyValueError::new_err(format!(
                "lowest_datestamp={stamp:?} is not a datestamp; expected one such as 2015-01-31 or 2015-01-31T12:00:00Z"
            )));
        }
        Ok(Self {
            off: parse_repairs("off", &off)?,
            enabled: parse_repairs("enabled", &enabled)?,
            text_charset,
            granularity: granularity.map(parse_granularity).transpose()?,
            lowest_datestamp,
            limits: limits.cloned().unwrap_or_else(|| Limits(oaimend_repair::Limits::default())),
        })
    }

    /// The arguments of `__new__`, for pickle.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("off", names_of(self.off))?;
        named.set_item("enabled", names_of(self.enabled))?;
        named.set_item("text_charset", &self.text_charset)?;
        named.set_item("granularity", self.granularity.map(Granularity::name))?;
        named.set_item("lowest_datestamp", &self.lowest_datestamp)?;
        named.set_item("limits", self.limits.clone())?;
        Ok((PyTuple::empty(py), named))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let repairs = (PyTuple::new(py, names_of(self.off))?, PyTuple::new(py, names_of(self.enabled))?);
        let dates = (self.granularity.map(Granularity::name), &self.lowest_datestamp);
        (repairs, &self.text_charset, dates, self.limits.clone()).into_pyobject(py)?.hash()
    }
}

impl Options {
    /// The configuration of the engine.
    fn to_config(&self) -> RepairConfig {
        let mut config = RepairConfig::default();
        config.limits = self.limits.0.clone();
        config.off = self.off;
        config.enabled = self.enabled;
        config.repository.granularity = self.granularity;
        config.repository.lowest_datestamp.clone_from(&self.lowest_datestamp);
        config.text_charset.clone_from(&self.text_charset);
        config
    }
}

/// The names of repairs, in the order of the catalog.
fn names_of(set: RepairSet) -> Vec<&'static str> {
    CATALOG.iter().filter(|entry| set.contains(entry.id)).map(|entry| entry.name).collect()
}

fn parse_repairs(option: &str, names: &[String]) -> PyResult<RepairSet> {
    let parse = |name: &String| {
        RepairId::from_name(name).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{option} names {name:?}, which is not a repair; `oaimend explain` and docs/reference/repairs.md list all names"
            ))
        })
    };
    names.iter().map(parse).collect()
}

fn parse_granularity(name: &str) -> PyResult<Granularity> {
    Granularity::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "granularity={name:?} is unknown; expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"
        ))
    })
}

/// The configuration of the engine for one response. `request` is the URL of the request with its arguments.
///
/// The engine uses the verb and the identifier of the request. It does not write the request into the response,
/// because the harvester talks to the repository and not to a proxy.
pub(crate) fn config_for(
    options: Option<&Options>,
    request: Option<&str>,
    charset: Option<String>,
) -> RepairConfig {
    let mut config = options.map(Options::to_config).unwrap_or_default();
    config.charset = charset;
    config.request = request.map(|url| Arc::new(parse_request(url)));
    config.off.insert(RepairId::RewriteRequest);
    config.off.insert(RepairId::RewriteBaseUrl);
    config
}

fn parse_request(url: &str) -> RequestEcho {
    let (base_url, query) = url.split_once('?').unwrap_or((url, ""));
    let arguments = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    RequestEcho { base_url: base_url.to_owned(), arguments }
}
