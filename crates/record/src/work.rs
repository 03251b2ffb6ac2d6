//! What a page says of a work.

use crate::document::RecordDocument;
use crate::dublin_core::DublinCore;
use crate::language::language_tag;
use crate::links::RecordLinks;
use crate::publication_date::PublicationDate;
use crate::work_type::WorkType;

/// What a page says of a work, from the Dublin Core of its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkDescription {
    /// The identifier of the record.
    pub identifier: String,
    /// The fields of Dublin Core.
    pub core: DublinCore,
    /// The links.
    pub links: RecordLinks,
    /// The type.
    pub work_type: WorkType,
    /// The date of publication.
    pub published: Option<PublicationDate>,
}

impl WorkDescription {
    /// The description of a work from a record in `oai_dc` or a format that extends it. For other formats it has the
    /// identifier only.
    pub fn of(document: &RecordDocument) -> Self {
        let core = DublinCore::of(document);
        Self {
            identifier: document.identifier.clone(),
            links: RecordLinks::of(&core),
            work_type: WorkType::among(&core.types),
            published: PublicationDate::among(&core.dates),
            core,
        }
    }

    /// The language tag of the work.
    pub fn language(&self) -> Option<String> {
        self.core.languages.iter().find_map(|text| language_tag(&text.value))
    }
}
