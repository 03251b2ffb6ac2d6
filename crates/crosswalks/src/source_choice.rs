//! Which format of a repository a crosswalk reads.

use oaimend_record::{format_with_references, readable_richest_first};
use oaimend_store::ListedFormat;

/// The format that every repository has (OAI-PMH 2.0, section 3.4).
const DUBLIN_CORE: &str = "oai_dc";

/// Which format of a repository a crosswalk reads. All records of a list come from the same format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceChoice {
    /// The one that says most of a work, of those that have a crosswalk.
    Richest,
    /// `oai_dc`, which every item has, so that the lists are complete. Without it as [`SourceChoice::Richest`].
    DublinCore,
    /// The same, and without such formats the first one of the repository, whatever it is.
    Any,
    /// The best one with lists of references. Without such a format as [`SourceChoice::Any`].
    References,
    /// The one with this metadataPrefix.
    Named(String),
}

impl SourceChoice {
    /// The format that is read; `None` if the repository has none.
    pub fn among<'f>(&self, formats: &'f [ListedFormat]) -> Option<&'f ListedFormat> {
        let named = |prefix: &str| formats.iter().find(|format| format.prefix == prefix);
        let pairs = formats.iter().map(|format| (format.prefix.as_str(), format.namespace.as_str()));
        let richest = || readable_richest_first(pairs.clone()).first().and_then(|prefix| named(prefix));
        let any = || named(DUBLIN_CORE).or_else(richest).or(formats.first());
        match self {
            Self::Richest => richest(),
            Self::DublinCore => named(DUBLIN_CORE).or_else(richest),
            Self::Any => any(),
            Self::References => format_with_references(pairs.clone()).and_then(named).or_else(any),
            Self::Named(prefix) => named(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_that_is_read_depends_on_the_crosswalk() {
        let format = |prefix: &str, namespace: &str| ListedFormat {
            prefix: prefix.to_owned(),
            schema: String::new(),
            namespace: namespace.to_owned(),
        };
        let (dc, mods) = (format("oai_dc", "urn:dc"), format("m", "http://www.loc.gov/mods/v3"));
        let (marc, other) = (format("marcxml", "http://www.loc.gov/MARC21/slim"), format("x", "urn:x"));
        let all = [other.clone(), marc.clone(), mods.clone(), dc.clone()];
        for (choice, formats, expected) in [
            (SourceChoice::Richest, &all[..], Some("m")),
            (SourceChoice::Richest, &all[..2], Some("marcxml")),
            (SourceChoice::Richest, &all[..1], None),
            (SourceChoice::DublinCore, &all[..], Some("oai_dc")),
            (SourceChoice::DublinCore, &all[..3], Some("m")),
            (SourceChoice::DublinCore, &all[..1], None),
            (SourceChoice::Any, &all[..], Some("oai_dc")),
            (SourceChoice::Any, &all[..2], Some("marcxml")),
            (SourceChoice::Any, &all[..1], Some("x")),
            (SourceChoice::Any, &[], None),
            (SourceChoice::References, &all[..], Some("oai_dc")),
            (
                SourceChoice::References,
                &[format("tei", "http://www.tei-c.org/ns/1.0"), all[0].clone()],
                Some("tei"),
            ),
            (SourceChoice::Named("x".to_owned()), &all[..], Some("x")),
            (SourceChoice::Named("y".to_owned()), &all[..], None),
        ] {
            let chosen = choice.among(formats).map(|format| format.prefix.as_str());
            assert_eq!(chosen, expected, "{choice:?} {formats:?}");
        }
    }
}
