//! The keys of a mapping for the particulars of its source.

use super::keys::{Flag, Keys, choice, declare, named, text};
use super::mirror::printable;
use oaimend_oai::datestamp::Granularity;
use oaimend_upstream::settings::{Quirks, Version};

/// The keys for the particulars, in the root table of a mapping.
pub(super) fn declare(quirks: &mut Quirks, keys: &mut Keys<'_, '_>) {
    declare_requests(quirks, keys);
    declare_responses(quirks, keys);
}

fn declare_requests(quirks: &mut Quirks, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// The HTTP method of requests. With two methods, the other one is tried after a status 405, 414 or 501, or
        /// a 400 without an OAI-PMH body. Later requests begin with the method that worked.
        method: named() => quirks.method,
        /// Whether only dates without a time are sent to the source.
        request_granularity: choice(vec![("day", true), ("as-requested", false)]) => quirks.in_days,
        /// The set for list requests without a set, for a source that requires one.
        default_set: printable("setSpec", "is not a set; expected its setSpec") => quirks.default_set,
        /// Whether resumptionTokens are sent as they are, for a source that percent-encodes them itself. Only
        /// spaces, `&`, `#`, `"`, `<`, `>` and non-ASCII characters are encoded.
        raw_token: Flag => quirks.raw_token,
        /// Whether all arguments come before the query of `base_url`. The verb is always the first argument.
        verb_first: Flag => quirks.verb_first,
        /// What happens to a page of records that always fails: its records are requested one by one, or the page
        /// fails.
        page_fallback: named() => quirks.page_fallback,
        /// Whether a broken record is requested again before it is quarantined.
        refetch_broken_records: Flag => quirks.refetch_broken_records,
    }
}

fn declare_responses(quirks: &mut Quirks, keys: &mut Keys<'_, '_>) {
    let version = "is not a version; expected \"1.0\", \"1.1\" or \"2.0\", or no key: it is detected";
    declare! { keys:
        /// The OAI-PMH version of the source. Without it the version is detected.
        version: named::<Version>().with_problem(version) => quirks.version,
        /// How headers are read from a 1.x source, whose `ListIdentifiers` has no datestamps.
        v1_headers_via: named() => quirks.v1_headers_via,
        /// The granularity of all datestamps in responses, and the one in Identify. Without it oaimend uses the
        /// value of the last Identify response.
        granularity: choice([Granularity::Day, Granularity::Second].map(|value| (value.name(), value)).into()) => quirks.granularity,
    }
    let charset = text("charset", read_charset, |name| Some((*name).to_owned()));
    declare! { keys:
        /// The charset of text that is not UTF-8, such as `"windows-1251"`. Without it the charset is detected for
        /// each record.
        charset: charset => quirks.charset,
        /// Whether lists are in the order of their datestamps, oldest first.
        list_order: choice(vec![("datestamp", true), ("unknown", false)]) => quirks.is_ordered_by_datestamp,
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
