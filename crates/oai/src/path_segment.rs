//! Identifiers, setSpecs and metadataPrefixes as segments of paths.

use std::borrow::Cow;

/// The text to percent-encode as a segment of a path.
///
/// Clients remove the segments `.` and `..`, also percent-encoded ones (RFC 3986, section 5.2.4; URL Standard, section 4.4),
/// but both are legal identifiers, setSpecs and metadataPrefixes. They get a slash at their end, which is encoded. A text that
/// looks like one of these gets one more slash, so no two texts have one segment.
///
/// ```
/// use oaimend_oai::path_segment::{segment_of, text_of};
///
/// assert_eq!((segment_of("a"), segment_of(".."), segment_of("../")), ("a".into(), "../".into(), "..//".into()));
/// assert_eq!((text_of("a"), text_of("../"), text_of("..//")), ("a", "..", "../"));
/// ```
pub fn segment_of(text: &str) -> Cow<'_, str> {
    if is_dots(text) { Cow::Owned(format!("{text}/")) } else { Cow::Borrowed(text) }
}

/// The text of a segment of a path that was percent-decoded.
pub fn text_of(segment: &str) -> &str {
    segment.strip_suffix('/').filter(|text| is_dots(text)).unwrap_or(segment)
}

fn is_dots(text: &str) -> bool {
    matches!(text.trim_end_matches('/'), "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_segment_is_removed_by_clients_and_each_text_has_its_own() {
        for text in [".", "..", "./", "../", "..///", "...", "/", "/.", "", "a/", "./a", "...//", ". "] {
            let segment = segment_of(text);
            assert!(![".", ".."].contains(&&*segment), "{text}");
            assert_eq!(text_of(&segment), text);
        }
        // A path that a person has typed.
        assert_eq!((text_of("."), text_of("a/"), text_of("/")), (".", "a/", "/"));
    }
}
