//! The provenance of a record: where the mirror harvested it, and with which datestamp.
//!
//! It is the container of the OAI Guidelines for Optional Containers ("provenance"), in an `about`. A record that
//! says so already, because it was harvested with provenance, gets no second one.

use super::catalog;
use super::identify::source_granularity;
use super::options::MirroredSource;
use super::presentation::View;
use crate::oai::datestamp::{Granularity, from_secs};
use crate::oai::escape;
use crate::store::{MirrorError, RecordStatus, StoredRecord};
use std::collections::HashMap;

/// The facts of the sources of a page, read when they are needed.
#[derive(Default)]
pub(super) struct Origins(HashMap<String, Origin>);

struct Origin {
    granularity: Granularity,
    /// The namespace of each format.
    namespaces: HashMap<String, String>,
}

const NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/provenance";

impl Origins {
    /// The `about` of a record; empty if it gets none. `tag_prefix` is that of the OAI namespace in the record.
    pub(super) async fn about(
        &mut self,
        view: &View,
        (member, prefix): (&MirroredSource, &str),
        record: &StoredRecord,
        (xml, tag_prefix): (&str, &str),
    ) -> Result<String, MirrorError> {
        let Some(base_url) = &member.provenance_base_url else { return Ok(String::new()) };
        if record.status == RecordStatus::Deleted || has_provenance(xml, base_url) {
            return Ok(String::new());
        }
        if !self.0.contains_key(&member.id) {
            let granularity = source_granularity(view, member).await?;
            let formats = catalog::formats_of(view, member).await?;
            let namespaces = formats.into_iter().map(|format| (format.prefix, format.namespace)).collect();
            self.0.insert(member.id.clone(), Origin { granularity, namespaces });
        }
        let origin = self.0.get(&member.id);
        let granularity = origin.map_or(Granularity::Second, |origin| origin.granularity);
        let namespace = origin.and_then(|origin| origin.namespaces.get(prefix));
        let harvested = from_secs(record.stamp_secs, Granularity::Second);
        let mut about = format!(
            "<{tag_prefix}about><provenance xmlns=\"{NAMESPACE}\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"{NAMESPACE} http://www.openarchives.org/OAI/2.0/provenance.xsd\">\
             <originDescription harvestDate=\"{harvested}\" altered=\"false\">"
        );
        for (name, value) in [
            ("baseURL", base_url.as_str()),
            ("identifier", &record.identifier),
            ("datestamp", &from_secs(record.datestamp_secs, granularity)),
            ("metadataNamespace", namespace.map_or("", String::as_str)),
        ] {
            about.push_str(&format!("<{name}>"));
            escape(value, &mut about);
            about.push_str(&format!("</{name}>"));
        }
        about.push_str(&format!("</originDescription></provenance></{tag_prefix}about>"));
        Ok(about)
    }
}

/// Whether a record describes its harvest from this base URL.
fn has_provenance(xml: &str, base_url: &str) -> bool {
    let mut escaped = String::new();
    escape(base_url, &mut escaped);
    xml.contains(NAMESPACE) && xml.contains(&format!("baseURL>{escaped}</"))
}
