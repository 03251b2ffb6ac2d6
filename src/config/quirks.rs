//! What is particular about a source, and what may be done about it.

use super::file::Table;
use crate::oai::datestamp::Granularity;

/// The particulars of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// By which methods of HTTP it may be asked.
    pub method: Method,
    /// What is done about a page that fails every time.
    pub poisoned: Poisoned,
    /// Whether a record that cannot be mended is asked for once by itself.
    pub recall: bool,
    /// The granularity that is announced for it, whatever its Identify says.
    pub granularity: Option<Granularity>,
    /// Whether its lists come in the order of their datestamps, the oldest first.
    pub ordered_by_datestamp: bool,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            method: Method::default(),
            poisoned: Poisoned::default(),
            recall: true,
            granularity: None,
            ordered_by_datestamp: false,
        }
    }
}

/// What is done about a page that fails every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Poisoned {
    /// Nothing: the list stops there.
    #[default]
    Off,
    /// Its records are asked for one by one.
    GetRecord,
}

/// By which methods of HTTP a source may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// GET only.
    #[default]
    Get,
    /// POST only, the request as a form.
    Post,
    /// GET, and POST where the source does not take that.
    GetThenPost,
    /// POST, and GET where the source does not take that.
    PostThenGet,
}

impl Quirks {
    /// Reads them from the top of a mapping.
    pub(super) fn read(root: &mut Table<'_, '_>) -> Self {
        let quirks = Self::default();
        Self {
            method: root.parsed("method", read_method).unwrap_or(quirks.method),
            poisoned: root.parsed("poisoned", read_poisoned).unwrap_or(quirks.poisoned),
            recall: root.boolean("recall").unwrap_or(quirks.recall),
            granularity: root.parsed("granularity", read_granularity),
            ordered_by_datestamp: root.parsed("order", read_order).unwrap_or(quirks.ordered_by_datestamp),
        }
    }
}

fn read_granularity(text: &str) -> Result<Granularity, String> {
    let right = "is no granularity; \"YYYY-MM-DD\" or \"YYYY-MM-DDThh:mm:ssZ\" is right";
    Granularity::from_name(text).ok_or_else(|| right.to_owned())
}

fn read_order(text: &str) -> Result<bool, String> {
    match text {
        "datestamp" => Ok(true),
        "unknown" => Ok(false),
        _ => Err("is not known; \"datestamp\" or \"unknown\" is right".to_owned()),
    }
}

fn read_poisoned(text: &str) -> Result<Poisoned, String> {
    match text {
        "off" => Ok(Poisoned::Off),
        "getrecord" => Ok(Poisoned::GetRecord),
        _ => Err("is not known; \"off\" or \"getrecord\" is right".to_owned()),
    }
}

fn read_method(text: &str) -> Result<Method, String> {
    match text {
        "get" => Ok(Method::Get),
        "post" => Ok(Method::Post),
        "get-then-post" => Ok(Method::GetThenPost),
        "post-then-get" => Ok(Method::PostThenGet),
        _ => {
            Err("is not known; \"get\", \"post\", \"get-then-post\" or \"post-then-get\" is right".to_owned())
        }
    }
}
