//! The records of the repository index.

use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{UnixSecs, escape, named_enum};
use oaimend_store::{NewRecord, RecordRepairs, RecordStatus, content_hash};

/// The namespace of the format INDEX.
pub(super) const NAMESPACE: &str = "urn:x-oaimend:repository-index:1";
pub(super) const DUBLIN_CORE_NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
pub(super) const DUBLIN_CORE_SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd";

named_enum! {
    /// Where the records of a repository are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RepositoryKind {
        /// At its source.
        Live = "live",
        /// In a tape, a file whose records never change.
        Tape = "tape",
        /// In the mirror, harvested from its source.
        Mirrored = "mirrored",
        /// In the mirror, written here.
        Local = "local",
        /// In the mirror, chosen from other repositories.
        View = "view",
        /// In several repositories, which are its members.
        Federation = "federation",
    }
}

/// A repository for the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedRepository {
    /// Its baseURL, which is the identifier of its record.
    pub base_url: String,
    /// Its name for people.
    pub name: String,
    /// Where its records are.
    pub kind: RepositoryKind,
    /// The baseURLs of its members, if it is a federation. A change of them is a change of its record.
    pub members: Vec<String>,
}

named_enum! {
    /// A format of the index, by its prefix.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Format {
        /// The format of the paper, with the time at which a repository became harvestable.
        Index = "INDEX",
        DublinCore = "oai_dc",
    }
}

/// The sets with their names.
pub(super) const SETS: [(&str, &str); 9] = [
    ("dynamic", "Repositories whose records may change"),
    ("static", "Repositories whose records never change"),
    ("kind", "Repositories by the place of their records"),
    ("kind:live", "Repositories whose records are at their sources"),
    ("kind:local", "Repositories whose records are written here"),
    ("kind:mirrored", "Mirrored repositories"),
    ("kind:tape", "Repositories whose records are in a file"),
    ("kind:view", "Views of mirrored repositories"),
    ("kind:federation", "Federations of repositories"),
];

/// The record of a repository that became harvestable at `created_secs`. `schema` is the URL of the schema of INDEX.
pub(super) fn record(
    format: Format,
    repository: &IndexedRepository,
    created_secs: UnixSecs,
    schema: &str,
) -> NewRecord {
    let created = from_secs(created_secs, Granularity::Second);
    let change = if repository.kind == RepositoryKind::Tape { "static" } else { "dynamic" };
    let set_specs = vec![change.to_owned(), format!("kind:{}", repository.kind.name())];
    let mut xml = String::from("<record><header><identifier>");
    escape(&repository.base_url, &mut xml);
    xml.push_str(&format!("</identifier><datestamp>{created}</datestamp>"));
    for set_spec in &set_specs {
        xml.push_str(&format!("<setSpec>{set_spec}</setSpec>"));
    }
    xml.push_str("</header><metadata>");
    match format {
        Format::Index => add_index(repository, &created, schema, &mut xml),
        Format::DublinCore => add_dublin_core(repository, &created, &mut xml),
    }
    xml.push_str("</metadata></record>");
    NewRecord {
        identifier: repository.base_url.clone(),
        datestamp_secs: created_secs,
        content_hash: content_hash(RecordStatus::Live, &set_specs, &[xml.as_bytes()]),
        set_specs,
        status: RecordStatus::Live,
        bytes: xml.into(),
        repairs: RecordRepairs::default(),
    }
}

fn add_index(repository: &IndexedRepository, created: &str, schema: &str, xml: &mut String) {
    xml.push_str(&format!(
        "<repository xmlns=\"{NAMESPACE}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"{NAMESPACE} "
    ));
    escape(schema, xml);
    xml.push_str("\"><baseURL>");
    escape(&repository.base_url, xml);
    xml.push_str(&format!("</baseURL><creationTime>{created}</creationTime><kind>"));
    xml.push_str(repository.kind.name());
    xml.push_str("</kind><name>");
    escape(&repository.name, xml);
    xml.push_str("</name>");
    for member in &repository.members {
        xml.push_str("<member>");
        escape(member, xml);
        xml.push_str("</member>");
    }
    xml.push_str("</repository>");
}

fn add_dublin_core(repository: &IndexedRepository, created: &str, xml: &mut String) {
    xml.push_str(&format!(
        "<oai_dc:dc xmlns:oai_dc=\"{DUBLIN_CORE_NAMESPACE}\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"{DUBLIN_CORE_NAMESPACE} {DUBLIN_CORE_SCHEMA}\"><dc:title>"
    ));
    escape(&repository.name, xml);
    xml.push_str("</dc:title><dc:description>");
    xml.push_str(describe(repository.kind));
    xml.push_str(&format!(
        "</dc:description><dc:date>{created}</dc:date><dc:type>Service</dc:type><dc:identifier>"
    ));
    escape(&repository.base_url, xml);
    xml.push_str("</dc:identifier></oai_dc:dc>");
}

const fn describe(kind: RepositoryKind) -> &'static str {
    match kind {
        RepositoryKind::Tape => "OAI-PMH repository, in a file whose records never change",
        RepositoryKind::Live => "OAI-PMH repository, answered by its source",
        RepositoryKind::Mirrored => "OAI-PMH repository, mirrored",
        RepositoryKind::Local => "OAI-PMH repository, whose records are written here",
        RepositoryKind::View => "OAI-PMH repository, a view of mirrored repositories",
        RepositoryKind::Federation => "OAI-PMH repository, a federation of repositories",
    }
}
