//! Known names of metadata formats: prefixes, namespaces, and fields that contain plain text.
//!
//! The repairs of prefixes, namespaces and tags use them, as does the search for boundaries.

use crate::catalog::RepairId;
use crate::lex::namespaces::{OAI, XSI};
use crate::lex::text_fields::{
    is_datacite, is_datacite_field, is_datacite_group, is_ddi_field, is_ddi_group, is_ddi_markup,
    is_lido_field, is_lido_group,
};

/// Prefixes with only one meaning in OAI-PMH, and their namespaces.
static PREFIXES: &[(&str, &str)] = &[
    ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("dct", "http://purl.org/dc/terms/"),
    ("dcmitype", "http://purl.org/dc/dcmitype/"),
    ("xlink", "http://www.w3.org/1999/xlink"),
    ("marc", "http://www.loc.gov/MARC21/slim"),
    ("mods", "http://www.loc.gov/mods/v3"),
    ("mets", "http://www.loc.gov/METS/"),
    ("didl", "urn:mpeg:mpeg21:2002:02-DIDL-NS"),
    ("dii", "urn:mpeg:mpeg21:2002:01-DII-NS"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("edm", "http://www.europeana.eu/schemas/edm/"),
    ("ore", "http://www.openarchives.org/ore/terms/"),
    ("etdms", "http://www.ndltd.org/standards/metadata/etdms/1.0/"),
    ("uketd_dc", "http://naca.central.cranfield.ac.uk/ethos-oai/2.0/"),
    ("datacite", "http://datacite.org/schema/kernel-4"),
    ("oaire", "http://namespace.openaire.eu/schema/oaire/"),
    ("oai-identifier", "http://www.openarchives.org/OAI/2.0/oai-identifier"),
];

/// The namespace that a well-known prefix means.
pub(crate) fn well_known_namespace(prefix: &[u8]) -> Option<&'static [u8]> {
    if prefix == b"xsi" {
        return Some(XSI);
    }
    PREFIXES.iter().find(|(known, _)| known.as_bytes() == prefix).map(|(_, uri)| uri.as_bytes())
}

/// The difference between a namespace and the well-known one that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misspelling {
    /// https:// for http://.
    Https,
    /// A slash is missing or added, or the case differs.
    Variant,
}

impl Misspelling {
    /// The repair that corrects it.
    pub(crate) fn repair(self) -> RepairId {
        match self {
            Self::Https => RepairId::HttpsNamespace,
            Self::Variant => RepairId::NamespaceVariant,
        }
    }
}

fn well_known_namespaces() -> impl Iterator<Item = &'static [u8]> {
    PREFIXES.iter().map(|(_, uri)| uri.as_bytes()).chain([OAI, XSI])
}

/// Whether a namespace is a well-known one in its official spelling.
pub(crate) fn is_well_known(uri: &[u8]) -> bool {
    well_known_namespaces().any(|known| known == uri)
}

/// The well-known namespace that a misspelt one means.
pub(crate) fn correct_namespace(uri: &[u8]) -> Option<(&'static [u8], Misspelling)> {
    if is_well_known(uri) {
        return None;
    }
    let trimmed = crate::lex::names::trim(uri);
    let plain = trimmed.strip_prefix(b"https://").map(|rest| [b"http://", rest].concat());
    if let Some(plain) = &plain
        && let Some(meant) = well_known_namespaces().find(|known| known == plain)
    {
        return Some((meant, Misspelling::Https));
    }
    let folded = without_slashes(plain.as_deref().unwrap_or(trimmed));
    let meant = well_known_namespaces().find(|known| without_slashes(known).eq_ignore_ascii_case(folded))?;
    Some((meant, if plain.is_some() { Misspelling::Https } else { Misspelling::Variant }))
}

/// The URI without slashes at its end.
fn without_slashes(uri: &[u8]) -> &[u8] {
    let end = uri.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    uri.get(..end).unwrap_or_default()
}

