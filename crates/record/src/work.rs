//! What a page says of a work.

use crate::agent::{Agent, Orcid};
use crate::container::Container;
use crate::document::RecordDocument;
use crate::dublin_core::DublinCore;
use crate::language::language_tag;
use crate::links::RecordLinks;
use crate::publication_date::PublicationDate;
use crate::text::Text;
use crate::work_fields::WorkFields;
use crate::work_type::WorkType;

/// What a page says of a work, from its record in any format with a crosswalk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkDescription {
    /// The identifier of the record.
    pub identifier: String,
    /// The fields of Dublin Core.
    pub core: DublinCore,
    /// The creators, in the order of [`DublinCore::creators`].
    pub creators: Vec<Agent>,
    /// The contributors, in the order of [`DublinCore::contributors`].
    pub contributors: Vec<Agent>,
    /// ORCIDs of creators for which the record does not say the name.
    pub orcids: Vec<Orcid>,
    /// The journal or book that contains the work.
    pub container: Container,
    /// The ISBNs, as digits, at most 50.
    pub isbns: Vec<String>,
    /// The links.
    pub links: RecordLinks,
    /// The type.
    pub work_type: WorkType,
    /// The date of publication.
    pub published: Option<PublicationDate>,
    /// Whether the rights say that everyone can read the full text.
    pub is_open_access: bool,
}

impl WorkDescription {
    /// The description of a work from its record. For formats without a crosswalk it has the identifier only.
    pub fn of(document: &RecordDocument) -> Self {
        let fields = WorkFields::of(document);
        let links = RecordLinks::of(&fields.core, &fields.full_texts);
        let is_open_access = is_open_access(&fields.core.rights);
        Self { links, is_open_access, ..Self::of_fields(document, fields) }
    }

    /// The same without [`WorkDescription::links`] and [`WorkDescription::is_open_access`], which are left empty. They
    /// cost as much as all other parts, and a record in another format does not contain them.
    pub fn without_links(document: &RecordDocument) -> Self {
        Self::of_fields(document, WorkFields::of(document))
    }

    fn of_fields(document: &RecordDocument, fields: WorkFields) -> Self {
        Self {
            identifier: document.identifier.clone(),
            links: RecordLinks::default(),
            work_type: WorkType::among(&fields.core.types),
            published: PublicationDate::among(&fields.core.dates),
            is_open_access: false,
            core: fields.core,
            creators: fields.creators,
            contributors: fields.contributors,
            orcids: fields.orcids,
            container: fields.container,
            isbns: fields.isbns,
        }
    }

    /// The description with the links of another record of the same work in addition.
    #[must_use]
    pub fn linked_as(mut self, other: &RecordDocument) -> Self {
        self.links.add(Self::of(other).links);
        self
    }

    /// The language tag of the work.
    pub fn language(&self) -> Option<String> {
        self.core.languages.iter().find_map(|text| language_tag(&text.value))
    }
}

/// Whether rights contain open access of info:eu-repo or COAR, or a licence of Creative Commons, and no other access.
fn is_open_access(rights: &[Text]) -> bool {
    let rights: Vec<String> = rights.iter().map(|text| text.value.to_ascii_lowercase()).collect();
    let contains = |wanted: &[&str]| rights.iter().any(|value| wanted.iter().any(|uri| value.contains(uri)));
    let is_open = contains(&[
        "info:eu-repo/semantics/openaccess",
        "/coar/access_right/c_abf2",
        "creativecommons.org/licenses/",
        "creativecommons.org/publicdomain/",
    ]);
    let is_limited = contains(&[
        "info:eu-repo/semantics/closedaccess",
        "info:eu-repo/semantics/embargoedaccess",
        "info:eu-repo/semantics/restrictedaccess",
        "/coar/access_right/c_f1cf",
        "/coar/access_right/c_16ec",
        "/coar/access_right/c_14cb",
    ]);
    is_open && !is_limited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_open_if_the_rights_say_so() {
        let is_open = |values: &[&str]| {
            let text = |value: &&str| Text { value: (*value).to_owned(), ..Text::default() };
            is_open_access(&values.iter().map(text).collect::<Vec<_>>())
        };
        let license = "https://creativecommons.org/licenses/by/4.0/";
        for rights in [
            &["info:eu-repo/semantics/openAccess"][..],
            &["x", "http://purl.org/coar/access_right/c_abf2"],
            &[license],
            &["This work is under http://creativecommons.org/publicdomain/zero/1.0/."],
        ] {
            assert!(is_open(rights), "{rights:?}");
        }
        for rights in [
            &[][..],
            &["open"],
            &["info:eu-repo/semantics/closedAccess", license],
            &["info:eu-repo/semantics/embargoedAccess", "info:eu-repo/semantics/openAccess"],
        ] {
            assert!(!is_open(rights), "{rights:?}");
        }
    }
}
