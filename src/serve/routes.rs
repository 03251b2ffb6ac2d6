//! The paths of both listeners: where each request leads, and who may send it.
//!
//! The public listener and the admin listener have a table each, because `/` is another page on each of them.
//! docs/reference/urls.md and docs/reference/admin-api.md list the paths for users; a test compares them.

use matchit::{Params, Router};
use oaimend_api::Operation;
use oaimend_crosswalks::{JSON_LD_SCHEMA_PATH, LINKS_SCHEMA_PATH};
use oaimend_html::layout::DESCRIPTION_PATH;
use oaimend_pages::record::{PLAN_CHART_PATH, STATUS_PATH};
use oaimend_pages::resolver::RESOLVER_PATH;
use oaimend_pages::search::SUGGESTIONS_PATH;
use oaimend_resourcesync::SOURCE_DESCRIPTION_PATH;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A row of a table.
pub(crate) struct Route<E: 'static> {
    /// The methods. The admin listener has no route for others; the public one answers 405 where a page would answer.
    pub(crate) methods: &'static [&'static str],
    /// The paths. `{id}` is one segment, and `{*rest}` all that remain.
    pub(crate) paths: &'static [&'static str],
    /// What answers.
    pub(crate) endpoint: E,
    /// The kind of the page in the log and in metrics, where it has no verb.
    pub(crate) label: Option<&'static str>,
    pub(crate) access: Access,
}

/// Who may send a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone, at any time: load balancers and orchestrators.
    Everyone,
    /// Clients within their quotas.
    Clients,
    /// Clients that address the listener by an allowed name.
    Operators,
}

/// What answers on the public listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PublicEndpoint {
    Overview,
    Friends,
    Robots,
    Favicon,
    Livez,
    Readyz,
    StyleSheet,
    Sitemap,
    /// The page of a repository for browsers, else its OAI-PMH responses.
    Repository,
    RepositoryXml,
    Mirror,
    MirrorXml,
    Aggregate,
    AggregateXml,
    View,
    ViewXml,
    /// A record of a local repository, for its writers.
    WrittenRecord,
    /// Many records of a local repository, for its writers.
    WrittenRecords,
    /// The page of a record that a view shows.
    ViewRecord,
    Record,
    List,
    /// The values of a field of a repository.
    FieldValues,
    /// A search: a page, or the responses of ODL-Search.
    Search,
    SearchDescription,
    Suggestions,
    /// The responses of ODL-Browse.
    Browse,
    /// What changed last: a page, or the responses of ODL-Recent.
    Recent,
    /// Searches of library systems.
    Sru,
    /// The index of the served repositories.
    Index,
    IndexSchema,
    /// The record of a cited work.
    OpenUrl,
    /// The records that have or name an identifier.
    Resolver,
    /// A dump of a repository.
    Dump,
    /// What a dump is.
    DumpManifest,
    /// The feed of changes.
    Changes,
    /// The schema of a format that crosswalks make.
    CrosswalkSchema,
    /// The schema of the format `oaimend_links`.
    LinksSchema,
    /// The JSON API.
    Api,
    /// The lists of ResourceSync.
    ResourceSync,
    /// The federation of all repositories.
    FederationOfAll,
    Federation,
}

/// What answers on the admin listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AdminEndpoint {
    StatusPage,
    Livez,
    Readyz,
    Metrics,
    Repositories,
    Repository,
    Repairs,
    Report,
    Quarantine,
    QuarantinedRecord,
    Mirrors,
    Mirror,
    Harvest,
    Records,
    Description,
    RemoveQuarantined,
    RetryQuarantined,
    Sync,
    Maintenance(&'static str),
    Search,
    RebuildSearch,
    Backup,
    BackupSize,
    Dump,
    DumpManifest,
    Purge,
    OverviewPage,
    RepositoryPage,
    QuarantinePage,
    QuarantinedRecordPage,
    PlanChart,
    StyleSheet,
}

const READ: &[&str] = &["GET", "HEAD"];
const HARVEST: &[&str] = &["GET", "HEAD", "POST"];
const POST: &[&str] = &["POST"];

