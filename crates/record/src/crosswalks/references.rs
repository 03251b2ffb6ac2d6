//! The works that a record says it cites, or that cite it, where its format has a place for them.
//!
//! Each row of a format is a few names, so all formats are read in one pass over the elements.

use crate::document::{Field, RecordDocument};

/// The works that the reference lists of a record name, as texts that identify them, such as `doi:10.1000/182`.
///
/// They are read from `references` and `isReferencedBy` of qualified Dublin Core, `relatedIdentifier` of DataCite, `ref` of
/// JATS, `biblStruct` of TEI, and `referent` and `referring-entity` of ContextObjects of OpenURL (ANSI/NISO Z39.88, 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// What identifies the work itself, in formats that [`DublinCore`](crate::DublinCore) does not read.
    pub identifying: Vec<String>,
    /// The works that it cites.
    pub cited: Vec<String>,
    /// The works that cite it.
    pub citing: Vec<String>,
}

/// What a text identifies.
#[derive(Clone, Copy)]
enum Named {
    Own,
    Cited,
    Citing,
}

const DUBLIN_CORE: &str = "http://purl.org/dc/";
const DATACITE: &str = "http://datacite.org/schema/kernel-";
const TEI: &str = "http://www.tei-c.org/ns/1.0";
const CONTEXT_OBJECT: &str = "info:ofi/fmt:xml:xsd:ctx";
/// The hosts in the namespaces of JATS and of its predecessor. Most articles have no namespace.
const JATS_HOSTS: [&str; 2] = ["//jats.nlm.nih.gov", "//dtd.nlm.nih.gov"];

/// The starts of the namespaces of formats whose records contain lists of references, the best one first.
const REFERENCE_FORMATS: [&str; 6] = [
    "https://jats.nlm.nih.gov",
    "http://jats.nlm.nih.gov",
    "http://dtd.nlm.nih.gov",
    TEI,
    CONTEXT_OBJECT,
    DATACITE,
];

impl References {
    /// Reads the metadata of a record.
    pub fn of(document: &RecordDocument) -> Self {
        let mut found = Self::default();
        let is_article =
            document.payload().is_some_and(|payload| payload.name == "article" && is_jats(payload));
        let mut path: Vec<&str> = Vec::new();
        for field in &document.metadata {
            path.truncate(field.depth);
            let named = named_by(field, &path, is_article);
            path.push(&field.name);
            let Some((named, text)) = named else { continue };
            match named {
                Named::Own => found.identifying.push(text),
                Named::Cited => found.cited.push(text),
                Named::Citing => found.citing.push(text),
            }
        }
        found
    }
}

/// The format among these whose records contain lists of references: pairs of a metadataPrefix and a namespace. `None` if
/// none does.
pub fn format_with_references<'f>(
    formats: impl Iterator<Item = (&'f str, &'f str)> + Clone,
) -> Option<&'f str> {
    REFERENCE_FORMATS.iter().find_map(|start| {
        formats.clone().find(|(_, namespace)| namespace.starts_with(start)).map(|(prefix, _)| prefix)
    })
}

fn is_jats(field: &Field) -> bool {
    field.namespace.is_empty() || JATS_HOSTS.iter().any(|host| field.namespace.contains(host))
}

