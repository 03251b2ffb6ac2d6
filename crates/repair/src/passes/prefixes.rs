//! Namespaces of prefixes that records use without a declaration.
//!
//! The pass over [`markup`](crate::passes::markup) uses this module.
//!
//! A prefix is in [`UNAMBIGUOUS`] if all repositories that declare it use the same namespace. A prefix with
//! several namespaces is in [`AMBIGUOUS`], and the item decides. Exactly one of the namespaces must appear
//! in an attribute of the item, such as its schemaLocation. Otherwise the prefix stays undeclared and the
//! record goes to quarantine, unless [`well_known_namespace`] has a default.

use crate::lex::known_namespaces::well_known_namespace;
use crate::lex::names::is_blank;
use crate::lex::search::memmem;

/// Prefixes with one namespace, in addition to those of [`well_known_namespace`].
///
/// Each namespace is from the specification of the format or from the software that writes it. Each also
/// appears in stylesheets or records of several repositories.
static UNAMBIGUOUS: &[(&str, &str)] = &[
    // NISO RP-22, Access License and Indicators.
    ("ali", "http://www.niso.org/schemas/ali/1.0/"),
    // BASE, Bielefeld.
    ("base_dc", "http://oai.base-search.net/base_dc/"),
    // The Bibliographic Ontology.
    ("bibo", "http://purl.org/ontology/bibo/"),
    // W3C DCAT.
    ("dcat", "http://www.w3.org/ns/dcat#"),
    // National Diet Library of Japan.
    ("dcndl", "http://ndl.go.jp/dcndl/terms/"),
    // MPEG-21, in the DARE formats of the Netherlands.
    ("didmodel", "urn:mpeg:mpeg21:2002:02-DIDMODEL-NS"),
    // DSpace: metadata format dim.
    ("dim", "http://www.dspace.org/xmlns/dspace/dim"),
    // DSpace: metadata format xoai.
    ("doc", "http://www.lyncode.com/xoai"),
    // DRIVER and OpenAIRE aggregators.
    ("dr", "http://www.driver-repository.eu/namespace/dr"),
    ("oaf", "http://namespace.openaire.eu/oaf"),
    // Europeana Semantic Elements.
    ("ese", "http://www.europeana.eu/schemas/ese/"),
    // ISO 19139.
    ("gco", "http://www.isotc211.org/2005/gco"),
    ("gmd", "http://www.isotc211.org/2005/gmd"),
    ("gsr", "http://www.isotc211.org/2005/gsr"),
    ("gss", "http://www.isotc211.org/2005/gss"),
    ("gts", "http://www.isotc211.org/2005/gts"),
    // National Institute of Informatics of Japan.
    ("junii2", "http://irdb.nii.ac.jp/oai"),
    // National Science Digital Library of the USA.
    ("lar", "http://ns.nsdl.org/schemas/dc/lar"),
    ("nsdl_dc", "http://ns.nsdl.org/nsdl_dc_v1.02/"),
    // W3C MathML.
    ("mml", "http://www.w3.org/1998/Math/MathML"),
    // Directory of Open Access Journals.
    ("oai_doaj", "http://doaj.org/features/oai_doaj/1.0/"),
    // OCLC: metadata format oai_qdc of CONTENTdm.
    ("oai_qdc", "http://worldcat.org/xmlschemas/qdc-1.0/"),
    ("oclcdc", "http://worldcat.org/xmlschemas/oclcdc-1.0/"),
    // W3C OWL and PROV.
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("prov", "http://www.w3.org/ns/prov#"),
    // Text Encoding Initiative.
    ("tei", "http://www.tei-c.org/ns/1.0"),
    // xMetaDissPlus of the German National Library uses thesis: from ETD-MS.
    ("thesis", "http://www.ndltd.org/standards/metadata/etdms/1.0/"),
    // EThOS of the British Library.
    ("uketdterms", "http://naca.central.cranfield.ac.uk/ethos-oai/terms/"),
    // VIVO.
    ("vivo", "http://vivoweb.org/ontology/core#"),
    // W3C Basic Geo.
    ("wgs84", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
];

/// Prefixes with several namespaces in use.
static AMBIGUOUS: &[(&str, &[&str])] = &[
    ("cerif", &["https://www.openaire.eu/cerif-profile/1.1/", "https://www.openaire.eu/cerif-profile/1.2/"]),
    ("cmd", &["http://www.clarin.eu/cmd/", "http://www.clarin.eu/cmd/1"]),
    (
        "datacite",
        &[
            "http://datacite.org/schema/kernel-4",
            "http://datacite.org/schema/kernel-3",
            "http://datacite.org/schema/kernel-2.2",
            // JPCOAR uses this form.
            "https://schema.datacite.org/meta/kernel-4/",
        ],
    ),
    ("dcq", &["http://purl.org/dc/terms/", "http://purl.org/dc/qualifiers/1.0/"]),
    (
        "etdms",
        &[
            "http://www.ndltd.org/standards/metadata/etdms/1.0/",
            "http://www.ndltd.org/standards/metadata/etdms/1.1/",
        ],
    ),
    ("geo", &["http://www.w3.org/2003/01/geo/wgs84_pos#", "http://www.opengis.net/ont/geosparql#"]),
    ("gml", &["http://www.opengis.net/gml", "http://www.opengis.net/gml/3.2"]),
    (
        "jpcoar",
        &[
            "https://github.com/JPCOAR/schema/blob/master/1.0/",
            "https://github.com/JPCOAR/schema/blob/master/2.0/",
            "https://irdb.nii.ac.jp/schema/jpcoar/1.0/",
        ],
    ),
    ("lom", &["http://ltsc.ieee.org/xsd/LOM", "http://www.imsglobal.org/xsd/imsmd_v1p2"]),
    ("mix", &["http://www.loc.gov/mix/", "http://www.loc.gov/mix/v10", "http://www.loc.gov/mix/v20"]),
    ("olac", &["http://www.language-archives.org/OLAC/1.0/", "http://www.language-archives.org/OLAC/1.1/"]),
    (
        "premis",
        &[
            "http://www.loc.gov/standards/premis",
            "http://www.loc.gov/standards/premis/v1",
            "info:lc/xmlns/premis-v2",
            "http://www.loc.gov/premis/v3",
        ],
    ),
    (
        "prism",
        &[
            "http://prismstandard.org/namespaces/1.2/basic/",
            "http://prismstandard.org/namespaces/basic/2.0/",
            "http://prismstandard.org/namespaces/basic/2.1/",
            "http://prismstandard.org/namespaces/basic/3.0/",
        ],
    ),
    (
        "qdc",
        &[
            "http://epubs.cclrc.ac.uk/xmlns/qdc/",
            "http://dspace.org/qualifieddc/",
            "http://worldcat.org/xmlschemas/qdc-1.0/",
        ],
    ),
    (
        "rioxxterms",
        &["http://www.rioxx.net/schema/v2.0/rioxxterms/", "http://docs.rioxx.net/schema/v3.0/rioxxterms/"],
    ),
    (
        "xMetaDiss",
        &[
            "http://www.d-nb.de/standards/xmetadissplus/",
            "http://www.d-nb.de/standards/xMetaDiss/",
            "http://www.ddb.de/standards/xMetaDiss/",
            "http://www.bsz-bw.de/xmetadissplus/1.3",
        ],
    ),
];

/// The namespaces of ambiguous prefixes in one item. Each prefix is decided once.
#[derive(Debug, Default)]
pub(crate) struct PrefixNamespaces {
    decided: Vec<(&'static str, Option<&'static [u8]>)>,
}

impl PrefixNamespaces {
    /// Returns the namespace of a prefix in an item.
    pub(crate) fn namespace_of(&mut self, prefix: &[u8], item: &[u8]) -> Option<&'static [u8]> {
        if let Some((_, uri)) = UNAMBIGUOUS.iter().find(|(name, _)| name.as_bytes() == prefix) {
            return Some(uri.as_bytes());
        }
        let Some((name, uris)) = AMBIGUOUS.iter().find(|(name, _)| name.as_bytes() == prefix) else {
            return well_known_namespace(prefix);
        };
        if let Some((_, uri)) = self.decided.iter().find(|(decided, _)| decided == name) {
            return *uri;
        }
        let mut named = uris.iter().map(|uri| uri.as_bytes()).filter(|uri| contains_uri(item, uri));
        let uri = match (named.next(), named.next()) {
            (Some(uri), None) => Some(uri),
            _ => well_known_namespace(prefix),
        };
        self.decided.push((name, uri));
        uri
    }
}

