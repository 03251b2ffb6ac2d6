//! Finds repository ids for the sources of a list. Pure.

use super::list::ListedSource;
use crate::config::check_id;
use std::collections::BTreeSet;
use url::Url;

/// Longest id that is made from a name, in bytes.
const NAME_BYTES_MAX: usize = 40;
/// The beginnings of host names and of paths that say only that this is a repository.
const GENERAL_LABELS: [&str; 7] = ["www", "oai", "oai2", "oaipmh", "api", "export", "services"];

/// The ids that are in use.
#[derive(Debug, Default)]
pub struct RepositoryIds(BTreeSet<String>);

impl RepositoryIds {
    /// Ids that are in use already.
    pub fn new(used: impl IntoIterator<Item = String>) -> Self {
        Self(used.into_iter().collect())
    }

    /// A free id for a source, which is in use from now on: its short id in the list, or else its host name without
    /// general parts. A number is appended if several sources have the same.
    pub fn choose(&mut self, source: &ListedSource, base_url: &Url) -> String {
        // A name of several words would make a long path.
        let listed =
            source.name.as_deref().filter(|name| name.len() <= NAME_BYTES_MAX && check_id(name).is_ok());
        let wanted = listed.map_or_else(|| id_of_host(base_url), str::to_owned);
        let free = |id: &String| check_id(id).is_ok() && !self.0.contains(id);
        let numbered = (2..).map(|number: u32| format!("{wanted}-{number}"));
        let mut candidates = std::iter::once(wanted.clone()).chain(numbered);
        let id = candidates.find(free).unwrap_or(wanted);
        self.0.insert(id.clone());
        id
    }
}

fn id_of_host(base_url: &Url) -> String {
    let host = base_url.host_str().unwrap_or_default().trim_matches(['[', ']']).replace(':', "-");
    let mut labels: Vec<&str> = host.split('.').collect();
    // The last two labels name the owner.
    while labels.len() > 2 && labels.first().is_some_and(|label| GENERAL_LABELS.contains(label)) {
        labels.remove(0);
    }
    let id = labels.join(".").to_ascii_lowercase();
    if check_id(&id).is_ok() { id } else { "repository".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_legal_and_unique() {
        let mut ids = RepositoryIds::new(["zenodo".to_owned()]);
        let mut choose = |name: &str, url: &str| {
            let source = ListedSource { base_url: url.to_owned(), name: Some(name.to_owned()) };
            ids.choose(&source, &Url::parse(url).expect("a URL"))
        };
        assert_eq!(choose("arxiv", "https://oaipmh.arxiv.org/oai"), "arxiv");
        assert_eq!(choose("The Archive", "https://www.oai.archive.example.org/oai"), "archive.example.org");
        assert_eq!(choose("zenodo", "https://zenodo.org/oai2d"), "zenodo-2");
        assert_eq!(choose("robots.txt", "http://[::1]:80/oai"), "repository");
        assert_eq!(choose("", "http://archive.example.org/2"), "archive.example.org-2");
        assert_eq!(choose("", "https://oai.example/oai"), "oai.example");
    }
}