/// Families of formats, recognised by the names of their elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// `dc` and its relatives: fields only.
    DublinCore,
    /// MARCXML: record, datafield, subfield.
    Marc,
    /// MODS: fields, and elements that group fields.
    Mods,
    /// DataCite, and OpenAIRE, which consists of its elements.
    DataCite,
    /// LIDO.
    Lido,
    /// DDI. Its fields have markup of their own.
    Ddi,
    /// Formats with mixed content. Their tags are balanced.
    Mixed,
    /// Unknown formats. Nothing is guessed.
    Other,
}

impl Family {
    /// The family of a payload, given the local name of its root and its namespace.
    pub(crate) fn of_root(local: &[u8], namespace: &[u8]) -> Self {
        match local {
            b"dc" | b"qualifieddc" | b"qdc" | b"dcterms" => Self::DublinCore,
            b"record" | b"collection" => Self::Marc,
            b"mods" | b"modsCollection" => Self::Mods,
            b"resource" | b"oai_datacite" if is_datacite(namespace) => Self::DataCite,
            b"lido" | b"lidoWrap" => Self::Lido,
            b"codeBook" | b"DDIInstance" => Self::Ddi,
            b"ead" | b"TEI" | b"TEI.2" | b"teiHeader" | b"article" | b"mets" | b"html" | b"body" | b"div" => {
                Self::Mixed
            }
            _ => Self::Other,
        }
    }

    /// Whether the element with this local name contains plain text.
    pub(crate) fn is_field(self, local: &[u8]) -> bool {
        match self {
            Self::DublinCore => is_dc_element(local),
            Self::Marc => matches!(local, b"leader" | b"controlfield" | b"subfield"),
            Self::Mods => is_mods_field(local),
            Self::DataCite => is_datacite_field(local),
            Self::Lido => is_lido_field(local),
            Self::Ddi => is_ddi_field(local),
            Self::Mixed | Self::Other => false,
        }
    }

    /// Whether a field may contain the element with this local name. Such an element contains text too.
    pub(crate) fn is_markup(self, local: &[u8]) -> bool {
        self == Self::Ddi && is_ddi_markup(local)
    }

    /// Whether the element with this local name groups fields, so that it ends an open field.
    pub(crate) fn is_group(self, local: &[u8]) -> bool {
        match self {
            Self::Mods => is_mods_container(local),
            Self::DataCite => is_datacite_group(local),
            Self::Lido => is_lido_group(local),
            Self::Ddi => is_ddi_group(local),
            Self::DublinCore | Self::Marc | Self::Mixed | Self::Other => false,
        }
    }

    /// Whether the tags around fields are too little known to balance them.
    pub(crate) fn has_unknown_structure(self) -> bool {
        matches!(self, Self::DataCite | Self::Lido | Self::Ddi | Self::Other)
    }

    /// Whether the element with this local name contains elements and no text.
    pub(crate) fn is_container(self, local: &[u8]) -> bool {
        match self {
            Self::Marc => matches!(local, b"collection" | b"record" | b"datafield"),
            Self::Mods => is_mods_container(local),
            Self::DublinCore | Self::DataCite | Self::Lido | Self::Ddi | Self::Mixed | Self::Other => false,
        }
    }

    /// The local name of the element that must contain this one, if there is one.
    pub(crate) fn parent(self, local: &[u8]) -> Option<&'static [u8]> {
        match (self, local) {
            (Self::Marc, b"leader" | b"controlfield" | b"datafield") => Some(b"record"),
            (Self::Marc, b"subfield") => Some(b"datafield"),
            _ => None,
        }
    }
}

/// Whether an element of MODS 3 contains plain text everywhere.
fn is_mods_field(local: &[u8]) -> bool {
    matches!(
        local,
        b"abstract"
            | b"affiliation"
            | b"caption"
            | b"city"
            | b"classification"
            | b"coordinates"
            | b"copyrightDate"
            | b"country"
            | b"dateCaptured"
            | b"dateCreated"
            | b"dateIssued"
            | b"dateModified"
            | b"dateOther"
            | b"dateValid"
            | b"description"
            | b"digitalOrigin"
            | b"displayForm"
            | b"edition"
            | b"form"
            | b"frequency"
            | b"genre"
            | b"geographic"
            | b"geographicCode"
            | b"identifier"
            | b"internetMediaType"
            | b"issuance"
            | b"languageTerm"
            | b"namePart"
            | b"nonSort"
            | b"note"
            | b"number"
            | b"occupation"
            | b"partName"
            | b"partNumber"
            | b"physicalLocation"
            | b"placeTerm"
            | b"projection"
            | b"publisher"
            | b"recordChangeDate"
            | b"recordContentSource"
            | b"recordCreationDate"
            | b"recordIdentifier"
            | b"recordOrigin"
            | b"reformattingQuality"
            | b"roleTerm"
            | b"scale"
            | b"scriptTerm"
            | b"shelfLocator"
            | b"state"
            | b"subTitle"
            | b"tableOfContents"
            | b"targetAudience"
            | b"temporal"
            | b"title"
            | b"topic"
            | b"typeOfResource"
            | b"url"
    )
}

