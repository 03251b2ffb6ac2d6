//! The page of a response of a repository, for browsers.

use super::answered_request::{AnsweredRequest, ResponseBody};
use super::gateway::Gateway;
use super::records::live_record::LiveRecordRequest;
use super::rendering::{RenderLimits, RenderingFailed};
use super::state::GatewayState;
use crate::serve::api::page::ApiPageRequest;
use crate::serve::problem::as_problem;
use crate::serve::response::{Body, Response, response_vary};
use http::{HeaderMap, Method};
use oaimend_html::CONTENT_SECURITY_POLICY;
use oaimend_oai::Request;
use oaimend_pages::html::{NoResponseReason, ResponsePage, ShownResponse};
use oaimend_pages::oai_page::{OaiPage, RequestAddress};
use oaimend_pages::texts::plain;
use std::sync::Arc;

/// A request whose response becomes a page.
#[derive(Clone, Debug)]
pub(crate) struct ResponsePageRequest {
    pub(crate) gateway: Arc<GatewayState>,
    pub(crate) address: RequestAddress,
    /// `None` if it is not valid.
    pub(crate) request: Option<Request>,
    /// The id of the repository; `None` for the view of all repositories.
    pub(crate) repository: Option<String>,
    pub(crate) has_record_pages: bool,
}

/// When to try again if too many pages are being rendered, in seconds.
const BUSY_SECS: u64 = 5;

/// Whether a request is the navigation of a browser. Browsers send this header over https, and to loopback.
pub(crate) fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    let destination =
        headers.get("sec-fetch-dest").map(|value| value.as_bytes().eq_ignore_ascii_case(b"document"));
    *method == Method::GET && destination == Some(true)
}

/// A page that is made from the response to a request.
#[derive(Debug)]
pub(crate) enum CollectedPage {
    /// The page of the response.
    Response(ResponsePageRequest),
    /// The page of the record in the response.
    Record(Box<LiveRecordRequest>),
    /// The document of the API.
    Api(Box<ApiPageRequest>),
}

impl CollectedPage {
    /// The page of a response.
    pub(crate) async fn render(self, gateway: &Gateway, answered: AnsweredRequest) -> Response {
        match self {
            Self::Response(request) => request.render(&gateway.rendering, answered).await,
            Self::Record(request) => request.render(&gateway.rendering, answered).await,
            Self::Api(request) => request.render(gateway, answered).await,
        }
    }

    /// The page of a response that needs no repository: an error or a failure.
    pub(crate) async fn page_of(self, gateway: &Gateway, response: Response) -> Response {
        if matches!(self, Self::Api(_)) {
            return as_problem(response);
        }
        let Body::Bytes(body) = &response.body else { return response };
        let (status, body) = (response.status, ResponseBody::Whole(body.to_vec()));
        let headers =
            response.headers.into_iter().filter(|(name, _)| ["Retry-After", "Proxy-Status"].contains(name));
        let memory = gateway.rendering.memory();
        self.render(gateway, AnsweredRequest { status, headers: headers.collect(), body, memory }).await
    }
}

impl ResponsePageRequest {
    async fn render(self, rendering: &RenderLimits, answered: AnsweredRequest) -> Response {
        let vary = response_vary(&self.address.query);
        let AnsweredRequest { status, mut headers, body, memory } = answered;
        let length = match &body {
            ResponseBody::Whole(body) | ResponseBody::BrokenOff(body) => body.len(),
            ResponseBody::NotShown(_) => 0,
        };
        let retry_after = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
        let retry_after_secs = retry_after.and_then(|(_, secs)| secs.parse().ok());
        let status = match &body {
            // Programs must not take the page for the whole response.
            ResponseBody::BrokenOff(_) => 502,
            ResponseBody::NotShown(NoResponseReason::Busy) => {
                headers.push(("Retry-After", BUSY_SECS.to_string()));
                503
            }
            _ => status,
        };
        if status != 200 {
            headers.retain(|(name, _)| *name != "Cache-Control");
            headers.push(("Cache-Control", "no-store".to_owned()));
        }
        let render = move || {
            let _held = memory;
            self.html(status, &body, retry_after_secs)
        };
        let page = match rendering.run(length, render).await {
            Ok(html) => Response::new(status, "text/html; charset=UTF-8", html),
            Err(RenderingFailed) => Response::text(500, plain::NOT_RENDERED),
        };
        let page = headers.into_iter().fold(page, |page, (name, value)| page.with(name, value));
        page.with("Content-Security-Policy", CONTENT_SECURITY_POLICY.to_owned())
            .with("Referrer-Policy", "strict-origin-when-cross-origin".to_owned())
            .with("Vary", vary.to_owned())
            .compressible()
    }

    fn html(&self, status: u16, body: &ResponseBody, retry_after_secs: Option<u64>) -> String {
        let show = |response: ShownResponse<'_>| {
            let page = ResponsePage {
                site: &self.gateway.site,
                address: &self.address,
                request: self.request.as_ref(),
                repository: self.repository.as_deref(),
                has_record_pages: self.has_record_pages,
                response,
            };
            page.render()
        };
        match body {
            ResponseBody::Whole(body) if status == 200 => match OaiPage::read(body) {
                Ok(page) => show(ShownResponse::Whole(&page)),
                Err(_) => show(ShownResponse::NotShown(NoResponseReason::Unreadable)),
            },
            ResponseBody::Whole(body) => {
                let text = String::from_utf8_lossy(body);
                show(ShownResponse::Failed { text: &text, retry_after_secs })
            }
            ResponseBody::BrokenOff(body) => show(ShownResponse::BrokenOff(&OaiPage::read_start(body))),
            ResponseBody::NotShown(reason) => show(ShownResponse::NotShown(*reason)),
        }
    }
}
