//! The options of a repair: the settings of a repository, and the facts of one response.

use std::sync::Arc;

use oaimend::oai::datestamp::{self, Granularity};
use oaimend::repair::{RepairConfig, RepairId, RepairSet, RepositoryFacts, RequestEcho};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

macro_rules! limits {
    ($($field:ident)*) => {
        /// The limits of the engine, see [`oaimend::repair::Limits`].
        #[pyclass(frozen, eq, module = "oaimend")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct Limits(oaimend::repair::Limits);

        #[pymethods]
        impl Limits {
            #[new]
            #[expect(clippy::too_many_arguments, reason = "Python names each of them")]
            #[pyo3(signature = (*, $($field = None),*))]
            fn new($($field: Option<usize>),*) -> Self {
                let mut limits = oaimend::repair::Limits::default();
                $(limits.$field = $field.unwrap_or(limits.$field);)*
                Self(limits)
            }

            $(#[getter]
            fn $field(&self) -> usize {
                self.0.$field
            })*

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
#[pyclass(frozen, module = "oaimend")]
#[derive(Clone, Debug)]
pub(crate) struct Options(RepairConfig);

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
        let repository = RepositoryFacts {
            granularity: granularity.map(parse_granularity).transpose()?,
            lowest_datestamp,
            oldest_seen: None,
        };
        let mut config = RepairConfig::default();
        config.limits = limits.map(|limits| limits.0.clone()).unwrap_or_default();
        config.off = parse_repairs("off", &off)?;
        config.enabled = parse_repairs("enabled", &enabled)?;
        config.repository = repository;
        config.text_charset = text_charset;
        Ok(Self(config))
    }
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
    let mut config = options.map(|options| options.0.clone()).unwrap_or_default();
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
