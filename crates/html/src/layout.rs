//! The layout that all pages share.

use super::style_sheet::StyleSheet;
use super::texts;
use maud::{DOCTYPE, Markup, html};
use std::borrow::Cow;
use url::Url;

/// The Content-Security-Policy of all pages. It forbids all script; a block of JSON-LD is data and is not affected.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The path of the page of a search.
pub const SEARCH_PATH: &str = "/_search";
/// The path of the OpenSearch description of the search.
pub const DESCRIPTION_PATH: &str = "/_search/opensearch.xml";

/// The facts about this server that pages show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    name: String,
    contact: Option<String>,
    public_url: String,
    base_path: String,
    /// The start of links to pages that only the public listener has.
    public_base: String,
    /// Whether programs find the search of the site.
    has_search: bool,
    /// Whether the header has a search box.
    has_search_box: bool,
    /// In the order in which pages link to them.
    style_sheets: Vec<StyleSheet>,
}

impl Site {
    /// A site. `public_url` is an absolute URL; its path becomes the start of the links between pages, so that they
    /// work under any host name. `contact` is an email address of the operator.
    pub fn new(name: &str, contact: Option<&str>, public_url: &str) -> Self {
        let path = Url::parse(public_url).map(|url| url.path().trim_end_matches('/').to_owned());
        let base_path = path.unwrap_or_default();
        Self {
            name: name.to_owned(),
            contact: contact.map(str::to_owned),
            public_url: public_url.trim_end_matches('/').to_owned(),
            public_base: base_path.clone(),
            base_path,
            has_search: false,
            has_search_box: false,
            style_sheets: vec![StyleSheet::common()],
        }
    }

    /// The site with the style sheet of its operator, after the own one.
    #[must_use]
    pub fn with_theme(mut self, css: &str) -> Self {
        self.style_sheets.push(StyleSheet::theme(css));
        self
    }

    /// The site with a search box in the header of its pages.
    #[must_use]
    pub fn with_search(self) -> Self {
        Self { has_search: true, has_search_box: true, ..self }
    }

    /// Whether its pages can link to searches.
    pub fn has_search(&self) -> bool {
        self.has_search
    }

    /// The same site for a page that has the search box in its content.
    #[must_use]
    pub fn without_search_box(&self) -> Self {
        Self { has_search_box: false, ..self.clone() }
    }

    /// The same site on the admin listener. Links between its pages begin at its root, other links lead to the public URL.
    #[must_use]
    pub fn for_operators(&self) -> Self {
        let (base_path, public_base) = (String::new(), self.public_url.clone());
        // The policy of the pages forbids forms of another server.
        Self { base_path, public_base, has_search: false, has_search_box: false, ..self.clone() }
    }

    /// The name of the site.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The style sheets of all pages.
    pub fn style_sheets(&self) -> &[StyleSheet] {
        &self.style_sheets
    }

    /// The public URL without a slash at its end, for URLs that other programs read.
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// The path of the site without a slash at its end, for links between pages.
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// The start of links to pages that only the public listener has, such as those of records: without a slash at its
    /// end.
    pub fn public_base(&self) -> &str {
        &self.public_base
    }
}

/// Longest title in `title`, in characters. Search engines and tabs show the first 60 or so.
const TITLE_CHARS_MAX: usize = 150;

/// The start of a title.
fn shortened(title: &str) -> Cow<'_, str> {
    match title.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", title.get(..end).unwrap_or(title).trim_end())),
        None => Cow::Borrowed(title),
    }
}

/// A step of the path to a page.
#[derive(Clone, Debug)]
pub struct Crumb<'a> {
    /// Its text.
    pub name: &'a str,
    /// `None` for the page itself.
    pub url: Option<String>,
}

/// A page inside the layout.
#[derive(Debug)]
pub struct Page<'a> {
    /// The site to which it belongs.
    pub site: &'a Site,
    /// The title without the name of the site.
    pub title: &'a str,
    /// The steps below the start page.
    pub crumbs: &'a [Crumb<'a>],
    /// Further elements of `head`.
    pub head: Markup,
    /// The content.
    pub main: Markup,
}

