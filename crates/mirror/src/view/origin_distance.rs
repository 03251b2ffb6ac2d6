//! How far a record is from its origin, by its provenance: the order of trust between aggregators that have the same record
//! (Liu et al., "A Scalable Architecture for Harvest-Based Digital Libraries", 2002, section 6.6).

use super::provenance::NAMESPACE;
use memchr::memmem;
use oaimend_repository::RecordView;
use oaimend_repository::xml::{XmlError, XmlEvent};

/// The distance of a record from its origin. The least one is the nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OriginDistance {
    /// The number of harvests before ours that its provenance describes, one inside the other.
    harvests: usize,
    /// Whether one of them has altered the record.
    is_altered: bool,
}

impl OriginDistance {
    /// The distance of a stored record. One without provenance is at its origin. One whose provenance cannot be read is
    /// farther than all others, because it says that the record comes from elsewhere.
    pub(super) fn of(bytes: &[u8]) -> Self {
        // Few records have provenance, and a record is read as a whole for it.
        if memmem::find(bytes, NAMESPACE.as_bytes()).is_none() {
            return Self::default();
        }
        let record = std::str::from_utf8(bytes).ok().and_then(RecordView::read);
        let unreadable = Self { harvests: usize::MAX, is_altered: true };
        record.and_then(|record| Self::read(&record).ok()).unwrap_or(unreadable)
    }

    fn read(record: &RecordView<'_>) -> Result<Self, XmlError> {
        let mut reader = record.content_with_namespaces()?;
        let (mut distance, mut is_about) = (Self::default(), false);
        // The depths of the open descriptions. Only descriptions in the container of an `about` count.
        let (mut container, mut open): (Option<usize>, Vec<usize>) = (None, Vec::new());
        while let Some(event) = reader.read()? {
            let depth = reader.depth();
            match event {
                XmlEvent::Start(tag) => {
                    let name = tag.local_name();
                    let is_named =
                        |expected: &str| name == expected && reader.namespace(tag) == Ok(NAMESPACE);
                    if depth == 1 {
                        is_about = name == "about";
                    } else if depth == 2 && is_about && is_named("provenance") {
                        container = Some(depth);
                    } else if is_named("originDescription")
                        && open.last().copied().or(container) == depth.checked_sub(1)
                    {
                        open.push(depth);
                        distance.harvests = distance.harvests.max(open.len());
                        let altered = tag.attribute("altered")?;
                        distance.is_altered |=
                            matches!(altered.as_deref().map(str::trim), Some("true" | "1"));
                    }
                }
                XmlEvent::End(_) => {
                    open.retain(|opened| *opened < depth);
                    container = container.filter(|opened| *opened < depth);
                }
                _ => {}
            }
        }
        Ok(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(about: &str) -> OriginDistance {
        let xml = format!(
            "<record><header><identifier>a</identifier></header><metadata><p:provenance xmlns:p='{NAMESPACE}'>\
             <p:originDescription altered='true'/></p:provenance></metadata>{about}</record>"
        );
        OriginDistance::of(xml.as_bytes())
    }

    fn described(altered: &str, inner: &str) -> String {
        format!(
            "<p:originDescription altered='{altered}'><p:baseURL>u</p:baseURL>{inner}</p:originDescription>"
        )
    }

    #[test]
    fn each_harvest_is_a_step_from_the_origin() {
        let about = |inner: &str| {
            format!("<about><p:provenance xmlns:p='{NAMESPACE}'>{inner}</p:provenance></about>")
        };
        let expected = |harvests, is_altered| OriginDistance { harvests, is_altered };
        for (text, harvests, is_altered) in [
            (String::new(), 0, false),
            (about(""), 0, false),
            (about(&described("false", "")), 1, false),
            (about(&described("true", "")), 1, true),
            (about(&described("false", &described("1", ""))), 2, true),
            // Two containers, and descriptions beside each other, are no chain.
            ([about(&described("false", "")), about(&described("false", ""))].concat(), 1, false),
            (about(&[described("false", ""), described("false", "")].concat()), 1, false),
            (about(&format!("<p:x>{}</p:x>", described("true", ""))), 0, false),
            (
                "<about><p:provenance xmlns:p='urn:x'><p:originDescription/></p:provenance></about>"
                    .to_owned(),
                0,
                false,
            ),
        ] {
            assert_eq!(distance(&text), expected(harvests, is_altered), "{text}");
        }
        assert!(expected(0, false) < expected(1, false) && expected(1, true) < expected(2, false));
        let unreadable = OriginDistance::of(format!("<record>{NAMESPACE}").as_bytes());
        assert!(unreadable > expected(100, true), "it says that it comes from elsewhere");
        let deep = described("false", "")
            .replace("</p:baseURL>", "</p:baseURL><p:a>")
            .replace("</p:originDescription>", "</p:a></p:originDescription>");
        assert_eq!(distance(&about(&deep)).harvests, 1);
    }
}
