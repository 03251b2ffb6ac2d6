//! The page of the resolver: the box, and what is known of an identifier.

use crate::record::RepositoryAddress;
use crate::resolver::{
    FoundFormat, FoundItem, RESOLVER_PATH, ResolverAddress, ResolverResult, ServiceResult,
};
use crate::texts::{common, resolver as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};

/// The page of the resolver.
#[derive(Clone, Copy, Debug)]
pub struct ResolverPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// What the page shows.
    pub shown: ResolverContent<'a>,
}

/// What the page of the resolver shows.
#[derive(Clone, Copy, Debug)]
pub enum ResolverContent<'a> {
    /// The box alone.
    Form,
    /// The records that have or name an identifier.
    Result(&'a ResolverResult),
    /// The table of identifiers is being built. For status 503.
    Building,
    /// The mirror cannot be read. For status 503.
    Unreadable,
}

/// Longest identifier that the box accepts, in characters.
const IDENTIFIER_CHARS_MAX: usize = 2_000;
/// Longest identifier in a title and a heading, in characters.
const TITLE_CHARS_MAX: usize = 200;

impl ResolverPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let identifier = match self.shown {
            ResolverContent::Result(result) => start_of(&result.identifier),
            _ => String::new(),
        };
        let title = match self.shown {
            ResolverContent::Form => texts::TITLE,
            ResolverContent::Result(_) => &identifier,
            ResolverContent::Building => texts::BUILDING_TITLE,
            ResolverContent::Unreadable => texts::UNREADABLE_TITLE,
        };
        let main = html! {
            h1 { bdi { (title) } }
            @match self.shown {
                ResolverContent::Form => { (self.form("")) (self.introduction()) },
                ResolverContent::Result(result) => (self.result(result)),
                ResolverContent::Building => p { (texts::BUILDING) },
                ResolverContent::Unreadable => p { (texts::UNREADABLE) },
            }
        };
        let base = self.site.base_path();
        let resolver = Crumb { name: texts::TITLE, url: Some(format!("{base}{RESOLVER_PATH}")) };
        let crumbs = match self.shown {
            ResolverContent::Form => vec![Crumb { url: None, ..resolver }],
            _ => vec![resolver, Crumb { name: title, url: None }],
        };
        let head = html! { meta name="robots" content="noindex"; };
        Page { site: self.site, title, crumbs: &crumbs, head, main }.render()
    }

    fn form(&self, identifier: &str) -> Markup {
        html! {
            form.search.wide role="search" method="get" action={ (self.site.base_path()) (RESOLVER_PATH) } {
                label for="identifier" { (texts::BOX_LABEL) }
                input id="identifier" name="identifier" type="search" value=(identifier) maxlength=(IDENTIFIER_CHARS_MAX) autocomplete="off";
                button type="submit" { (texts::FIND) }
            }
        }
    }

    fn introduction(&self) -> Markup {
        let base = self.site.base_path();
        html! {
            p { (texts::INTRODUCTION) }
            section aria-labelledby="examples" {
                h2 id="examples" { (texts::EXAMPLES) }
                ul.list {
                    @for identifier in texts::EXAMPLE_IDENTIFIERS {
                        li { a rel="nofollow" href=(ResolverAddress { identifier }.page(base)) { (identifier) } }
                    }
                }
            }
        }
    }

    fn result(&self, result: &ResolverResult) -> Markup {
        let base = self.site.base_path();
        let has_live = result.identified.iter().chain(&result.named_by).any(FoundItem::is_live);
        let address = ResolverAddress { identifier: &result.identifier };
        html! {
            (self.form(&start_of(&result.identifier)))
            @for (kind, value) in &result.meanings {
                p.note { (texts::meaning(kind)) " " code { bdi { (value) } } }
            }
            @if result.identified.is_empty() && result.named_by.is_empty() {
                p { strong { (texts::UNKNOWN) } }
            }
            @if has_live { p { a rel="nofollow" href=(address.best_record(base)) { (texts::GO) } } }
            (self.items("identified", texts::IDENTIFIED, &result.identified))
            (self.items("named-by", texts::NAMED_BY, &result.named_by))
            @if result.has_more { p.note { (texts::HAS_MORE) } }
            @if !result.incomplete.is_empty() { p.note { (texts::incomplete(&result.incomplete)) } }
            @if !result.services.is_empty() {
                section aria-labelledby="services" {
                    h2 id="services" { (texts::AT_SERVICES) }
                    ul.list { @for service in &result.services { li { (service_line(service)) } } }
                }
            }
        }
    }

    fn items(&self, id: &str, heading: &str, items: &[FoundItem]) -> Markup {
        html! {
            @if !items.is_empty() {
                section aria-labelledby=(id) {
                    h2 id=(id) { (heading) }
                    @for item in items { (self.item(item)) }
                }
            }
        }
    }

    fn item(&self, item: &FoundItem) -> Markup {
        let base = self.site.base_path();
        let repository = RepositoryAddress { repository: &item.repository }.page(base);
        html! {
            h3 {
                @match item.page(base) {
                    Some(page) => a href=(page) { bdi { (item.identifier) } },
                    None => bdi { (item.identifier) },
                }
            }
            p.note {
                (common::REPOSITORY) " " a href=(repository) { (item.repository) }
                @if let Some(field) = item.named_in { ", " (texts::field(field)) }
            }
            table.fields {
                thead {
                    tr {
                        th scope="col" { (texts::FORMAT) }
                        th scope="col" { (texts::CHANGED) }
                        th scope="col" { (texts::STATE) }
                        th scope="col" { (texts::LINKS) }
                    }
                }
                tbody { @for format in &item.formats { (format_row(item, format, base)) } }
            }
        }
    }
}

