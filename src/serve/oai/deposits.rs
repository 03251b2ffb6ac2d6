//! The requests of writers of local repositories, and the bodies that they may send.

use super::headers::joined;
use super::request_query::{body_of, query_of};
use super::service::ProxyService;
use crate::config::Mapping;
use crate::serve::deposit::{DepositRequest, answer, answer_put_record, refuse_source, writer_of};
use crate::serve::response::Response;
use http::header;
use pingora_error::Result;
use pingora_proxy::Session;
use std::sync::Arc;
use std::time::SystemTime;

/// Longest form of a byte in a form: `%3C`.
const ENCODED_BYTES: usize = 3;

impl ProxyService {
    /// The arguments of a request. Writers of a local repository may send a record.
    pub(super) async fn query(
        &self,
        session: &mut Session,
        is_form: bool,
        local: Option<&Arc<Mapping>>,
    ) -> Result<std::result::Result<Vec<u8>, Response>> {
        let connections = &self.0.clients.current().connections;
        let is_writer = |mapping: &&Arc<Mapping>| {
            writer_of(&self.0.served, mapping.id(), &session.req_header().headers).is_ok()
        };
        match local.filter(is_writer) {
            Some(mapping) if is_form => {
                let _body = self.0.served.deposit.body_permit().await;
                let bytes_max = connections.form_bytes_max
                    + ENCODED_BYTES * mapping.source.limits.repair.record_bytes_max;
                query_of(session, is_form, (bytes_max, " (record_bytes_max)"), connections.request_timeout)
                    .await
            }
            _ => {
                let limit = (connections.form_bytes_max, " (form_bytes_max)");
                query_of(session, is_form, limit, connections.request_timeout).await
            }
        }
    }

    /// The response to PutRecord.
    pub(super) async fn put_record(
        &self,
        session: &Session,
        mapping: &Arc<Mapping>,
        query: &[u8],
        started: SystemTime,
    ) -> Response {
        let served = &self.0.served;
        match writer_of(served, mapping.id(), &session.req_header().headers) {
            Ok(writer) => answer_put_record(served, mapping, &writer, query, started).await,
            Err(page) => page,
        }
    }

    /// The response to a request of a writer. The token is checked before the body is read.
    pub(super) async fn deposit(&self, session: &mut Session, request: &DepositRequest) -> Result<Response> {
        let served = &self.0.served;
        let head = session.req_header();
        let writer = if request.kind.writes() {
            Some(writer_of(served, request.mapping.id(), &head.headers))
        } else {
            None
        };
        let refused = self.refuse(&joined(head, header::VIA));
        let is_of_source = request.mapping.local.is_none().then(|| refuse_source(&request.mapping));
        let writer = match (refused.or(is_of_source), writer.transpose()) {
            (Some(page), _) | (None, Err(page)) => {
                // Do not wait for an unread body.
                session.set_keepalive(None);
                return Ok(page);
            }
            (None, Ok(writer)) => writer,
        };
        // Those who only read send no body, and do not hold writers up.
        let _body = if request.kind.writes() { served.deposit.body_permit().await } else { None };
        let timeout = self.0.clients.current().connections.request_timeout;
        match body_of(session, request.body_bytes_max(), timeout).await? {
            Ok(body) => {
                let headers = &session.req_header().headers;
                Ok(answer(served, request, writer.as_ref(), headers, &body).await)
            }
            Err(page) => {
                session.set_keepalive(None);
                Ok(page)
            }
        }
    }
}
