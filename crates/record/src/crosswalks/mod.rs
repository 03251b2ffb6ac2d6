//! Crosswalks: what the elements of a format mean in Dublin Core.
//!
//! [`CROSSWALKS`] is the table of formats. A new format is one file and one row. The payload of a record selects the row by
//! its namespace and name, because repositories give formats any prefix.

mod datacite;
mod ead;
mod edm;
mod element;
mod etd_ms;
mod lido;
mod marcxml;
mod mods;
mod qualified_dublin_core;
mod references;
mod richness;

pub use references::{References, format_with_references};
pub use richness::{readable_richest_first, richest_first};

use crate::document::RecordDocument;
use crate::dublin_core::DublinCore;
use crate::work_fields::WorkFields;
use element::Element;

/// A format with its crosswalk.
struct Crosswalk {
    /// The start of the namespace, because some formats have one for each version; empty for no namespace.
    namespace: &'static str,
    /// The names of the payload.
    payloads: &'static [&'static str],
    read: fn(Element<'_>, &mut WorkFields),
}

/// All formats but those that extend Dublin Core.
const CROSSWALKS: &[Crosswalk] = &[
    Crosswalk {
        namespace: "http://www.loc.gov/MARC21/slim",
        payloads: &["record", "collection"],
        read: marcxml::read,
    },
    Crosswalk {
        namespace: "info:lc/xmlns/marcxchange-v",
        payloads: &["record", "collection"],
        read: marcxml::read,
    },
    Crosswalk {
        namespace: "http://www.loc.gov/mods/v3",
        payloads: &["mods", "modsCollection"],
        read: mods::read,
    },
    Crosswalk {
        namespace: "http://datacite.org/schema/kernel-",
        payloads: &["resource"],
        read: datacite::read,
    },
    Crosswalk {
        namespace: "http://schema.datacite.org/oai/oai-1.",
        payloads: &["oai_datacite"],
        read: datacite::read_wrapped,
    },
    Crosswalk {
        namespace: "http://www.ndltd.org/standards/metadata/etdms/1.",
        payloads: &["thesis"],
        read: etd_ms::read,
    },
    Crosswalk { namespace: "http://www.lido-schema.org", payloads: &["lido", "lidoWrap"], read: lido::read },
    Crosswalk {
        namespace: "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        payloads: &["RDF"],
        read: edm::read,
    },
    Crosswalk { namespace: "urn:isbn:1-931666-22-9", payloads: &["ead"], read: ead::read },
    Crosswalk { namespace: "http://ead3.archivists.org/schema/", payloads: &["ead"], read: ead::read },
    Crosswalk { namespace: "", payloads: &["ead"], read: ead::read },
];

impl Crosswalk {
    fn fits(&self, payload: Element<'_>) -> bool {
        let is_same = match self.namespace {
            "" => payload.namespace().is_empty(),
            namespace => payload.namespace().starts_with(namespace),
        };
        is_same && self.payloads.contains(&payload.name())
    }
}

impl WorkFields {
    /// What a record says of its work; nothing if its format has no crosswalk.
    pub(crate) fn of(document: &RecordDocument) -> Self {
        let mut fields = Self::default();
        if let Some(payload) = Element::payload(document) {
            match CROSSWALKS.iter().find(|crosswalk| crosswalk.fits(payload)) {
                Some(crosswalk) => (crosswalk.read)(payload, &mut fields),
                None => qualified_dublin_core::read(payload, &mut fields),
            }
        }
        fields.finish()
    }
}

impl DublinCore {
    /// The fields of a record in `oai_dc`, a format that extends it, MARCXML, MODS, DataCite, ETD-MS, LIDO, EDM or EAD.
    /// They are empty for other formats.
    pub fn of(document: &RecordDocument) -> Self {
        WorkFields::of(document).core
    }
}

#[cfg(test)]
mod tests;
