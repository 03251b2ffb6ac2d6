//! What is particular about a source, and what may be done about it.

use super::file::Table;
use crate::oai::datestamp::Granularity;

/// The particulars of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// By which methods of HTTP it may be asked.
    pub method: Method,
    /// What is done about a page that fails every time.
    pub page_fallback: PageFallback,
    /// Whether a record that cannot be mended is asked for once by itself.
    pub refetch_broken_records: bool,
    /// The granularity that is announced for it, whatever its Identify says.
    pub granularity: Option<Granularity>,
    /// Whether its lists come in the order of their datestamps, the oldest first.
    pub is_ordered_by_datestamp: bool,
    /// Which OAI-PMH it speaks; `None`: what its answers say.
    pub version: Option<Version>,
    /// How the headers of a source of 1.x are had, which lists identifiers alone.
    pub v1_headers_via: HeadersVia,
    /// Whether it is asked in days only, whatever the harvester asks in.
    pub in_days: bool,
    /// The charset of its text that is no UTF-8; `None`: what each record decides.
    pub charset: Option<&'static str>,
    /// The set it is asked for where the harvester names none.
    pub default_set: Option<String>,
    /// Whether its tokens are sent back as they are, not percent-encoded.
    pub raw_token: bool,
    /// Whether the verb stands even before the base URL's own query.
    pub verb_first: bool,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            method: Method::default(),
            page_fallback: PageFallback::default(),
            refetch_broken_records: true,
            granularity: None,
            is_ordered_by_datestamp: false,
            version: None,
            v1_headers_via: HeadersVia::default(),
            in_days: false,
            charset: None,
            default_set: None,
            raw_token: false,
            verb_first: false,
        }
    }
}

/// A version of OAI-PMH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.0, of 2001.
    One0,
    /// 1.1, of 2001.
    One1,
    /// 2.0, of 2002.
    Two,
}

impl Version {
    /// The version of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::One0, Self::One1, Self::Two].into_iter().find(|version| version.name() == name)
    }

    /// As it is written, such as `1.1`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One0 => "1.0",
            Self::One1 => "1.1",
            Self::Two => "2.0",
        }
    }

    /// Whether it is 1.0 or 1.1.
    pub const fn is_one(self) -> bool {
        matches!(self, Self::One0 | Self::One1)
    }
}

/// How the headers of a source of 1.x are had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadersVia {
    /// By its lists of records.
    #[default]
    ListRecords,
    /// By its lists of identifiers, and one `GetRecord` each.
    GetRecord,
}

/// What is done about a page that fails every time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageFallback {
    /// Nothing: the list stops there.
    Off,
    /// Its records are asked for one by one.
    #[default]
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
            page_fallback: root.parsed("page_fallback", read_page_fallback).unwrap_or(quirks.page_fallback),
            refetch_broken_records: root
                .boolean("refetch_broken_records")
                .unwrap_or(quirks.refetch_broken_records),
            granularity: root.parsed("granularity", read_granularity),
            is_ordered_by_datestamp: root
                .parsed("list_order", read_list_order)
                .unwrap_or(quirks.is_ordered_by_datestamp),
            version: root.parsed("version", read_version),
            v1_headers_via: root.parsed("v1_headers_via", read_headers_via).unwrap_or(quirks.v1_headers_via),
            in_days: root.parsed("request_granularity", read_request_granularity).unwrap_or(quirks.in_days),
            charset: root.parsed("charset", read_charset),
            default_set: root.parsed("default_set", read_set),
            raw_token: root.boolean("raw_token").unwrap_or(quirks.raw_token),
            verb_first: root.boolean("verb_first").unwrap_or(quirks.verb_first),
        }
    }
}

fn read_granularity(text: &str) -> Result<Granularity, String> {
    let right = "is no granularity; \"YYYY-MM-DD\" or \"YYYY-MM-DDThh:mm:ssZ\" is right";
    Granularity::from_name(text).ok_or_else(|| right.to_owned())
}

fn read_version(text: &str) -> Result<Version, String> {
    let right = "is no version; \"1.0\", \"1.1\" or \"2.0\" is right, or nothing: it is learned";
    Version::from_name(text).ok_or_else(|| right.to_owned())
}

fn read_headers_via(text: &str) -> Result<HeadersVia, String> {
    match text {
        "listrecords" => Ok(HeadersVia::ListRecords),
        "getrecord" => Ok(HeadersVia::GetRecord),
        _ => Err("is not known; \"listrecords\" or \"getrecord\" is right".to_owned()),
    }
}

fn read_request_granularity(text: &str) -> Result<bool, String> {
    match text {
        "day" => Ok(true),
        "as-requested" => Ok(false),
        _ => Err("is not known; \"day\" or \"as-requested\" is right".to_owned()),
    }
}

fn read_charset(text: &str) -> Result<&'static str, String> {
    let charset = encoding_rs::Encoding::for_label(text.as_bytes());
    match charset {
        Some(charset) if charset.is_ascii_compatible() && charset != encoding_rs::UTF_8 => Ok(charset.name()),
        _ => Err("is no charset of text that is no UTF-8; one like \"windows-1251\" is right".to_owned()),
    }
}

fn read_set(text: &str) -> Result<String, String> {
    let is_legal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_legal.then(|| text.to_owned()).ok_or_else(|| "is no set; its setSpec is right".to_owned())
}

fn read_list_order(text: &str) -> Result<bool, String> {
    match text {
        "datestamp" => Ok(true),
        "unknown" => Ok(false),
        _ => Err("is not known; \"datestamp\" or \"unknown\" is right".to_owned()),
    }
}

fn read_page_fallback(text: &str) -> Result<PageFallback, String> {
    match text {
        "off" => Ok(PageFallback::Off),
        "getrecord" => Ok(PageFallback::GetRecord),
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
