//! The Identify responses of the views.
//!
//! The view of one repository has the name, the addresses and the descriptions of the source. The compression is
//! left out, because it describes the server of the source.

use super::component::odl_description;
use super::options::MirroredSource;
use super::presentation::{View, ViewKind};
use super::response::{Answer, Page};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::escape;
use oaimend_repository::Failure;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::xml::{XmlEvent, XmlReader};
use oaimend_store::{Document, MirrorError};
use url::Url;

/// The parts of a stored Identify response that a view serves again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIdentify {
    /// The text of the name, as written in the XML.
    name: Option<String>,
    /// The texts of the addresses, as written in the XML.
    admin_emails: Vec<String>,
    /// The description elements, with all declarations that they need.
    descriptions: Vec<String>,
    /// The granularity of the source.
    pub granularity: Granularity,
    /// The earliestDatestamp of the source, if it is in the response.
    earliest_datestamp: Option<String>,
    /// The deletedRecord of the source, if it is in the response.
    pub deleted_record: Option<String>,
}

/// The values of an Identify response in which a view differs from the source.
struct ServedValues<'v> {
    base_url: &'v str,
    earliest_datestamp: &'v str,
    deleted_record: &'v str,
    granularity: Granularity,
}

/// The stored Identify response of a repository; `None` before the first harvest.
pub(crate) async fn stored_identify(
    view: &View,
    member: &MirroredSource,
) -> Result<Option<StoredIdentify>, MirrorError> {
    let document = view.stores.store.document(member.repository(), Document::Identify).await?;
    let text = document.map(|document| String::from_utf8_lossy(&document).into_owned());
    Ok(text.and_then(|text| StoredIdentify::read(&text)))
}

/// The granularity of the source.
pub(crate) async fn source_granularity(
    view: &View,
    member: &MirroredSource,
) -> Result<Granularity, MirrorError> {
    let identify = stored_identify(view, member).await?;
    Ok(identify.map_or(Granularity::Second, |identify| identify.granularity))
}

impl StoredIdentify {
    /// Reads a response. `None` if it is not one to Identify.
    pub fn read(document: &str) -> Option<Self> {
        let mut reader = XmlReader::new(document);
        let mut identify = Self {
            name: None,
            admin_emails: Vec::new(),
            descriptions: Vec::new(),
            granularity: Granularity::Second,
            earliest_datestamp: None,
            deleted_record: None,
        };
        // The declarations around the children, and where the child that is being read starts, with its content.
        let mut declared: Vec<(String, String)> = Vec::new();
        let (mut is_identify, mut child) = (false, None);
        loop {
            let event = reader.read().ok()??;
            let place = reader.span();
            match (event, reader.depth()) {
                (XmlEvent::Start(tag), 0) => declared = tag.declarations(),
                (XmlEvent::Start(tag), 1) => {
                    is_identify |= tag.local_name() == "Identify" && !tag.is_empty();
                    if is_identify {
                        declared.extend(tag.declarations());
                    }
                }
                (XmlEvent::Start(tag), 2) if is_identify && !tag.is_empty() => child = Some(place),
                (XmlEvent::End(end), 2) => {
                    if let Some(start) = child.take() {
                        let text = document.get(start.end..place.start)?.trim();
                        let element = document.get(start.start..place.end)?;
                        identify.add(end.local_name(), text, element, &declared);
                    }
                }
                (XmlEvent::End(_), 1) if is_identify => return Some(identify),
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &str, text: &str, element: &str, declared: &[(String, String)]) {
        match name {
            "repositoryName" => self.name = Some(text.to_owned()),
            "adminEmail" => self.admin_emails.push(text.to_owned()),
            "earliestDatestamp" => self.earliest_datestamp = Some(text.to_owned()),
            "deletedRecord" => self.deleted_record = Some(text.to_owned()),
            "granularity" => self.granularity = Granularity::from_name(text).unwrap_or(Granularity::Second),
            "description" => {
                let scope = declared.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str()));
                let place = NamespaceScope::of_own_list();
                self.descriptions.push(NamespaceScope::new(scope).rebase(element, place));
            }
            _ => {}
        }
    }