impl Page<'_> {
    /// The whole document.
    pub fn render(self) -> String {
        let Self { site, title, crumbs, head, main } = self;
        let base = site.base_path();
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (shortened(title)) " – " (site.name) }
                    @for sheet in site.style_sheets() {
                        link rel="stylesheet" href={ (base) (sheet.path) };
                    }
                    @if site.has_search {
                        link rel="search" type="application/opensearchdescription+xml" title=(site.name) href={ (base) (DESCRIPTION_PATH) };
                    }
                    (head)
                }
                body {
                    a.skip href="#main" { (texts::SKIP) }
                    header.site {
                        a href={ (base) "/" } { (site.name) }
                        @if site.has_search_box { (search_box(base)) }
                    }
                    nav.crumbs aria-label=(texts::BREADCRUMB) {
                        ol {
                            li { a href={ (base) "/" } { (texts::REPOSITORIES) } }
                            @for crumb in crumbs {
                                li {
                                    @match &crumb.url {
                                        Some(url) => a href=(url) { bdi { (crumb.name) } },
                                        None => span aria-current="page" { bdi { (crumb.name) } },
                                    }
                                }
                            }
                        }
                    }
                    main id="main" tabindex="-1" { (main) }
                    footer {
                        p { (texts::ABOUT) }
                        @if let Some(contact) = &site.contact {
                            p { (texts::CONTACT) a href={ "mailto:" (contact) } { (contact) } }
                        }
                    }
                }
            }
        };
        document.into_string()
    }
}

/// The box in the header of pages. Its label is for screen readers: the button says the same.
fn search_box(base: &str) -> Markup {
    html! {
        form role="search" method="get" action={ (base) (SEARCH_PATH) } {
            input name="q" type="search" aria-label=(texts::SEARCH_LABEL) autocomplete="off";
            button type="submit" { (texts::SEARCH) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_pages_begin_with_the_path_of_the_public_url() {
        for (public_url, base) in
            [("https://e.org", ""), ("https://e.org/", ""), ("https://e.org/oai/x/", "/oai/x")]
        {
            let site = Site::new("Site", None, public_url);
            assert_eq!((site.base_path(), site.public_url()), (base, public_url.trim_end_matches('/')));
            let site = site.with_theme("a{}");
            let page = Page { site: &site, title: "T", crumbs: &[], head: html! {}, main: html! {} }.render();
            let link =
                |sheet: &StyleSheet| format!("<link rel=\"stylesheet\" href=\"{base}{}\">", sheet.path);
            let links: String = site.style_sheets().iter().map(link).collect();
            assert!(site.style_sheets().len() == 2 && page.contains(&links), "{page}");
        }
    }

    #[test]
    fn a_site_with_search_has_its_box_on_public_pages() {
        let render =
            |site: &Site| Page { site, title: "T", crumbs: &[], head: html! {}, main: html! {} }.render();
        let site = Site::new("Site", None, "https://e.org/b").with_search();
        let (box_start, link) =
            ("role=\"search\" method=\"get\" action=\"/b/_search\"", "href=\"/b/_search/opensearch.xml\"");
        let has = |page: &str| (page.contains(box_start), page.contains(link));
        assert_eq!(has(&render(&site)), (true, true));
        assert_eq!(has(&render(&site.without_search_box())), (false, true));
        let operators = render(&site.for_operators());
        assert!(!operators.contains("_search"), "{operators}");
    }

    #[test]
    fn pages_of_operators_link_to_the_root_and_to_the_public_url() {
        let site = Site::new("Site", None, "https://e.org/oai/x/").for_operators();
        assert_eq!((site.base_path(), site.public_base()), ("", "https://e.org/oai/x"));
        let page = Page { site: &site, title: "T", crumbs: &[], head: html! {}, main: html! {} }.render();
        assert!(page.contains("href=\"/-/style-"), "{page}");
    }

    #[test]
    fn long_titles_are_shortened() {
        for (title, shown) in [
            ("é".repeat(TITLE_CHARS_MAX), "é".repeat(TITLE_CHARS_MAX)),
            ("é".repeat(TITLE_CHARS_MAX + 1), "é".repeat(TITLE_CHARS_MAX) + "…"),
            (format!("{} x", "é".repeat(TITLE_CHARS_MAX - 1)), "é".repeat(TITLE_CHARS_MAX - 1) + "…"),
        ] {
            assert_eq!(shortened(&title), shown);
        }
    }

    #[test]
    fn the_site_and_the_crumbs_are_escaped() {
        let site = Site::new("<b>", Some("a@e.org\"><i>"), "https://e.org");
        let crumbs =
            [Crumb { name: "<i>", url: Some("/\"><i>".to_owned()) }, Crumb { name: "<i>", url: None }];
        let page =
            Page { site: &site, title: "<i>", crumbs: &crumbs, head: html! {}, main: html! {} }.render();
        assert!(!page.contains("<b>") && !page.contains("<i>"), "{page}");
    }
}