const PUBLIC_ROUTES: &[Route<PublicEndpoint>] = {
    use Access::Clients;
    use PublicEndpoint::{
        Aggregate, AggregateXml, Api, Browse, Changes, CrosswalkSchema, Dump, DumpManifest, Favicon,
        Federation, FederationOfAll, FieldValues, Friends, Index, IndexSchema, LinksSchema, List, Livez,
        Mirror, MirrorXml, OpenUrl, Overview, Readyz, Recent, Record, Repository, RepositoryXml, Resolver,
        ResourceSync, Robots, Search, SearchDescription, Sitemap, Sru, StyleSheet, Suggestions, View,
        ViewRecord, ViewXml, WrittenRecord, WrittenRecords,
    };
    &[
        route(READ, &["/"], Overview, Clients),
        route(HARVEST, &["/friends.xml"], Friends, Clients),
        route(HARVEST, &["/robots.txt"], Robots, Clients),
        route(HARVEST, &["/favicon.ico"], Favicon, Clients),
        route(HARVEST, &["/-/livez"], Livez, Access::Everyone),
        route(HARVEST, &["/-/readyz"], Readyz, Access::Everyone),
        route(READ, &["/-/{name}.css"], StyleSheet, Clients),
        route(READ, &["/sitemap.xml", "/sitemap-{name}.xml.gz"], Sitemap, Clients).labelled("sitemap"),
        route(HARVEST, &["/{id}", "/{id}/"], Repository, Clients).labelled("repository-page"),
        route(HARVEST, &["/{id}/xml"], RepositoryXml, Clients),
        route(HARVEST, &["/_mirror/{id}"], Mirror, Clients),
        route(HARVEST, &["/_mirror/{id}/xml"], MirrorXml, Clients),
        route(HARVEST, &["/_all", "/_all/"], Aggregate, Clients).labelled("repository-page"),
        route(HARVEST, &["/_all/xml"], AggregateXml, Clients),
        route(HARVEST, &["/_sru"], Sru, Clients),
        route(HARVEST, &["/_browse"], Browse, Clients),
        route(HARVEST, &["/_index"], Index, Clients),
        route(READ, &["/_index/schema.xsd"], IndexSchema, Clients),
        route(HARVEST, &["/_openurl", "/_openurl/"], OpenUrl, Clients).labelled("openurl"),
        route(HARVEST, &[RESOLVER_PATH, "/_resolve/"], Resolver, Clients).labelled("resolver"),
        route(READ, &["/_resolve/{*identifier}"], Resolver, Clients).labelled("resolver"),
        route(READ, &["/_dump"], Dump, Clients).labelled("dump"),
        route(READ, &["/_dump/manifest"], DumpManifest, Clients).labelled("dump"),
        route(READ, &["/_changes"], Changes, Clients).labelled("changes"),
        route(READ, &[JSON_LD_SCHEMA_PATH], CrosswalkSchema, Clients),
        route(READ, &[LINKS_SCHEMA_PATH], LinksSchema, Clients),
        route(
            READ,
            &[
                Operation::OpenApi.path(),
                Operation::Repositories.path(),
                "/_api/v1/repositories/{*id}",
                Operation::Records.path(),
                Operation::Record.path(),
                Operation::Sets.path(),
                Operation::Formats.path(),
                Operation::Search.path(),
            ],
            Api,
            Clients,
        )
        .labelled("api"),
        route(HARVEST, &["/_federation", "/_federation/"], FederationOfAll, Clients)
            .labelled("repository-page"),
        route(HARVEST, &["/_federation/{id}", "/_federation/{id}/"], Federation, Clients)
            .labelled("repository-page"),
        // A name that ends with `.atom` is the feed of a view.
        route(HARVEST, &["/_view/{id}", "/_view/{id}/"], View, Clients).labelled("repository-page"),
        route(HARVEST, &["/_view/{id}/xml"], ViewXml, Clients),
        route(READ, &["/_view/{id}/record/{*identifier}"], ViewRecord, Clients).labelled("record-page"),
        route(READ, &["/{id}/record/{*identifier}"], Record, Clients).labelled("record-page"),
        route(&["PUT", "PATCH", "DELETE"], &["/{id}/record/{*identifier}"], WrittenRecord, Clients)
            .labelled("written-record"),
        route(POST, &["/{id}/records"], WrittenRecords, Clients).labelled("written-records"),
        route(
            READ,
            &[
                "/{id}/records",
                "/{id}/records/",
                "/{id}/records/{*part}",
                "/{id}/sets",
                "/{id}/sets/",
                "/{id}/sets/{*part}",
            ],
            List,
            Clients,
        )
        .labelled("list-page"),
        route(
            READ,
            &[SOURCE_DESCRIPTION_PATH, "/{id}/resourcesync/{prefix}/{document}"],
            ResourceSync,
            Clients,
        )
        .labelled("resourcesync"),
        route(READ, &["/{id}/browse/{field}", "/{id}/browse/{field}/"], FieldValues, Clients)
            .labelled("browse-page"),
        route(HARVEST, &["/_search"], Search, Clients).labelled("search"),
        route(READ, &["/_search.json", "/_search.atom"], Search, Clients).labelled("search"),
        route(READ, &[DESCRIPTION_PATH], SearchDescription, Clients).labelled("search-description"),
        route(READ, &[SUGGESTIONS_PATH], Suggestions, Clients).labelled("search-suggestions"),
        route(HARVEST, &["/_recent"], Recent, Clients).labelled("recent"),
        route(READ, &["/_recent.json", "/_recent.atom"], Recent, Clients).labelled("recent"),
    ]
};