    /// The response of the source, at another base URL.
    pub(crate) fn to_page_of_source(&self, base_url: &str) -> Page {
        self.to_page(&ServedValues {
            base_url,
            earliest_datestamp: self.earliest_datestamp.as_deref().unwrap_or_default(),
            deleted_record: self.deleted_record.as_deref().unwrap_or("no"),
            granularity: self.granularity,
        })
    }

    fn to_page(&self, values: &ServedValues<'_>) -> Page {
        let mut xml = String::new();
        let mut field = |name: &str, value: &str| xml.push_str(&format!("    <{name}>{value}</{name}>\n"));
        if let Some(name) = &self.name {
            field("repositoryName", name);
        }
        field("baseURL", &escaped(values.base_url));
        field("protocolVersion", "2.0");
        self.admin_emails.iter().for_each(|email| field("adminEmail", email));
        if !values.earliest_datestamp.is_empty() {
            field("earliestDatestamp", values.earliest_datestamp);
        }
        field("deletedRecord", values.deleted_record);
        field("granularity", values.granularity.name());
        for description in &self.descriptions {
            xml.push_str(&format!("    {description}\n"));
        }
        Page { xml: xml.into(), items: 1, ..Page::default() }
    }

    /// The name of the repository.
    pub fn name(&self) -> Option<String> {
        unescaped(self.name.as_deref()?)
    }

    /// The addresses of its operators.
    pub fn admin_emails(&self) -> Vec<String> {
        self.admin_emails.iter().filter_map(|email| unescaped(email)).collect()
    }

    /// The earliestDatestamp of the source.
    pub fn earliest_datestamp(&self) -> Option<String> {
        unescaped(self.earliest_datestamp.as_deref()?)
    }
}

/// A text of the XML with its references resolved; `None` if it is empty or illegal.
fn unescaped(text: &str) -> Option<String> {
    let text = quick_xml::escape::unescape(text).ok()?;
    (!text.is_empty()).then(|| text.into_owned())
}

/// Answers `Identify`.
pub(crate) async fn identify(view: &View, base_url: &str) -> Result<Answer, Failure> {
    let now_secs = view.now_secs();
    let mut identify = match (&view.kind, view.members.first()) {
        (ViewKind::Aggregate { repository_name, admin_emails, .. }, _) => StoredIdentify {
            name: Some(escaped(repository_name)),
            admin_emails: match admin_emails.as_slice() {
                [] => member_emails(view, base_url).await?,
                emails => emails.iter().map(|email| escaped(email)).collect(),
            },
            descriptions: Vec::new(),
            granularity: Granularity::Second,
            earliest_datestamp: None,
            deleted_record: None,
        },
        (ViewKind::Subject(subject), _) => StoredIdentify {
            name: Some(escaped(&subject.repository_name)),
            admin_emails: match subject.admin_emails.as_slice() {
                [] => member_emails(view, base_url).await?,
                emails => emails.iter().map(|email| escaped(email)).collect(),
            },
            descriptions: subject.description.as_deref().map(description_of).into_iter().collect(),
            granularity: Granularity::Second,
            earliest_datestamp: None,
            deleted_record: None,
        },
        (ViewKind::Single, member) => {
            let stored = match member {
                Some(member) => stored_identify(view, member).await?,
                None => None,
            };
            stored.ok_or_else(|| view.incomplete("Identify", member))?
        }
    };
    identify.descriptions.extend(view.protocol().map(odl_description));
    let earliest_secs = earliest_stamp(view).await?.unwrap_or(now_secs).min(now_secs);
    let values = ServedValues {
        base_url,
        earliest_datestamp: &from_secs(earliest_secs, Granularity::Second),
        deleted_record: "persistent",
        granularity: Granularity::Second,
    };
    Ok(Answer::page(now_secs, identify.to_page(&values)))
}

