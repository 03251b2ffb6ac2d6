//! What a tape says about itself, in `tapeAdmin`.

use crate::names::{ADMIN_NAMESPACE, NAMESPACE, element};
use crate::namespaces::self_contained;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::xml::{NamespaceReader, StartTag, XmlEvent, XmlReader};
use serde::{Deserialize, Serialize};

/// What a tape says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapeDescription {
    /// Its identifier: another tape has another one.
    pub id: String,
    /// When it was written, as `YYYY-MM-DDThh:mm:ssZ`.
    pub created_at: String,
    /// What wrote it.
    pub software: String,
    /// The base URL of the repository whose records it holds.
    pub base_url: Option<String>,
    /// The name of this repository.
    pub repository_name: Option<String>,
    /// The mail addresses of its administrators.
    pub admin_emails: Vec<String>,
    /// Its formats.
    pub formats: Vec<TapeFormat>,
    /// Its sets.
    pub sets: Vec<TapeSet>,
    /// Records that are known to be missing.
    pub gaps: Vec<TapeGap>,
}

/// A format of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapeFormat {
    /// The metadataPrefix.
    pub prefix: String,
    /// The URL of the schema.
    pub schema: String,
    /// The namespace.
    pub namespace: String,
}

/// A set of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapeSet {
    /// The setSpec.
    pub set_spec: String,
    /// The name.
    pub name: String,
}

/// Records that are known to be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapeGap {
    /// Where they are missing: the metadataPrefix, or the file that holds them.
    pub source: String,
    /// Their number.
    pub records: u64,
}

impl TapeDescription {
    /// Writes the `tapeAdmin` element.
    pub(crate) fn write(&self, xml: &mut String) {
        xml.push_str(&format!("<tapeAdmin><description xmlns=\"{ADMIN_NAMESPACE}\">"));
        element("id", &[], &self.id, xml);
        element("created", &[], &self.created_at, xml);
        element("software", &[], &self.software, xml);
        if let Some(base_url) = &self.base_url {
            element("baseURL", &[], base_url, xml);
        }
        if let Some(name) = &self.repository_name {
            element("repositoryName", &[], name, xml);
        }
        for email in &self.admin_emails {
            element("adminEmail", &[], email, xml);
        }
        for TapeFormat { prefix, schema, namespace } in &self.formats {
            let attributes = [("metadataPrefix", prefix), ("schema", schema), ("namespace", namespace)];
            element("format", &attributes.map(|(name, value)| (name, value.as_str())), "", xml);
        }
        for TapeSet { set_spec, name } in &self.sets {
            element("set", &[("setSpec", set_spec)], name, xml);
        }
        for TapeGap { source, records } in &self.gaps {
            element("missing", &[("source", source), ("records", &records.to_string())], "", xml);
        }
        xml.push_str("</description></tapeAdmin>\n");
    }

    /// Reads a `tapeAdmin` element. `None` if it is not one of ours, or if it is malformed. `root` is the start tag of the
    /// tape.
    pub(crate) fn read(root: &str, tape_admin: &str) -> Option<Self> {
        let scope = NamespaceScope::parse(root);
        let whole = self_contained(tape_admin, &scope).ok()?;
        let mut reader = NamespaceReader::new(XmlReader::new(&whole));
        let mut description = Self::default();
        let (mut is_ours, mut text) = (false, String::new());
        let mut attributes = [String::new(), String::new(), String::new()];
        while let Some(event) = reader.read().ok()? {
            match event {
                XmlEvent::Start(tag) => match reader.depth() {
                    0 if reader.namespace(tag).ok()? != NAMESPACE => return None,
                    1 => {
                        is_ours = tag.local_name() == "description"
                            && reader.namespace(tag).ok()? == ADMIN_NAMESPACE
                    }
                    2 if is_ours => {
                        text.clear();
                        attributes = description_attributes(tag)?;
                    }
                    _ => {}
                },
                XmlEvent::Text(part) if is_ours && reader.depth() == 3 => {
                    text.push_str(&part.resolve().ok()?)
                }
                XmlEvent::End(tag) if is_ours && reader.depth() == 2 => {
                    description.add(tag.local_name(), &text, std::mem::take(&mut attributes));
                }
                XmlEvent::End(_) if is_ours && reader.depth() == 1 => return Some(description),
                _ => {}
            }
        }
        None
    }

    fn add(&mut self, name: &str, text: &str, attributes: [String; 3]) {
        let text = text.to_owned();
        let [first, second, third] = attributes;
        match name {
            "id" => self.id = text,
            "created" => self.created_at = text,
            "software" => self.software = text,
            "baseURL" => self.base_url = Some(text),
            "repositoryName" => self.repository_name = Some(text),
            "adminEmail" => self.admin_emails.push(text),
            "format" => self.formats.push(TapeFormat { prefix: first, schema: second, namespace: third }),
            "set" => self.sets.push(TapeSet { set_spec: first, name: text }),
            "missing" => {
                self.gaps.push(TapeGap { source: first, records: second.parse().unwrap_or_default() })
            }
            // A later version may say more.
            _ => {}
        }
    }
}

/// The values of the attributes of `format`, `set` and `missing`, in the order of the struct fields.
fn description_attributes(tag: StartTag<'_>) -> Option<[String; 3]> {
    let names = match tag.local_name() {
        "format" => ["metadataPrefix", "schema", "namespace"],
        "set" => ["setSpec", "", ""],
        "missing" => ["source", "records", ""],
        _ => return Some(Default::default()),
    };
    let mut values: [String; 3] = Default::default();
    for attribute in tag.attributes() {
        let (name, value) = attribute.ok()?;
        if let Some(place) = names.iter().position(|known| *known == name)
            && let Some(kept) = values.get_mut(place)
        {
            *kept = value.into_owned();
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_as_written() {
        let description = TapeDescription {
            id: "urn:uuid:1".to_owned(),
            created_at: "2026-01-02T03:04:05Z".to_owned(),
            software: "oaimend 0.1.0".to_owned(),
            base_url: Some("http://a.example/oai?x=1&y=2".to_owned()),
            repository_name: Some("A <\"repository\"> ]]>".to_owned()),
            admin_emails: vec!["a@a.example".to_owned(), "b@a.example".to_owned()],
            formats: vec![TapeFormat { prefix: "p".into(), schema: "s&".into(), namespace: "n\"".into() }],
            sets: vec![TapeSet { set_spec: "a:b".into(), name: "A > B".into() }],
            gaps: vec![TapeGap { source: "oai_dc".into(), records: 3 }],
        };
        let mut xml = String::new();
        description.write(&mut xml);
        let root = format!("<tape xmlns=\"{NAMESPACE}\">");
        assert_eq!(TapeDescription::read(&root, &xml), Some(description.clone()));
        let prefixed = xml.replace("tapeAdmin", "t:tapeAdmin");
        let root = format!("<t:tape xmlns:t=\"{NAMESPACE}\">");
        assert_eq!(TapeDescription::read(&root, &prefixed), Some(description));
        for other in ["<tapeAdmin><dc:date xmlns:dc='x'>2005</dc:date></tapeAdmin>", "<tapeAdmin/>", "<a", ""]
        {
            assert_eq!(TapeDescription::read(&root, other), None, "{other}");
        }
    }
}
