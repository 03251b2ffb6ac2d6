//! The particulars of a source, and how oaimend adapts to them.

use oaimend_oai::datestamp::Granularity;
use oaimend_oai::named_enum;

/// The particulars of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// The HTTP methods of requests to the source.
    pub method: Method,
    /// The fallback for a page that fails every time.
    pub page_fallback: PageFallback,
    /// Whether a record that cannot be repaired is requested once by GetRecord.
    pub refetch_broken_records: bool,
    /// The granularity that is announced for the source, whatever its Identify says.
    pub granularity: Option<Granularity>,
    /// Whether its lists are ordered by datestamp, the oldest first.
    pub is_ordered_by_datestamp: bool,
    /// The OAI-PMH version of the source; `None`: detected from its responses.
    pub version: Option<Version>,
    /// How headers are read from a source of 1.x, which lists only identifiers.
    pub v1_headers_via: HeadersVia,
    /// Whether requests to the source use days, whatever granularity the harvester uses.
    pub in_days: bool,
    /// The charset of text that is not UTF-8; `None`: detected for each record.
    pub charset: Option<&'static str>,
    /// The set for requests in which the harvester names none.
    pub default_set: Option<String>,
    /// Whether resumptionTokens are sent as received, without percent-encoding.
    pub raw_token: bool,
    /// Whether the verb comes first, even before the base URL's own query.
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

named_enum! {
    /// A version of OAI-PMH.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Version {
        /// 1.0, of 2001.
        One0 = "1.0",
        /// 1.1, of 2001.
        One1 = "1.1",
        /// 2.0, of 2002.
        Two = "2.0",
    }
}

impl Version {
    /// Whether this is version 1.0 or 1.1.
    pub const fn is_one(self) -> bool {
        matches!(self, Self::One0 | Self::One1)
    }
}

named_enum! {
    /// How headers are read from a source of 1.x.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum HeadersVia {
        /// From its lists of records.
        #[default]
        ListRecords = "listrecords",
        /// From its lists of identifiers, and one `GetRecord` for each.
        GetRecord = "getrecord",
    }
}

named_enum! {
    /// The fallback for a page that fails every time.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum PageFallback {
        /// No fallback: the list fails at this page.
        Off = "off",
        /// Each record of the page is requested by GetRecord.
        #[default]
        GetRecord = "getrecord",
    }
}

named_enum! {
    /// The HTTP methods of requests to a source.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Method {
        /// GET only.
        #[default]
        Get = "get",
        /// POST only, with the arguments as a form.
        Post = "post",
        /// GET, and POST if the source rejects GET.
        GetThenPost = "get-then-post",
        /// POST, and GET if the source rejects POST.
        PostThenGet = "post-then-get",
    }
}
