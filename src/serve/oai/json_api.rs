//! Requests to the JSON API, which other repositories and the search answer.

use super::headers::joined;
use super::request_context::RequestContext;
use super::service::{Prepared, ProxyService, RequestedRepository};
use super::target::Target;
use crate::serve::api::request::{ApiRead, OwnRequest};
use crate::serve::api::{repositories, search};
use crate::serve::pages::CollectedPage;
use crate::serve::response::Response;
use crate::serve::telemetry::labels::RequestOutcome;
use http::header;
use pingora_proxy::Session;

/// The kind of these requests in the log and in metrics.
const API: &str = "api";

impl ProxyService {
    /// The repository and the request to it, for a request to the API.
    pub(super) async fn prepare_api(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
        target: Target,
        read: ApiRead,
    ) -> Prepared {
        context.page = Some(API);
        context.repository = Some(target.repository.name().to_owned());
        if !session.as_downstream_mut().is_body_done() {
            // Do not wait for an unread body.
            session.set_keepalive(None);
        }
        if let Some(page) = self.refuse(&joined(session.req_header(), header::VIA)) {
            context.outcome = Some(RequestOutcome::Refused);
            session.set_keepalive(None);
            return Err(page);
        }
        let ApiRead { request, page, repository: _ } = read;
        let limit = page.limit;
        context.page_request = Some(CollectedPage::Api(Box::new(page)));
        let Target { repository, base_url, .. } = target;
        let requested = RequestedRepository { repository, base_url };
        let (repository, mut request) = self.open_request(session, context, requested, request).await?;
        // Other clients share the responses of sources.
        if context.is_of_mirror {
            request.harvester.page_items_max = Some(limit);
        }
        Ok((repository, request))
    }

    /// The response to a request to the API that no repository answers.
    pub(super) async fn api_page(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
        request: OwnRequest,
    ) -> Response {
        context.page = Some(API);
        if !session.as_downstream_mut().is_body_done() {
            // Do not wait for an unread body.
            session.set_keepalive(None);
        }
        let head = session.req_header();
        if let Some(page) = self.refuse(&joined(head, header::VIA)) {
            session.set_keepalive(None);
            return page;
        }
        let (served, gateway) = (&self.0.served, &self.0.gateway);
        match request {
            OwnRequest::Response(page) => page,
            OwnRequest::Repositories { limit, after } => {
                repositories::list(served, limit, after.as_deref(), &head.headers)
            }
            OwnRequest::Search { parameters, offset } => {
                search::answer(served, gateway, &parameters, offset, &head.headers).await
            }
        }
    }
}
