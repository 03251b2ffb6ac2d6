//! The tags around the items of a list.

use oaimend_oai::Verb;
use oaimend_repair::ListEnvelope;
use oaimend_repository::rebase_namespaces::{NamespaceScope, OAI, XSI};

/// The start tags that are open around the items of a list, without their angle brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvelopeTags {
    root: String,
    root_name: String,
    list: String,
    list_name: String,
    /// The namespaces that they declare.
    scope: NamespaceScope,
}

impl EnvelopeTags {
    /// The tags of a list of our own.
    pub(crate) fn for_own_list(verb: Verb) -> Self {
        let (root_name, list) = ("OAI-PMH".to_owned(), verb.name().to_owned());
        let root = format!(
            "{root_name} xmlns=\"{OAI}\" xmlns:xsi=\"{XSI}\" \
             xsi:schemaLocation=\"{OAI} http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\""
        );
        Self { root, root_name, list_name: list.clone(), list, scope: NamespaceScope::of_own_list().clone() }
    }

    /// The tags of a list that the engine has written.
    pub(crate) fn new(root_tag: &[u8], envelope: &ListEnvelope<'_>) -> Self {
        let lossy = String::from_utf8_lossy;
        let tag = |tag: &[u8]| {
            let tag = tag.strip_prefix(b"<").unwrap_or(tag);
            lossy(tag.strip_suffix(b">").unwrap_or(tag)).into_owned()
        };
        let (root, list) = (tag(root_tag), tag(envelope.verb_tag));
        let name = |tag: &str| tag.split_ascii_whitespace().next().unwrap_or_default().to_owned();
        let namespaces: Vec<_> =
            envelope.namespaces.iter().map(|(prefix, uri)| (lossy(prefix), lossy(uri))).collect();
        let scope = NamespaceScope::new(namespaces.iter().map(|(prefix, uri)| (&**prefix, &**uri)));
        Self { root_name: name(&root), list_name: name(&list), root, list, scope }
    }

    /// The namespaces around the items.
    pub(crate) fn scope(&self) -> &NamespaceScope {
        &self.scope
    }

    /// Makes a list of headers of a list of records. Returns the start tag of the list before and after.
    pub(crate) fn rename_to_headers(&mut self) -> (String, String) {
        let before = format!("<{}>", self.list);
        for name in [&mut self.list, &mut self.list_name] {
            *name = name.replacen("ListRecords", "ListIdentifiers", 1);
        }
        (before, format!("<{}>", self.list))
    }

    /// The beginning of such a list: everything before its first item.
    pub(crate) fn open(&self, response_date: &str, base_url: &str) -> String {
        let (Self { root, list, .. }, prefix) = (self, self.prefix());
        let base_url = quick_xml::escape::escape(base_url);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root}><{prefix}responseDate>{response_date}</{prefix}responseDate>\
             <{prefix}request>{base_url}</{prefix}request><{list}>"
        )
    }

    /// The end of a list: the end tags, and before them a token, as written in XML, if the list continues,
    /// or an empty one at the end of a list that had tokens.
    pub(crate) fn close_with(&self, token: Option<&str>) -> Vec<u8> {
        self.close_with_attributes("", token)
    }

    /// The same; `attributes` are those of the token, with a blank before each.
    pub(crate) fn close_with_attributes(&self, attributes: &str, token: Option<&str>) -> Vec<u8> {
        let Self { root_name, list_name, .. } = self;
        let name = format!("{}resumptionToken", self.prefix());
        let token = token.map(|token| format!("<{name}{attributes}>{token}</{name}>")).unwrap_or_default();
        format!("{token}</{list_name}></{root_name}>").into_bytes()
    }

    fn prefix(&self) -> &str {
        self.root_name.strip_suffix("OAI-PMH").unwrap_or_default()
    }
}