/// Returns whether a text contains the namespace URI, delimited by white space or quotes.
fn contains_uri(text: &[u8], uri: &[u8]) -> bool {
    let is_delimiter =
        |byte: Option<&u8>| byte.is_some_and(|&byte| is_blank(byte) || matches!(byte, b'"' | b'\''));
    memmem::find_iter(text, uri).any(|at| {
        is_delimiter(at.checked_sub(1).and_then(|at| text.get(at))) && is_delimiter(text.get(at + uri.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::{AMBIGUOUS, PrefixNamespaces, UNAMBIGUOUS};
    use crate::validate::schema::is_uri_reference;

    #[test]
    fn namespaces_are_legal_and_prefixes_are_in_one_table() {
        let all = UNAMBIGUOUS
            .iter()
            .map(|(_, uri)| *uri)
            .chain(AMBIGUOUS.iter().flat_map(|(_, uris)| uris.iter().copied()));
        for uri in all {
            assert!(is_uri_reference(uri.as_bytes()), "{uri}");
        }
        for (prefix, _) in UNAMBIGUOUS {
            assert!(!AMBIGUOUS.iter().any(|(other, _)| other == prefix), "{prefix}");
        }
    }

    #[test]
    fn an_item_decides_among_several_namespaces() {
        let decide = |prefix: &str, item: &str| {
            PrefixNamespaces::default().namespace_of(prefix.as_bytes(), item.as_bytes())
        };
        let v3 = "xsi:schemaLocation=\"http://www.loc.gov/premis/v3 http://www.loc.gov/standards/premis/premis.xsd\"";
        assert_eq!(decide("premis", v3), Some(&b"http://www.loc.gov/premis/v3"[..]));
        assert_eq!(decide("premis", "see http://www.loc.gov/premis/v3/x"), None);
        assert_eq!(decide("premis", ""), None);
        assert_eq!(decide("datacite", ""), Some(&b"http://datacite.org/schema/kernel-4"[..]));
        assert_eq!(
            decide("datacite", "'http://datacite.org/schema/kernel-3 x.xsd'"),
            Some(&b"http://datacite.org/schema/kernel-3"[..])
        );
        assert_eq!(
            decide(
                "prism",
                "\"http://prismstandard.org/namespaces/basic/2.0/\" 'http://prismstandard.org/namespaces/1.2/basic/'"
            ),
            None
        );
    }
}
