//! The repository of a request.

use crate::config::{FEDERATION_NAME, FederationFile, Mapping, ServeFrom, ViewFile};
use crate::serve::api::repositories::KIND_OF_ALL;
use oaimend_mirror::repository_index::{INDEX_NAME, RepositoryKind};
use oaimend_mirror::view::AggregateRepository;
use oaimend_oai::{Request, RequestError, named_enum};
use std::sync::Arc;
use url::form_urlencoded;

/// The repository of a request.
pub(crate) struct Target {
    pub(crate) repository: TargetRepository,
    /// The base URL for its responses: the requested one.
    pub(crate) base_url: String,
    /// Its path without slashes around it, for the links of pages that browsers receive. `None`: XML only.
    pub(crate) path_for_pages: Option<String>,
    /// Whether the arguments contain the query of the base URL.
    pub(super) is_absolute: bool,
}

/// The repository that answers a request.
#[derive(Clone, Debug)]
pub(crate) enum TargetRepository {
    /// A mapped repository, answered by this part of the program.
    Mapped(Arc<Mapping>, ServeFrom),
    /// The view of all mirrored repositories.
    Aggregate,
    /// A view of chosen records.
    View(Arc<ViewFile>),
    /// A service over the view of all mirrored repositories.
    Component(OdlComponent),
    /// The index of the served repositories.
    Index,
    /// A federation of live and mirrored repositories; without a file that of all.
    Federation(Option<Arc<FederationFile>>),
}

named_enum! {
    /// A component of an Open Digital Library, by its path.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum OdlComponent {
        /// ODL-Search.
        Search = "_search",
        /// ODL-Browse.
        Browse = "_browse",
        /// ODL-Recent.
        Recent = "_recent",
    }
}

impl TargetRepository {
    /// Reads a request to it.
    ///
    /// # Errors
    ///
    /// The error response to the request.
    pub(crate) fn read_request(&self, query: &[u8]) -> Result<Request, RequestError> {
        match self {
            Self::Mapped(..) | Self::Aggregate | Self::View(_) | Self::Index | Self::Federation(_) => {
                Request::parse(query)
            }
            Self::Component(_) => Request::parse_odl(query),
        }
    }

    /// The name of the repository in the log and in metrics.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Mapped(mapping, _) => mapping.id(),
            Self::Aggregate => AggregateRepository::NAME,
            Self::Component(component) => component.name(),
            Self::View(view) => &view.name,
            Self::Index => INDEX_NAME,
            Self::Federation(file) => file.as_ref().map_or(FEDERATION_NAME, |file| &file.path),
        }
    }

    /// The mapping; `None` for repositories that are made of several.
    pub(crate) fn mapping(&self) -> Option<&Arc<Mapping>> {
        match self {
            Self::Mapped(mapping, _) => Some(mapping),
            Self::Aggregate | Self::View(_) | Self::Component(_) | Self::Index | Self::Federation(_) => None,
        }
    }

    /// The kind of the repository in the API; `None` for one that the API does not have.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Mapped(_, ServeFrom::Mirror) | Self::Index => Some(RepositoryKind::Mirrored.name()),
            Self::Mapped(mapping, _) => Some(mapping.kind().name()),
            Self::Aggregate => Some(KIND_OF_ALL),
            Self::View(_) => Some(RepositoryKind::View.name()),
            Self::Federation(_) => Some(RepositoryKind::Federation.name()),
            Self::Component(_) => None,
        }
    }

    /// The mapping of a local repository.
    pub(crate) fn local(&self) -> Option<&Arc<Mapping>> {
        self.mapping().filter(|mapping| mapping.local.is_some())
    }

    /// The mapping whose source alone is asked.
    pub(crate) fn live_mapping(&self) -> Option<&Arc<Mapping>> {
        match self {
            Self::Mapped(mapping, ServeFrom::Live | ServeFrom::LiveThenMirror) => Some(mapping),
            Self::Mapped(_, ServeFrom::Mirror)
            | Self::Aggregate
            | Self::View(_)
            | Self::Component(_)
            | Self::Index
            | Self::Federation(_) => None,
        }
    }
}

impl Target {
    /// The arguments of a query, without the query of the base URL.
    pub(crate) fn arguments(&self, query: Vec<u8>) -> Vec<u8> {
        let (Some(mapping), true) = (self.repository.mapping(), self.is_absolute) else { return query };
        let mut fixed: Vec<_> = mapping.source.base_url.query_pairs().collect();
        let mut pieces: Vec<&[u8]> = query.split(|&byte| byte == b'&').collect();
        pieces.retain(|piece| {
            let pair = form_urlencoded::parse(piece).next();
            let found = fixed.iter().position(|fixed| Some(fixed) == pair.as_ref());
            found.map(|found| fixed.swap_remove(found)).is_none()
        });
        pieces.join(&b'&')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_upstream::settings::Limits;

    #[test]
    fn the_query_of_a_base_url_is_removed_from_the_arguments() {
        let mapping = Mapping::new("x", "http://x/oai?repo=a%20b&page=oai", &Limits::default());
        let mapping = Arc::new(mapping.expect("a legal mapping"));
        let target = |is_absolute| Target {
            repository: TargetRepository::Mapped(Arc::clone(&mapping), ServeFrom::Live),
            base_url: String::new(),
            path_for_pages: None,
            is_absolute,
        };
        let arguments =
            |query: &str| String::from_utf8(target(true).arguments(query.into())).expect("it was text");
        assert_eq!(arguments("repo=a+b&page=oai&verb=Identify"), "verb=Identify");
        assert_eq!(arguments("verb=Identify&page=oai&repo=a%20b&page=oai"), "verb=Identify&page=oai");
        assert_eq!(arguments("verb=Identify&repo=b"), "verb=Identify&repo=b");
        assert_eq!(arguments(""), "");
        assert_eq!(target(false).arguments(b"page=oai".to_vec()), b"page=oai");
    }
}
