//! Which format describes an item best.
//!
//! A repository often has an item in several formats, and pages, exports, feeds, sitemaps and the search index describe
//! it by one of them. This is the only place that orders formats.

/// The format that every repository has (OAI-PMH 2.0, section 3.4).
const DUBLIN_CORE: &str = "oai_dc";

/// The namespaces of the formats that say more than `oai_dc`, the richest format first. What counts is what the
/// crosswalk of a format reads beyond the fifteen texts of Dublin Core, because pages and citations consist of it.
const RICHEST_FIRST: &[&[&str]] = &[
    // Names by role and with ORCIDs, the journal with volume, issue and pages, numbers, licence and full texts, each in
    // an element of its own.
    &["http://www.loc.gov/mods/v3"],
    // The same names, dates by their kinds, and licences. Full texts are missing, and so is the journal before 4.4.
    &["http://datacite.org/schema/kernel-", "http://schema.datacite.org/oai/oai-1."],
    // As MODS, but many repositories write only part of it, and names rarely have ORCIDs.
    &["http://www.loc.gov/MARC21/slim", "info:lc/xmlns/marcxchange-v"],
    // Objects of museums: who made them, when and where, apart from other events.
    &["http://www.lido-schema.org"],
    // Finding aids of archives.
    &["urn:isbn:1-931666-22-9", "http://ead3.archivists.org/schema/"],
    // Dublin Core with labels, rights, and the page and file of the object. Records in it often come from LIDO or EAD.
    &["http://www.europeana.eu/schemas/edm"],
    // Dublin Core with the degree of a thesis.
    &["http://www.ndltd.org/standards/metadata/etdms/1."],
    // Dublin Core with the kinds of dates and the citation of the journal.
    &[
        "http://purl.org/dc/terms/",
        "http://dspace.org/qualifieddc/",
        "http://worldcat.org/xmlschemas/qdc-1.0/",
        "http://epubs.cclrc.ac.uk/xmlns/qdc/",
        "http://naca.central.cranfield.ac.uk/ethos-oai/2.0/",
        "http://www.europeana.eu/schemas/ese",
    ],
];

/// Orders formats, each a metadataPrefix with its namespace, by how well they describe an item: formats that say more than
/// `oai_dc`, then `oai_dc`, then the others. Formats of one rank are in the order of their prefixes.
///
/// The namespace decides, because repositories choose prefixes freely. It is the one in ListMetadataFormats (OAI-PMH 2.0,
/// section 4.4), so the order is the same for all items of a repository.
pub fn richest_first<'f>(formats: impl IntoIterator<Item = (&'f str, &'f str)>) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> =
        formats.into_iter().map(|(prefix, namespace)| (rank(prefix, namespace), prefix)).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, prefix)| prefix.to_owned()).collect()
}

/// The formats of these that a crosswalk reads, in the same order. The others are left out.
pub fn readable_richest_first<'f>(formats: impl IntoIterator<Item = (&'f str, &'f str)>) -> Vec<String> {
    let is_readable = |(prefix, namespace): &(&str, &str)| rank(prefix, namespace) <= RICHEST_FIRST.len();
    richest_first(formats.into_iter().filter(is_readable))
}

fn rank(prefix: &str, namespace: &str) -> usize {
    let is_same = |starts: &&[&str]| starts.iter().any(|start| namespace.starts_with(start));
    match RICHEST_FIRST.iter().position(is_same) {
        _ if prefix == DUBLIN_CORE => RICHEST_FIRST.len(),
        Some(rank) => rank,
        None => RICHEST_FIRST.len() + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crosswalks::CROSSWALKS;

    #[test]
    fn formats_that_say_more_go_before_dublin_core() {
        let formats = [
            ("a", "urn:unknown"),
            ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
            ("b", "http://purl.org/dc/terms/"),
            ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
            ("d2", "http://datacite.org/schema/kernel-4"),
            ("d1", "http://schema.datacite.org/oai/oai-1.1/"),
            ("marc", "http://www.loc.gov/MARC21/slim"),
            ("c", "http://www.loc.gov/mods/v3"),
        ];
        let expected = ["c", "d1", "d2", "marc", "b", "oai_dc", "a", "rdf"];
        assert_eq!(richest_first(formats), expected);
        assert_eq!(readable_richest_first(formats), expected[..6]);
        assert_eq!(richest_first(formats.into_iter().rev()), expected);
        // A wrong namespace in ListMetadataFormats changes nothing for the format that the protocol names.
        let wrong = [("a", ""), ("oai_dc", "http://purl.org/dc/terms/"), ("z", "http://purl.org/dc/terms/")];
        assert_eq!(richest_first(wrong), ["z", "oai_dc", "a"]);
    }

    #[test]
    fn every_crosswalk_has_a_place_in_the_order() {
        // EDM is RDF, and EAD 2002 has a namespace in its later schema only.
        let of_crosswalks = CROSSWALKS.iter().map(|crosswalk| crosswalk.namespace);
        for namespace in of_crosswalks.filter(|namespace| !namespace.is_empty() && !namespace.contains("rdf"))
        {
            assert!(rank("x", namespace) < RICHEST_FIRST.len(), "{namespace}");
        }
    }
}