/// What an element names. `path` are the names of the elements around it.
fn named_by(field: &Field, path: &[&str], is_article: bool) -> Option<(Named, String)> {
    let is_in = |name: &str| path.contains(&name);
    let text = || field.text.value.as_str();
    let namespace = &*field.namespace;
    let name = field.name.as_str();
    match name {
        "references" if namespace.starts_with(DUBLIN_CORE) => Some((Named::Cited, text().to_owned())),
        "isReferencedBy" if namespace.starts_with(DUBLIN_CORE) => Some((Named::Citing, text().to_owned())),
        "relatedIdentifier" if namespace.starts_with(DATACITE) => {
            let named = match attribute(field, "relationType")? {
                "Cites" | "References" => Named::Cited,
                "IsCitedBy" | "IsReferencedBy" => Named::Citing,
                _ => return None,
            };
            Some((named, labelled(attribute(field, "relatedIdentifierType"), text())))
        }
        "identifier" if namespace == CONTEXT_OBJECT && is_in("referent") => {
            Some((Named::Cited, text().to_owned()))
        }
        "identifier" if namespace == CONTEXT_OBJECT && is_in("referring-entity") => {
            Some((Named::Own, text().to_owned()))
        }
        // The source of the text is the work itself, also inside a list, but for what it is a part of and the literature
        // about a manuscript.
        "idno" if namespace == TEI && is_in("sourceDesc") && is_in("biblStruct") => {
            let of_source = path.rsplit(|name| *name == "sourceDesc").next().unwrap_or_default();
            let of_others = ["listBibl", "msDesc", "monogr", "series", "relatedItem"];
            let is_of_other = of_source.iter().any(|name| of_others.contains(name));
            if is_of_other { None } else { Some((Named::Own, labelled(attribute(field, "type"), text()))) }
        }
        "idno" if namespace == TEI && is_in("listBibl") && is_in("biblStruct") => {
            Some((Named::Cited, labelled(attribute(field, "type"), text())))
        }
        "article-id"
            if is_article && is_jats(field) && path.ends_with(&["article", "front", "article-meta"]) =>
        {
            Some((Named::Own, labelled(attribute(field, "pub-id-type"), text())))
        }
        "pub-id" if is_article && is_jats(field) && is_in("ref") => {
            Some((Named::Cited, labelled(attribute(field, "pub-id-type"), text())))
        }
        "ext-link" | "uri" if is_article && is_jats(field) && is_in("ref") => {
            Some((Named::Cited, attribute(field, "href").unwrap_or(text()).to_owned()))
        }
        _ => None,
    }
}

/// The value of an attribute by its name without prefix.
fn attribute<'f>(field: &'f Field, name: &str) -> Option<&'f str> {
    let is_named = |written: &str| written.rsplit(':').next() == Some(name);
    field
        .attributes
        .iter()
        .find(|attribute| is_named(&attribute.name))
        .map(|attribute| attribute.value.trim())
}