/// The first rows are the pages that [`listed_pages`] names, in this order.
const ADMIN_ROUTES: &[Route<AdminEndpoint>] = {
    use Access::{Everyone, Operators};
    use AdminEndpoint::{
        Backup, BackupSize, Description, Dump, DumpManifest, Harvest, Livez, Maintenance, Metrics, Mirror,
        Mirrors, OverviewPage, PlanChart, Purge, Quarantine, QuarantinePage, QuarantinedRecord,
        QuarantinedRecordPage, Readyz, RebuildSearch, Records, RemoveQuarantined, Repairs, Report,
        Repositories, Repository, RepositoryPage, RetryQuarantined, Search, StatusPage, StyleSheet, Sync,
    };
    &[
        route(READ, &[STATUS_PATH], StatusPage, Operators),
        route(READ, &["/-/livez"], Livez, Everyone),
        route(READ, &["/-/readyz"], Readyz, Everyone),
        // Some probes and scrapers are configured with a slash at the end.
        route(READ, &["/-/livez/"], Livez, Operators),
        route(READ, &["/-/readyz/"], Readyz, Operators),
        route(READ, &["/-/metrics", "/-/metrics/"], Metrics, Operators),
        route(READ, &["/-/repositories"], Repositories, Operators),
        route(READ, &["/-/repositories/{id}"], Repository, Operators),
        route(READ, &["/-/repositories/{id}/repairs"], Repairs, Operators),
        route(READ, &["/-/repositories/{id}/report"], Report, Operators),
        route(READ, &["/-/repositories/{id}/quarantine"], Quarantine, Operators),
        route(READ, &["/-/repositories/{id}/quarantine/{key}"], QuarantinedRecord, Operators),
        route(READ, &["/-/mirror", "/-/mirror/"], Mirrors, Operators),
        route(READ, &["/-/mirror/{id}"], Mirror, Operators),
        route(READ, &["/-/mirror/{id}/harvest"], Harvest, Operators),
        route(READ, &["/-/mirror/{id}/records"], Records, Operators),
        route(READ, &["/-/mirror/{id}/description"], Description, Operators),
        route(READ, &["/-/search"], Search, Operators),
        route(READ, &["/-/backup"], BackupSize, Operators),
        route(READ, &["/-/dump"], Dump, Operators),
        route(READ, &["/-/dump/manifest"], DumpManifest, Operators),
        route(
            &["DELETE"],
            &["/-/repositories/{id}/quarantine", "/-/repositories/{id}/quarantine/{key}"],
            RemoveQuarantined,
            Operators,
        ),
        route(
            POST,
            &["/-/repositories/{id}/quarantine/retry", "/-/repositories/{id}/quarantine/{key}/retry"],
            RetryQuarantined,
            Operators,
        ),
        route(POST, &["/-/mirror/{id}/sync"], Sync, Operators),
        route(POST, &["/-/mirror/{id}/verify"], Maintenance("verify"), Operators),
        route(POST, &["/-/mirror/{id}/accept-loss"], Maintenance("accept-loss"), Operators),
        route(POST, &["/-/mirror/{id}/compact"], Maintenance("compact"), Operators),
        route(POST, &["/-/mirror/{id}/forget"], Maintenance("forget"), Operators),
        route(POST, &["/-/search/rebuild"], RebuildSearch, Operators),
        route(POST, &["/-/backup"], Backup, Operators),
        route(&["PURGE"], &["/-/cache/{id}"], Purge, Operators),
        route(READ, &["/"], OverviewPage, Operators),
        route(READ, &["/{id}", "/{id}/"], RepositoryPage, Operators),
        route(READ, &["/{id}/quarantine", "/{id}/quarantine/"], QuarantinePage, Operators),
        route(READ, &["/{id}/quarantine/{key}"], QuarantinedRecordPage, Operators),
        route(READ, &[PLAN_CHART_PATH], PlanChart, Operators),
        route(READ, &["/-/{name}.css"], StyleSheet, Operators),
    ]
};