fn format_row(item: &FoundItem, format: &FoundFormat, base: &str) -> Markup {
    let state = if format.is_deleted { texts::DELETED } else { texts::AVAILABLE };
    html! {
        tr {
            th scope="row" { (format.prefix) }
            td { time datetime=(format.stamp) { (format.stamp) } }
            td { (state) }
            td {
                a rel="nofollow" href=(item.in_mirror(base, &format.prefix)) { (texts::MIRROR) } ", "
                a rel="nofollow" href=(item.in_repository(base, &format.prefix)) { (texts::REPOSITORY) }
            }
        }
    }
}

fn service_line(service: &ServiceResult) -> Markup {
    html! {
        @match &service.url {
            Some(url) => a rel="nofollow" href=(url) { bdi { (service.name) } },
            None => bdi { (service.name) },
        }
        " " (texts::service(service.state.name()))
    }
}

/// The start of an identifier, without control characters.
fn start_of(identifier: &str) -> String {
    let shown = identifier.chars().take(TITLE_CHARS_MAX);
    shown.map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolver::ServiceState;

    fn page(shown: ResolverContent<'_>) -> String {
        let site = Site::new("Site", None, "https://e.org/b");
        ResolverPage { site: &site, shown }.render()
    }

    fn item(named_in: Option<&'static str>, is_deleted: bool) -> FoundItem {
        let format = FoundFormat { prefix: "mods".to_owned(), is_deleted, ..FoundFormat::default() };
        FoundItem {
            repository: "x".to_owned(),
            identifier: "oai:<i>".to_owned(),
            has_page: true,
            named_in,
            formats: vec![format],
        }
    }

    #[test]
    fn what_is_known_is_text_with_links() {
        let service = |state, url: Option<&str>| ServiceResult {
            name: "<i>".to_owned(),
            state,
            url: url.map(str::to_owned),
        };
        let result = ResolverResult {
            identifier: "10.1000/<i>\u{0}".to_owned(),
            meanings: vec![("doi", "10.1000/<i>".to_owned())],
            identified: vec![item(None, true)],
            named_by: vec![item(Some("relation"), false)],
            has_more: true,
            incomplete: vec!["y".to_owned()],
            services: vec![
                service(ServiceState::Found, Some("https://o.example/1?a&b")),
                service(ServiceState::NotReached, None),
            ],
        };
        let shown = page(ResolverContent::Result(&result));
        for part in [
            "<h1><bdi>10.1000/&lt;i&gt;\u{FFFD}</bdi></h1>",
            "DOI <code><bdi>10.1000/&lt;i&gt;</bdi></code>",
            "href=\"/b/_resolve/10.1000%2F%3Ci%3E%00?go\"",
            "<a href=\"/b/x/record/oai%3A%3Ci%3E\"><bdi>oai:&lt;i&gt;</bdi></a>",
            "as a related work",
            "<td>deleted</td>",
            "href=\"/b/_mirror/x?verb=GetRecord&amp;identifier=oai%3A%3Ci%3E&amp;metadataPrefix=mods\"",
            "href=\"/b/x?verb=GetRecord&amp;identifier=oai%3A%3Ci%3E&amp;metadataPrefix=mods\"",
            "not harvested completely: y.",
            "<a rel=\"nofollow\" href=\"https://o.example/1?a&amp;b\"><bdi>&lt;i&gt;</bdi></a> has the record",
            "was not reached in time",
            "content=\"noindex\"",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("<i>"), "{shown}");
        let unknown = page(ResolverContent::Result(&ResolverResult::default()));
        assert!(unknown.contains(texts::UNKNOWN) && !unknown.contains(texts::GO), "{unknown}");
    }

    #[test]
    fn the_box_is_a_form_of_the_resolver() {
        let form = page(ResolverContent::Form);
        assert!(form.contains("method=\"get\" action=\"/b/_resolve\""), "{form}");
        assert!(form.contains("href=\"/b/_resolve/arXiv%3A0704.0001\""), "{form}");
        for (shown, text) in
            [(ResolverContent::Building, texts::BUILDING), (ResolverContent::Unreadable, texts::UNREADABLE)]
        {
            assert!(page(shown).contains(text));
        }
    }
}
