//! The limits of record pages, each with its unit in its name.

/// Longest content of a meta tag, in bytes.
pub(super) const META_BYTES_MAX: usize = 4 << 10;
/// Longest sum of the values of the `Link` headers of a response, in bytes. Servers accept 8 KiB of headers.
pub const LINK_HEADERS_BYTES_MAX: usize = 4 << 10;