const fn route<E>(
    methods: &'static [&'static str],
    paths: &'static [&'static str],
    endpoint: E,
    access: Access,
) -> Route<E> {
    Route { methods, paths, endpoint, label: None, access }
}

impl<E> Route<E> {
    const fn labelled(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }
}

/// The table of a listener.
pub(crate) struct RouteTable<E: 'static> {
    by_method: BTreeMap<&'static str, Router<&'static Route<E>>>,
}

/// The route of a request, with the parts of its path.
pub(crate) struct Found<'p, E: 'static> {
    pub(crate) route: &'static Route<E>,
    parts: Params<'static, 'p>,
}

/// The routes of the public listener.
pub(crate) static PUBLIC: LazyLock<RouteTable<PublicEndpoint>> =
    LazyLock::new(|| RouteTable::new(PUBLIC_ROUTES));

/// The routes of the admin listener.
pub(crate) static ADMIN: LazyLock<RouteTable<AdminEndpoint>> =
    LazyLock::new(|| RouteTable::new(ADMIN_ROUTES));

impl<E> RouteTable<E> {
    fn new(routes: &'static [Route<E>]) -> Self {
        let mut by_method: BTreeMap<&'static str, Router<&'static Route<E>>> = BTreeMap::new();
        for route in routes {
            for method in route.methods {
                let router = by_method.entry(method).or_default();
                for path in route.paths {
                    router.insert(*path, route).expect("the paths of a table differ");
                }
            }
        }
        Self { by_method }
    }

    /// The route of a request. The path is the received one, without its query.
    pub(crate) fn find<'p>(&'static self, method: &str, path: &'p str) -> Option<Found<'p, E>> {
        let found = self.by_method.get(method)?.at(path).ok()?;
        let found = Found { route: *found.value, parts: found.params };
        // No repository has the name `-`: it is the folder of the paths of the program itself.
        (found.id() != "-").then_some(found)
    }
}

impl<'p, E> Found<'p, E> {
    /// The id of the repository, as it is in the path; empty for a path without one.
    pub(crate) fn id(&self) -> &'p str {
        self.part("id").unwrap_or_default()
    }

    /// A part of the path, as it is there.
    pub(crate) fn part(&self, name: &str) -> Option<&'p str> {
        self.parts.get(name)
    }
}

