//! The URLs of requests on this server.

use oaimend_oai::Request;

/// A request to a repository on this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestAddress {
    /// The path of the repository without a slash at its start: `ID`, `_mirror/ID` or `_all`.
    pub repository: String,
    /// The arguments of the request; empty if it has none.
    pub query: String,
}

impl RequestAddress {
    /// The request. `base` is the public URL or its path, without a slash at its end.
    pub fn url(&self, base: &str) -> String {
        with_query(format!("{base}/{}", self.repository), &self.query)
    }

    /// The same request, always answered in XML.
    pub fn xml(&self, base: &str) -> String {
        with_query(format!("{base}/{}/xml", self.repository), &self.query)
    }

    /// Another request to the repository.
    pub fn other(&self, base: &str, request: &Request) -> String {
        with_query(format!("{base}/{}", self.repository), request.query())
    }
}

fn with_query(path: String, query: &str) -> String {
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_its_url() {
        let address = RequestAddress { repository: "_mirror/x".into(), query: "verb=ListSets".into() };
        assert_eq!(address.url("/b"), "/b/_mirror/x?verb=ListSets");
        assert_eq!(address.xml("https://e.org"), "https://e.org/_mirror/x/xml?verb=ListSets");
        let token = Request::list_sets().with_token("a&b=c/é\"<".into());
        assert_eq!(
            address.other("", &token),
            "/_mirror/x?verb=ListSets&resumptionToken=a%26b%3Dc%2F%C3%A9%22%3C"
        );
        let bare = RequestAddress { query: String::new(), ..address };
        assert_eq!((bare.url(""), bare.xml("")), ("/_mirror/x".into(), "/_mirror/x/xml".into()));
    }
}
