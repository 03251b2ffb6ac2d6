//! The page of a response: its frame, and the links to other requests.

use super::super::super::oai_page::{OaiContent, OaiPage, RequestAddress};
use super::super::super::record::RecordAddress;
use super::links::{COMMON_FORMAT, RequestLinks};
use super::not_shown::NoResponseReason;
use crate::texts::{common, response as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_oai::{Argument, Request, Verb};
use oaimend_record::Text;

/// The page of a response.
#[derive(Clone, Debug)]
pub struct ResponsePage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The request.
    pub address: &'a RequestAddress,
    /// The same request, parsed; `None` if it is not valid.
    pub request: Option<&'a Request>,
    /// The id of the repository; `None` for the view of all repositories.
    pub repository: Option<&'a str>,
    /// Whether its records have pages.
    pub has_record_pages: bool,
    /// The response.
    pub response: ShownResponse<'a>,
}

/// The response to a request, as far as its page shows it.
#[derive(Clone, Copy, Debug)]
pub enum ShownResponse<'a> {
    /// A whole response.
    Whole(&'a OaiPage),
    /// The start of a response that was broken off.
    BrokenOff(&'a OaiPage),
    /// A failure: the text that programs receive, and the time until the next attempt, in seconds.
    Failed {
        /// The text, in lines.
        text: &'a str,
        /// When to try again; `None` if that is useless.
        retry_after_secs: Option<u64>,
    },
    /// A response that cannot be shown.
    NotShown(NoResponseReason),
}

impl ResponsePage<'_> {
    fn links(&self) -> RequestLinks<'_> {
        RequestLinks {
            site: self.site,
            address: self.address,
            request: self.request,
            repository: self.repository,
            has_record_pages: self.has_record_pages,
        }
    }

    /// The whole document.
    pub fn render(&self) -> String {
        let title = self.title();
        let crumbs = [
            Crumb { name: &self.address.repository, url: Some(self.repository_url()) },
            Crumb { name: self.request.map_or(texts::REQUEST, |request| request.verb().name()), url: None },
        ];
        let main = html! {
            article.response {
                header {
                    p.kind { (self.kind()) }
                    (self.heading(&title))
                }
                (self.requests())
                div.body { (self.body()) }
                (self.for_programs())
            }
        };
        // Lists of a source are not for search engines: each page of them can be a request to the source.
        let head = html! { meta name="robots" content="noindex, nofollow"; };
        Page { site: self.site, title: &title.value, crumbs: &crumbs, head, main }.render()
    }

    /// The page of the repository.
    fn repository_url(&self) -> String {
        match self.repository {
            Some(repository) => {
                let address = RecordAddress { repository, identifier: "", format: None };
                address.repository(self.site.base_path())
            }
            None => self.links().url_of(&Request::identify()),
        }
    }

    fn title(&self) -> Text {
        let plain = |value: &str| Text {
            value: value.to_owned(),
            language: Some("en".to_owned()),
            ..Text::default()
        };
        let by_verb = || match self.request.map(Request::verb) {
            Some(Verb::Identify) => common::REPOSITORY,
            Some(Verb::ListMetadataFormats) => texts::METADATA_FORMATS,
            Some(Verb::ListSets) => common::SETS,
            Some(Verb::ListRecords) => common::RECORDS,
            Some(Verb::ListIdentifiers) => common::IDENTIFIERS,
            Some(Verb::GetRecord) => common::RECORD,
            None => texts::REQUEST,
        };
        match self.response {
            ShownResponse::Failed { .. } => plain(texts::FAILED),
            ShownResponse::NotShown(reason) => plain(reason.title()),
            ShownResponse::Whole(page) | ShownResponse::BrokenOff(page) => match &page.content {
                OaiContent::Errors(errors) => plain(super::errors::title(errors)),
                OaiContent::Identify(facts) => match facts.fact("repositoryName") {
                    Some(name) if !name.value.is_empty() => name.clone(),
                    _ => plain(by_verb()),
                },
                OaiContent::Record { document: Some(document), .. } => {
                    super::single::title(document).unwrap_or_else(|| plain(by_verb()))
                }
                _ => plain(by_verb()),
            },
        }
    }

    fn heading(&self, title: &Text) -> Markup {
        let lang = title.language.as_deref().unwrap_or_default();
        html! { h1 lang=(lang) dir=(title.direction().name()) { (title.value) } }
    }

    /// The verb, the arguments and the time of the response.
    fn kind(&self) -> Markup {
        let argument = |argument: &Argument| {
            if *argument == Argument::ResumptionToken {
                return None;
            }
            Some((argument.name(), self.request?.argument(*argument)?))
        };
        let page = match self.response {
            ShownResponse::Whole(page) | ShownResponse::BrokenOff(page) => Some(page),
            _ => None,
        };
        let date = page.map(|page| page.response_date.as_str()).filter(|date| !date.is_empty());
        html! {
            "OAI-PMH "
            (self.request.map_or(texts::SOME_REQUEST, |request| request.verb().name()))
            @for (name, value) in Argument::ALL.iter().filter_map(argument) { " · " (name) " " bdi { (value) } }
            @if let Some(date) = date { " · " time datetime=(date) { (date) } }
        }
    }

    /// Links to the other requests. The lists of records and identifiers keep their arguments.
    fn requests(&self) -> Markup {
        let verb = self.request.map(Request::verb);
        let harvest = self.request.filter(|request| request.verb().is_harvest() && !request.is_resumption());
        let records = match harvest {
            Some(request) => request.to_list_records(),
            None => Request::list_records(COMMON_FORMAT, None, None, None),
        };
        let identifiers = records.to_list_identifiers();
        let tabs = [
            (common::IDENTIFY, Request::identify()),
            (common::FORMATS, Request::list_metadata_formats(None)),
            (common::SETS, Request::list_sets()),
            (common::RECORDS, records),
            (common::IDENTIFIERS, identifiers),
        ];
        html! {
            nav.tabs aria-label=(texts::REQUESTS) {
                ul {
                    @for (name, request) in &tabs {
                        @let is_current = verb == Some(request.verb());
                        li {
                            a href=(self.links().url_of(request)) aria-current=[is_current.then_some("true")] { (name) }
                        }
                    }
                }
            }
        }
    }

    fn body(&self) -> Markup {
        match self.response {
            ShownResponse::Whole(page) => self.content(page, true),
            ShownResponse::BrokenOff(page) => html! {
                div.warning {
                    p { strong { (texts::BROKEN_OFF) } (texts::IS_INCOMPLETE) }
                    p { (texts::SHOWN_PART) }
                }
                (self.content(page, false))
            },
            ShownResponse::Failed { text, retry_after_secs } => {
                super::not_shown::failure(text, retry_after_secs)
            }
            ShownResponse::NotShown(reason) => {
                html! { @for sentence in reason.sentences() { p { (sentence) } } }
            }
        }
    }

    fn content(&self, page: &OaiPage, is_whole: bool) -> Markup {
        match &page.content {
            OaiContent::Nothing if is_whole => html! { p { (texts::EMPTY) } },
            OaiContent::Nothing => html! {},
            OaiContent::Errors(errors) => super::errors::errors(self.links(), errors),
            OaiContent::Identify(facts) => super::single::identify(facts),
            OaiContent::Formats(formats) => super::lists::formats(self.links(), formats),
            OaiContent::Sets(list) => super::lists::sets(self.links(), list, is_whole),
            OaiContent::Records(list) => super::lists::records(self.links(), list, is_whole),
            OaiContent::Record { xml, document } => {
                super::single::record(self.links(), xml, document.as_ref())
            }
        }
    }

    /// The URL of the request for programs, and its XML.
    fn for_programs(&self) -> Markup {
        html! {
            section.request aria-labelledby="request" {
                h2 id="request" { (texts::FOR_HARVESTERS) }
                p { (texts::URL_OF_REQUEST) code { (self.address.url(self.site.public_url())) } }
                p { a href=(self.address.xml(self.site.base_path())) { (texts::SHOW_XML) } }
            }
        }
    }
}