/// The paths that the admin listener names to a client with an unknown one. Files are left out.
pub(crate) fn listed_pages() -> Vec<String> {
    let paths = ADMIN_ROUTES.iter().filter(|route| route.methods == READ).map(|route| route.paths[0]);
    let listed = paths.filter(|path| path.starts_with("/-/") && !path.ends_with('/') && !path.contains('.'));
    listed.map(|path| path.replace("{id}", "ID").replace("{key}", "KEY")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const URLS: &str = include_str!("../../docs/reference/urls.md");
    const ADMIN_API: &str = include_str!("../../docs/reference/admin-api.md");

    /// The code in each row of the first table after a heading of this page.
    fn code_in_rows<'p>(page: &'p str, heading: &str) -> impl Iterator<Item = Vec<&'p str>> {
        let (_, after) = page.split_once(heading).expect("the heading exists");
        let rows = after.lines().skip_while(|line| !line.starts_with('|'));
        let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
        rows.map(|row| row.split('`').skip(1).step_by(2).collect())
    }

    /// The requests of a row of the admin API, such as `GET /-/livez`. A row names several methods of a path, or several
    /// ends of it.
    fn admin_requests(code: &[&str]) -> Vec<(String, String)> {
        let (mut methods, mut paths, mut folder) = (Vec::new(), Vec::new(), "");
        for part in code {
            match part.split_once(' ') {
                Some((method, path)) if path.starts_with('/') => {
                    methods.push(method);
                    let path = path.split('?').next().unwrap_or_default();
                    folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                    match path.split_once("[/KEY]") {
                        Some((before, after)) => {
                            paths.extend([format!("{before}{after}"), format!("{before}/KEY{after}")]);
                        }
                        None => paths.push(path.to_owned()),
                    }
                }
                None if ["GET", "POST", "DELETE", "PURGE"].contains(part) => methods.push(part),
                None if methods == ["POST"] => paths.push(format!("{folder}/{part}")),
                _ => {}
            }
        }
        let requests =
            methods.iter().flat_map(|method| paths.iter().map(|path| ((*method).to_owned(), path.clone())));
        requests.collect()
    }

    /// Every request leads to a route, and every route has a request.
    #[track_caller]
    fn check<E: Copy + Ord + std::fmt::Debug>(
        table: &'static RouteTable<E>,
        routes: &[Route<E>],
        requests: impl IntoIterator<Item = (String, String)>,
    ) {
        let mut reached = BTreeSet::new();
        for (method, path) in requests {
            let found = table.find(&method, &path);
            reached.insert(found.unwrap_or_else(|| panic!("no route for {method} {path}")).route.endpoint);
        }
        let all: BTreeSet<E> = routes.iter().map(|route| route.endpoint).collect();
        assert_eq!(reached, all, "the documented endpoints, and those of the table");
    }

    #[test]
    fn the_public_paths_are_the_documented_ones() {
        let named = code_in_rows(URLS, "## Public listener").flatten();
        let requests = named.filter_map(|code| {
            let (method, url) = match code.split_once(' ') {
                Some((method, url)) => (method, url),
                None => ("GET", code),
            };
            let path = url.split('?').next().unwrap_or_default();
            path.starts_with('/').then(|| (method.to_owned(), path.to_owned()))
        });
        check(&PUBLIC, PUBLIC_ROUTES, requests);
    }

    #[test]
    fn the_admin_paths_are_the_documented_ones() {
        let api = code_in_rows(ADMIN_API, "# Admin API").flat_map(|code| admin_requests(&code));
        let pages = code_in_rows(ADMIN_API, "## Pages for browsers").flatten();
        let pages = pages.filter(|code| code.starts_with('/')).map(|url| {
            let path = url.split('?').next().unwrap_or_default();
            ("GET".to_owned(), path.to_owned())
        });
        // The pages of both listeners have the same style sheets.
        let style_sheet = ("GET".to_owned(), "/-/style-HASH.css".to_owned());
        check(&ADMIN, ADMIN_ROUTES, api.chain(pages).chain([style_sheet]));
    }

    #[test]
    fn other_paths_have_no_route() {
        for path in
            ["", "x", "//", "//records/", "/x/record/", "/x/y/record/1", "/-/", "/-/xml", "/-/records/"]
        {
            assert!(PUBLIC.find("GET", path).is_none(), "{path}");
        }
        for path in ["/-/livez/x", "/-/quarantine/", "/x/quarantine/00/1", "/x/record/1", "/-/mirror/x/sync"]
        {
            assert!(ADMIN.find("GET", path).is_none(), "{path}");
        }
        assert!(ADMIN.find("PUT", "/").is_none());
    }

    #[test]
    fn a_fixed_part_goes_before_an_id() {
        let endpoint = |path| PUBLIC.find("GET", path).map(|found| (found.route.endpoint, found.id()));
        for (path, expected) in [
            ("/_mirror/xml", (PublicEndpoint::Mirror, "xml")),
            ("/_mirror/records", (PublicEndpoint::Mirror, "records")),
            ("/xml/xml", (PublicEndpoint::RepositoryXml, "xml")),
            ("/sitemap.xml/", (PublicEndpoint::Repository, "sitemap.xml")),
            ("/sitemap.xml/xml", (PublicEndpoint::RepositoryXml, "sitemap.xml")),
            ("/sitemap-a/records/", (PublicEndpoint::List, "sitemap-a")),
            ("/records", (PublicEndpoint::Repository, "records")),
            ("/records/records/", (PublicEndpoint::List, "records")),
            ("/_view/record/record/xml", (PublicEndpoint::ViewRecord, "record")),
        ] {
            assert_eq!(endpoint(path), Some(expected), "{path}");
        }
        let key = |method| {
            ADMIN.find(method, "/-/repositories/x/quarantine/retry").map(|found| found.route.endpoint)
        };
        assert_eq!(key("GET"), Some(AdminEndpoint::QuarantinedRecord));
        assert_eq!(key("POST"), Some(AdminEndpoint::RetryQuarantined));
    }
}
