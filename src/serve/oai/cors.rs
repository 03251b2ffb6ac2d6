//! Allows scripts of other sites to read responses (CORS), if the configuration does.
//!
//! Harvesters in browsers send plain GET requests, which need no preflight request. The module adds headers to all
//! responses, and the router answers preflight requests.

use crate::config::CorsOrigins;
use crate::serve::pages::gateway::Gateway;
use async_trait::async_trait;
use http::{HeaderValue, header};
use pingora_core::modules::http::{HttpModule, HttpModuleBuilder, Module};
use pingora_error::Result;
use pingora_http::{RequestHeader, ResponseHeader};
use std::any::Any;
use std::sync::Arc;

/// Creates the module for a request.
pub(super) struct CorsBuilder(pub(super) Arc<Gateway>);

impl HttpModuleBuilder for CorsBuilder {
    fn init(&self) -> Module {
        Box::new(CorsModule { gateway: Arc::clone(&self.0), origin: None })
    }
}

/// Adds the headers to the response to one request.
struct CorsModule {
    gateway: Arc<Gateway>,
    /// The origin of the request.
    origin: Option<HeaderValue>,
}

#[async_trait]
impl HttpModule for CorsModule {
    async fn request_header_filter(&mut self, request: &mut RequestHeader) -> Result<()> {
        self.origin = request.headers.get(header::ORIGIN).cloned();
        Ok(())
    }

    async fn response_header_filter(&mut self, head: &mut ResponseHeader, _end: bool) -> Result<()> {
        let gateway = self.gateway.current();
        let allowed = match &gateway.policy.cors_origins {
            CorsOrigins::Listed(origins) if origins.is_empty() => return Ok(()),
            CorsOrigins::Any => HeaderValue::from_static("*"),
            CorsOrigins::Listed(origins) => {
                // A shared cache must not give the response for one origin to another one.
                head.append_header(header::VARY, "Origin")?;
                match self.origin.take().filter(|origin| origins.iter().any(|listed| listed == origin)) {
                    Some(origin) => origin,
                    None => return Ok(()),
                }
            }
        };
        head.insert_header(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed)?;
        head.insert_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The headers that tell a harvester when to retry, and why, and a reader of pages what belongs to a record.
const EXPOSED: &str = "Cache-Status, ETag, Link, Proxy-Status, Retry-After";