/// A description in Dublin Core, as the guidelines of OAI-PMH recommend for sets.
pub fn description_of(text: &str) -> String {
    let schema = "http://www.openarchives.org/OAI/2.0/oai_dc/";
    format!(
        "<description><oai_dc:dc xmlns:oai_dc=\"{schema}\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"{schema} http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"><dc:description>{}\
         </dc:description></oai_dc:dc></description>",
        escaped(text)
    )
}

/// Maximum number of addresses that the view of all repositories takes from them.
const MEMBER_EMAILS_MAX: usize = 20;

/// The addresses of the repositories, as written in the XML, or else [`fallback_email`].
async fn member_emails(view: &View, base_url: &str) -> Result<Vec<String>, MirrorError> {
    let mut emails: Vec<String> = Vec::new();
    for member in view.mirrored() {
        let stored = stored_identify(view, member).await?;
        for email in stored.into_iter().flat_map(|stored| stored.admin_emails) {
            if emails.len() < MEMBER_EMAILS_MAX && !emails.contains(&email) {
                emails.push(email);
            }
        }
    }
    if emails.is_empty() {
        emails.push(fallback_email(base_url));
    }
    Ok(emails)
}

/// The address that every mail domain has (RFC 5321, 4.5.1), in the domain of a base URL.
pub fn fallback_email(base_url: &str) -> String {
    let url = Url::parse(base_url).ok();
    let host = url.as_ref().and_then(Url::domain).filter(|domain| domain.contains('.'));
    format!("postmaster@{}", host.unwrap_or("localhost.localdomain"))
}

fn escaped(text: &str) -> String {
    let mut xml = String::new();
    escape(text, &mut xml);
    xml
}

/// The lowest stamp of all records.
async fn earliest_stamp(view: &View) -> Result<Option<UnixSecs>, MirrorError> {
    let mut earliest: Option<UnixSecs> = None;
    for member in &view.members {
        for collection in view.stores.store.collections(member.repository()).await? {
            let stamp = collection.earliest_stamp_secs;
            earliest = earliest.into_iter().chain(stamp).min();
        }
        // Members that have left may have no record any more.
        earliest = earliest.into_iter().chain(member.since_secs).min();
    }
    Ok(earliest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefixed_response_is_read_with_its_descriptions() {
        let document = "<?xml version=\"1.0\"?><o:OAI-PMH xmlns:o=\"http://www.openarchives.org/OAI/2.0/\" \
            xmlns:d=\"urn:d\"><o:responseDate>2020-01-01T00:00:00Z</o:responseDate><o:request>u</o:request>\
            <o:Identify><o:repositoryName>A &amp; B</o:repositoryName><o:baseURL>u</o:baseURL>\
            <o:adminEmail>a@x.org</o:adminEmail><o:adminEmail> b@x.org </o:adminEmail>\
            <o:granularity>YYYY-MM-DD</o:granularity><o:compression>gzip</o:compression>\
            <o:description><d:x>1</d:x></o:description></o:Identify></o:OAI-PMH>";
        let identify = StoredIdentify::read(document).expect("an Identify response");
        assert_eq!(identify.name(), Some("A & B".to_owned()));
        assert_eq!(identify.admin_emails, ["a@x.org", "b@x.org"]);
        assert_eq!(identify.granularity, Granularity::Day);
        let [description] = identify.descriptions.as_slice() else { panic!("{identify:?}") };
        assert_eq!(
            description,
            "<o:description xmlns:d=\"urn:d\" xmlns:o=\"http://www.openarchives.org/OAI/2.0/\" xmlns=\"\">\
             <d:x>1</d:x></o:description>"
        );
    }

    #[test]
    fn other_documents_are_no_identify_responses() {
        for document in ["", "<OAI-PMH/>", "<OAI-PMH><ListSets></ListSets></OAI-PMH>", "<OAI-PMH><Identify>"]
        {
            assert_eq!(StoredIdentify::read(document), None, "{document}");
        }
    }
}
