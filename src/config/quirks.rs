//! The keys of a mapping for the particulars of its source.

use super::file::Table;
use oaimend_oai::datestamp::Granularity;
use oaimend_upstream::settings::{HeadersVia, Method, PageFallback, Quirks, Version};

/// Reads the particulars from the root table of a mapping.
pub(super) fn read_quirks(root: &mut Table<'_, '_>) -> Quirks {
    let quirks = Quirks::default();
    Quirks {
        method: root.read_parsed("method", read_method).unwrap_or(quirks.method),
        page_fallback: root.read_parsed("page_fallback", read_page_fallback).unwrap_or(quirks.page_fallback),
        refetch_broken_records: root
            .read_bool("refetch_broken_records")
            .unwrap_or(quirks.refetch_broken_records),
        granularity: root.read_parsed("granularity", read_granularity),
        is_ordered_by_datestamp: root
            .read_parsed("list_order", read_list_order)
            .unwrap_or(quirks.is_ordered_by_datestamp),
        version: root.read_parsed("version", read_version),
        v1_headers_via: root.read_parsed("v1_headers_via", read_headers_via).unwrap_or(quirks.v1_headers_via),
        in_days: root.read_parsed("request_granularity", read_request_granularity).unwrap_or(quirks.in_days),
        charset: root.read_parsed("charset", read_charset),
        default_set: root.read_parsed("default_set", read_set),
        raw_token: root.read_bool("raw_token").unwrap_or(quirks.raw_token),
        verb_first: root.read_bool("verb_first").unwrap_or(quirks.verb_first),
    }
}

fn read_granularity(text: &str) -> Result<Granularity, String> {
    let problem = "is not a granularity; expected \"YYYY-MM-DD\" or \"YYYY-MM-DDThh:mm:ssZ\"";
    Granularity::from_name(text).ok_or_else(|| problem.to_owned())
}

fn read_version(text: &str) -> Result<Version, String> {
    let problem = "is not a version; expected \"1.0\", \"1.1\" or \"2.0\", or no key: it is detected";
    Version::from_name(text).ok_or_else(|| problem.to_owned())
}

fn read_headers_via(text: &str) -> Result<HeadersVia, String> {
    match text {
        "listrecords" => Ok(HeadersVia::ListRecords),
        "getrecord" => Ok(HeadersVia::GetRecord),
        _ => Err("is not known; expected \"listrecords\" or \"getrecord\"".to_owned()),
    }
}

fn read_request_granularity(text: &str) -> Result<bool, String> {
    match text {
        "day" => Ok(true),
        "as-requested" => Ok(false),
        _ => Err("is not known; expected \"day\" or \"as-requested\"".to_owned()),
    }
}

/// Reads the charset of text that is not UTF-8; the error text names the expected value.
pub fn read_charset(text: &str) -> Result<&'static str, String> {
    let charset = encoding_rs::Encoding::for_label(text.as_bytes());
    match charset {
        Some(charset) if charset.is_ascii_compatible() && charset != encoding_rs::UTF_8 => Ok(charset.name()),
        _ => Err("is not a charset other than UTF-8; expected one such as \"windows-1251\"".to_owned()),
    }
}

fn read_set(text: &str) -> Result<String, String> {
    let is_legal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_legal.then(|| text.to_owned()).ok_or_else(|| "is not a set; expected its setSpec".to_owned())
}

fn read_list_order(text: &str) -> Result<bool, String> {
    match text {
        "datestamp" => Ok(true),
        "unknown" => Ok(false),
        _ => Err("is not known; expected \"datestamp\" or \"unknown\"".to_owned()),
    }
}

fn read_page_fallback(text: &str) -> Result<PageFallback, String> {
    match text {
        "off" => Ok(PageFallback::Off),
        "getrecord" => Ok(PageFallback::GetRecord),
        _ => Err("is not known; expected \"off\" or \"getrecord\"".to_owned()),
    }
}

fn read_method(text: &str) -> Result<Method, String> {
    match text {
        "get" => Ok(Method::Get),
        "post" => Ok(Method::Post),
        "get-then-post" => Ok(Method::GetThenPost),
        "post-then-get" => Ok(Method::PostThenGet),
        _ => {
            Err("is not known; expected \"get\", \"post\", \"get-then-post\" or \"post-then-get\"".to_owned())
        }
    }
}