/// An identifier with the label of its type, because a number alone could be of any type.
fn labelled(kind: Option<&str>, text: &str) -> String {
    let text = text.trim();
    let label = match kind.unwrap_or_default().to_ascii_lowercase().as_str() {
        "doi" => "doi:",
        "pmid" => "pmid:",
        "arxiv" => "arxiv:",
        "isbn" => "isbn:",
        "handle" | "hdl" => "hdl:",
        _ => return text.to_owned(),
    };
    let is_labelled = text.contains("://")
        || text.get(..label.len()).is_some_and(|start| start.eq_ignore_ascii_case(label));
    if is_labelled { text.to_owned() } else { format!("{label}{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(metadata: &str) -> References {
        let xml = format!("<record><header></header><metadata>{metadata}</metadata></record>");
        References::of(&RecordDocument::read(&xml).expect("the record is well-formed"))
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn qualified_dublin_core_and_datacite_name_both_directions() {
        let found = references(
            "<q xmlns:t='http://purl.org/dc/terms/' xmlns:x='urn:x'><t:references>10.1000/1</t:references>\
             <t:isReferencedBy>10.1000/2</t:isReferencedBy><x:references>10.1000/3</x:references></q>",
        );
        assert_eq!((found.cited, found.citing), (texts(&["10.1000/1"]), texts(&["10.1000/2"])));
        let found = references(
            "<resource xmlns='http://datacite.org/schema/kernel-4'><relatedIdentifiers>\
             <relatedIdentifier relatedIdentifierType='DOI' relationType='Cites'>10.1000/1</relatedIdentifier>\
             <relatedIdentifier relatedIdentifierType='PMID' relationType='References'>12</relatedIdentifier>\
             <relatedIdentifier relatedIdentifierType='arXiv' relationType='IsCitedBy'>arXiv:0704.0001</relatedIdentifier>\
             <relatedIdentifier relatedIdentifierType='DOI' relationType='IsPartOf'>10.1000/4</relatedIdentifier>\
             </relatedIdentifiers></resource>",
        );
        assert_eq!(found.cited, texts(&["doi:10.1000/1", "pmid:12"]));
        assert_eq!((found.citing, found.identifying), (texts(&["arXiv:0704.0001"]), Vec::new()));
    }

    #[test]
    fn articles_name_themselves_and_their_references() {
        for namespace in ["", "xmlns='https://jats.nlm.nih.gov/ns/archiving/1.3/'"] {
            let found = references(&format!(
                "<article {namespace} xmlns:xlink='urn:l'><front><article-meta>\
                 <article-id pub-id-type='doi'>10.1000/0</article-id>\
                 <related-object><article-id pub-id-type='doi'>10.1000/9</article-id></related-object>\
                 </article-meta></front><body><pub-id pub-id-type='doi'>10.1000/8</pub-id></body><back><ref-list>\
                 <ref><mixed-citation>A <pub-id pub-id-type='doi'>10.1000/1</pub-id>\
                 <pub-id pub-id-type='pmid'>17</pub-id></mixed-citation></ref>\
                 <ref><ext-link xlink:href='https://doi.org/10.1000/2'>x</ext-link><uri>https://e.org/3</uri></ref>\
                 </ref-list></back></article>"
            ));
            assert_eq!(found.identifying, texts(&["doi:10.1000/0"]), "{namespace}");
            let cited = ["doi:10.1000/1", "pmid:17", "https://doi.org/10.1000/2", "https://e.org/3"];
            assert_eq!(found.cited, texts(&cited), "{namespace}");
        }
        // An element of this name in another format is no reference.
        assert_eq!(references("<a><ref><pub-id>10.1000/1</pub-id></ref></a>"), References::default());
        assert_eq!(
            references("<article xmlns='urn:x'><ref><pub-id>1</pub-id></ref></article>"),
            References::default()
        );
    }

    #[test]
    fn tei_and_context_objects_tell_the_work_from_what_it_cites() {
        let found = references(
            "<TEI xmlns='http://www.tei-c.org/ns/1.0'><teiHeader><fileDesc><sourceDesc><biblStruct>\
             <idno type='DOI'>10.1000/0</idno><monogr><idno type='DOI'>10.1000/book</idno></monogr></biblStruct></sourceDesc>\
             </fileDesc></teiHeader><text>\
             <idno type='DOI'>10.1000/9</idno><back><listBibl><biblStruct><analytic><idno type='DOI'>10.1000/1</idno>\
             </analytic></biblStruct><biblFull><sourceDesc><biblStruct><idno type='doi'>10.1000/A</idno></biblStruct>\
             </sourceDesc></biblFull></listBibl></back></text></TEI>",
        );
        assert_eq!(found.identifying, texts(&["doi:10.1000/0", "doi:10.1000/A"]));
        assert_eq!(found.cited, texts(&["doi:10.1000/1"]));
        let found = references(
            "<ctx:context-objects xmlns:ctx='info:ofi/fmt:xml:xsd:ctx'><ctx:context-object><ctx:referent>\
             <ctx:identifier>info:doi/10.1000/1</ctx:identifier></ctx:referent><ctx:referring-entity>\
             <ctx:identifier>info:doi/10.1000/0</ctx:identifier></ctx:referring-entity><ctx:referrer>\
             <ctx:identifier>info:sid/x</ctx:identifier></ctx:referrer></ctx:context-object></ctx:context-objects>",
        );
        assert_eq!(
            (found.identifying, found.cited),
            (texts(&["info:doi/10.1000/0"]), texts(&["info:doi/10.1000/1"]))
        );
    }

    #[test]
    fn a_format_with_references_is_preferred() {
        let formats = [
            ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
            ("dc4", "http://datacite.org/schema/kernel-4"),
            ("tei", TEI),
        ];
        assert_eq!(format_with_references(formats.into_iter()), Some("tei"));
        assert_eq!(format_with_references(formats.into_iter().take(2)), Some("dc4"));
        assert_eq!(format_with_references(formats.into_iter().take(1)), None);
    }
}