/// Whether an element of MODS 3 contains elements and no text.
fn is_mods_container(local: &[u8]) -> bool {
    matches!(
        local,
        b"cartographics"
            | b"detail"
            | b"hierarchicalGeographic"
            | b"language"
            | b"location"
            | b"mods"
            | b"modsCollection"
            | b"name"
            | b"originInfo"
            | b"part"
            | b"physicalDescription"
            | b"place"
            | b"recordInfo"
            | b"relatedItem"
            | b"role"
            | b"subject"
            | b"titleInfo"
    )
}

/// Whether a local name is an element or refinement of Dublin Core.
fn is_dc_element(local: &[u8]) -> bool {
    matches!(
        local,
        b"title"
            | b"creator"
            | b"subject"
            | b"description"
            | b"publisher"
            | b"contributor"
            | b"date"
            | b"type"
            | b"format"
            | b"identifier"
            | b"source"
            | b"language"
            | b"relation"
            | b"coverage"
            | b"rights"
            | b"abstract"
            | b"accessRights"
            | b"alternative"
            | b"audience"
            | b"available"
            | b"bibliographicCitation"
            | b"conformsTo"
            | b"created"
            | b"dateAccepted"
            | b"dateCopyrighted"
            | b"dateSubmitted"
            | b"educationLevel"
            | b"extent"
            | b"hasFormat"
            | b"hasPart"
            | b"hasVersion"
            | b"isFormatOf"
            | b"isPartOf"
            | b"isReferencedBy"
            | b"isReplacedBy"
            | b"isRequiredBy"
            | b"isVersionOf"
            | b"issued"
            | b"license"
            | b"mediator"
            | b"medium"
            | b"modified"
            | b"provenance"
            | b"references"
            | b"replaces"
            | b"requires"
            | b"rightsHolder"
            | b"spatial"
            | b"tableOfContents"
            | b"temporal"
            | b"valid"
    )
}

/// Whether two local names mean the same: they differ only in case, or by one letter that is added,
/// missing, replaced or swapped with the next.
pub(crate) fn is_similar_name(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    // Names of one or two letters are too short: <b> and </i> differ.
    one == other
        || one.len().min(other.len()) > 2 && (is_within_distance(&one, &other, 1) || is_swap(&one, &other))
}

fn is_swap(one: &[u8], other: &[u8]) -> bool {
    let differs: Vec<usize> = (0..one.len()).filter(|&at| one.get(at) != other.get(at)).collect();
    one.len() == other.len()
        && matches!(differs[..], [a, b] if b == a + 1 && one.get(a) == other.get(b) && one.get(b) == other.get(a))
}

/// Whether two names differ by at most `letters` insertions, deletions or replacements.
pub(crate) fn is_within_distance(one: &[u8], other: &[u8], letters: usize) -> bool {
    if one.len().abs_diff(other.len()) > letters || one.len() > 64 || other.len() > 64 {
        return false;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (b, cell) in other.iter().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            let here = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            diagonal = above;
            left = here;
            *cell = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().is_some_and(|&distance| distance <= letters)
}

#[cfg(test)]
mod tests {
    use super::well_known_namespaces;
    use crate::validate::schema::is_uri_reference;

    #[test]
    fn well_known_namespaces_are_legal() {
        for known in well_known_namespaces() {
            assert!(is_uri_reference(known), "{}", String::from_utf8_lossy(known));
        }
    }
}
