//! The tags around the items of a list.

use crate::oai::Verb;
use quick_xml::events::Event;

/// The start tags that are open around the items of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvelopeTags {
    root: String,
    root_name: String,
    list: String,
    list_name: String,
}

impl EnvelopeTags {
    /// The tags of a list of our own.
    pub(crate) fn for_own_list(verb: Verb) -> Self {
        let (root_name, list) = ("OAI-PMH".to_owned(), verb.as_str().to_owned());
        let root = format!(
            "{root_name} xmlns=\"{OAI}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"{OAI} http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\""
        );
        Self { root, root_name, list_name: list.clone(), list }
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

/// The start tags of the root and of the last element that is open at the end of a head.
pub(crate) fn parse_envelope_tags(head: &[u8]) -> Option<EnvelopeTags> {
    let mut reader = quick_xml::Reader::from_str(std::str::from_utf8(head).ok()?);
    let mut open: Vec<(String, String)> = Vec::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => open.push((tag.to_string(), tag.name().as_ref().to_owned())),
            Ok(Event::End(_)) => drop(open.pop()),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let [(root, root_name), (list, list_name)] = <[_; 2]>::try_from(open).ok()?;
    Some(EnvelopeTags { root, root_name, list, list_name })
}

const OAI: &str = "http://www.openarchives.org/OAI/2.0/";
