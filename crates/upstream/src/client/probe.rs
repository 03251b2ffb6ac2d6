//! One exchange with a source, for `oaimend check`: without repairs, waits or retries. Address checks,
//! redirects and size limits are those of any other request.

use crate::client::source_client::SourceClient;
use crate::http::body::SourceBody;
use crate::http::deadline::Deadline;
use crate::http::decoding::Coding;
use crate::http::exchange::Exchange;
use crate::http::http_client::with_query;
use crate::http::redirects::{is_redirect, redirect_target};
use http::header::{self, HeaderName};
use oaimend_base::clock::Clock;
use oaimend_repository::{Failure, Reason};
use std::sync::Arc;
use std::time::Duration;

/// A whole response of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// The status of each redirect on the way.
    pub redirects: Vec<u16>,
    /// The status of the response.
    pub status: u16,
    /// The host of the first redirect to another host.
    pub other_host: Option<String>,
    /// The value of `Content-Type`.
    pub content_type: Option<String>,
    /// The value of `Retry-After`.
    pub retry_after: Option<String>,
    /// The value of `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// The names of the content codings that the body really had, the outermost first.
    pub codings: Vec<&'static str>,
    /// The body, its content coding taken off.
    pub body: Vec<u8>,
}

impl SourceClient {
    /// Sends a query as it is written, or as the form of a POST, and reads the whole response: at most
    /// `response_bytes_max` bytes, within `time_max`, after at most `redirects_max` redirects.
    ///
    /// # Errors
    ///
    /// There is no whole response; the failure says why.
    pub async fn probe(
        &self,
        query: &str,
        is_form: bool,
        time_max: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Result<Probed, Failure> {
        let limits = &self.mapping().limits;
        let mut budget = Deadline::new(Arc::clone(clock), time_max);
        let base_url = &self.mapping().base_url;
        let mut is_form = is_form;
        let mut url = if is_form { base_url.clone() } else { with_query(self.mapping(), query) };
        let mut probed = Probed::default();
        let response = loop {
            let form = is_form.then_some(query);
            let prepared = self.http().prepare(&url, form, probed.redirects.len())?;
            let sent = budget.within(self.http().step(), self.http().send(prepared, &url)).await;
            let response = sent.map_err(|late| self.http().timed_out(late, &url))??;
            let status = response.status().as_u16();
            if !is_redirect(status) {
                break response;
            }
            probed.redirects.push(status);
            if probed.redirects.len() > limits.redirects_max {
                let max = limits.redirects_max;
                let details = format!("{} redirects more than {max} times (redirects_max)", self.name());
                return Err(Failure::new(Reason::Redirect, details).after_status(status, None));
            }
            url = redirect_target(self.mapping(), &self.name(), &url, &response)?;
            let other = url.host_str().filter(|host| Some(*host) != base_url.host_str());
            probed.other_host = probed.other_host.or_else(|| other.map(str::to_owned));
            // The target of a redirect may contain the arguments in its query.
            is_form = is_form && status != 303 && url.query() == base_url.query();
        };
        let text = |name: HeaderName| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        probed.status = response.status().as_u16();
        probed.content_type = text(header::CONTENT_TYPE);
        probed.retry_after = text(header::RETRY_AFTER);
        probed.content_encoding = text(header::CONTENT_ENCODING);
        let exchange = Exchange::new(url, response, budget.now());
        let mut body = SourceBody::new(self.http(), self.mapping(), exchange);
        while let Some(piece) = body.next(&mut budget).await.map_err(|broken| broken.failure)? {
            probed.body.extend_from_slice(&piece);
        }
        probed.codings = body.codings().map(Coding::name).collect();
        Ok(probed)
    }
}
