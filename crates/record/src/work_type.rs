//! The types of works.

use crate::text::Text;

/// The type of a work, as far as schema.org and reference managers distinguish them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkType {
    /// An article, a preprint or a paper of a conference.
    Article,
    /// A thesis of any degree.
    Thesis,
    /// A book.
    Book,
    /// A part of a book.
    Chapter,
    /// A report or working paper.
    Report,
    /// A dataset.
    Dataset,
    /// Software.
    Software,
    /// An image.
    Image,
    /// A film or video.
    Video,
    /// A sound.
    Audio,
    /// A map.
    Map,
    /// Any other type.
    #[default]
    Other,
}

impl WorkType {
    /// The type that the values of `type` name: the first one that is not *other*.
    ///
    /// Known are the vocabularies of info:eu-repo, COAR, DINI and DCMI, and the usual English words.
    pub fn among(types: &[Text]) -> Self {
        let known = types.iter().map(|text| Self::named(&text.value)).find(|found| *found != Self::Other);
        known.unwrap_or_default()
    }

    /// The class of schema.org.
    pub const fn schema_org(self) -> &'static str {
        match self {
            Self::Article => "ScholarlyArticle",
            Self::Thesis => "Thesis",
            Self::Book => "Book",
            Self::Chapter => "Chapter",
            Self::Report => "Report",
            Self::Dataset => "Dataset",
            Self::Software => "SoftwareSourceCode",
            Self::Image => "ImageObject",
            Self::Video => "VideoObject",
            Self::Audio => "AudioObject",
            Self::Map => "Map",
            Self::Other => "CreativeWork",
        }
    }

    /// The name for people, such as `Book chapter`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Article => "Article",
            Self::Thesis => "Thesis",
            Self::Book => "Book",
            Self::Chapter => "Book chapter",
            Self::Report => "Report",
            Self::Dataset => "Dataset",
            Self::Software => "Software",
            Self::Image => "Image",
            Self::Video => "Video",
            Self::Audio => "Sound",
            Self::Map => "Map",
            Self::Other => "Record",
        }
    }

    fn named(text: &str) -> Self {
        // The concept of a vocabulary follows the last slash or colon of its URI.
        let is_uri = ["http://", "https://", "info:", "doc-type:", "dcmitype:", "dcterms:"]
            .iter()
            .any(|start| text.get(..start.len()).is_some_and(|is| is.eq_ignore_ascii_case(start)));
        let concept = if is_uri { text.rsplit(['/', ':', '#']).next().unwrap_or_default() } else { text };
        let letters = concept.chars().filter(|c| c.is_alphanumeric() || *c == '_').take(WORD_CHARS_MAX);
        let word = letters.collect::<String>().to_lowercase();
        let found = WORDS.iter().find(|(_, words)| words.split_ascii_whitespace().any(|known| known == word));
        found.map_or(Self::Other, |(found, _)| *found)
    }
}

/// Longest word of a vocabulary, in characters.
const WORD_CHARS_MAX: usize = 40;

/// The words of each type, without blanks and hyphens, in lower case. `c_6501` and the like are concepts of COAR.
const WORDS: &[(WorkType, &str)] = &[
    (
        WorkType::Article,
        "article articles journalarticle journalarticles researcharticle reviewarticle scholarlyarticle review \
         preprint preprints postprint contributiontoperiodical conferenceobject conferencepaper conferenceitem \
         inproceedings datapaper editorial lettertotheeditor bookreview newspaperarticle magazinearticle \
         c_6501 c_2df8fbb1 c_dcae04bc c_beb9 c_816b c_5794 c_c94f c_b239 c_545b c_ba08 c_3e5a c_998f c_7bab",
    ),
    (
        WorkType::Thesis,
        "thesis theses dissertation dissertations doctoralthesis doctoraldissertation phdthesis phddissertation \
         masterthesis mastersthesis bachelorthesis bachelorsthesis diplomathesis studythesis \
         electronicthesisordissertation c_46ec c_db06 c_bdcc c_7a1f",
    ),
    (WorkType::Book, "book books monograph monographs conferenceproceedings c_2f33 c_f744"),
    (WorkType::Chapter, "bookpart bookchapter bookchapters bookitem chapter booksection partofbook c_3248"),
    (
        WorkType::Report,
        "report reports technicalreport researchreport workingpaper workingpapers deliverable \
         c_93fc c_18gh c_18ws c_18op c_8042",
    ),
    (WorkType::Dataset, "dataset datasets researchdata data surveydata c_ddb1"),
    (WorkType::Software, "software sourcecode c_5ce6"),
    (WorkType::Image, "image images stillimage photograph photographs c_c513 c_ecc8"),
    (WorkType::Video, "movingimage video film c_8a7e c_12ce"),
    (WorkType::Audio, "sound audio soundrecording musicalrecording c_18cc"),
    (WorkType::Map, "map maps cartographicmaterial c_12cd"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vocabularies_and_words_are_known() {
        for (text, class) in [
            ("info:eu-repo/semantics/article", "ScholarlyArticle"),
            ("INFO:eu-repo/semantics/doctoralThesis", "Thesis"),
            ("info:eu-repo/semantics/bookPart", "Chapter"),
            ("info:eu-repo/semantics/workingPaper", "Report"),
            ("http://purl.org/coar/resource_type/c_6501", "ScholarlyArticle"),
            ("http://purl.org/coar/resource_type/c_ddb1/", "CreativeWork"),
            ("https://purl.org/coar/resource_type/c_ddb1", "Dataset"),
            ("http://purl.org/dc/dcmitype/StillImage", "ImageObject"),
            ("dcmitype:Dataset", "Dataset"),
            ("doc-type:doctoralThesis", "Thesis"),
            ("Journal Article", "ScholarlyArticle"),
            ("Book", "Book"),
            ("Still image", "ImageObject"),
            ("PhD Thesis", "Thesis"),
            ("Text", "CreativeWork"),
            ("Bookkeeping", "CreativeWork"),
            ("", "CreativeWork"),
            ("http://", "CreativeWork"),
        ] {
            assert_eq!(WorkType::named(text).schema_org(), class, "{text}");
        }
    }

    #[test]
    fn the_first_known_type_counts() {
        let texts = |values: &[&str]| -> Vec<Text> {
            values.iter().map(|value| Text { value: (*value).to_owned(), ..Text::default() }).collect()
        };
        assert_eq!(
            WorkType::among(&texts(&["text", "info:eu-repo/semantics/book", "article"])),
            WorkType::Book
        );
        assert_eq!(WorkType::among(&texts(&["PeerReviewed"])), WorkType::Other);
        assert_eq!(WorkType::among(&[]), WorkType::Other);
    }
}
