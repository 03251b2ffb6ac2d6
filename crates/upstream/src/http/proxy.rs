//! The connection to a source, directly or through an HTTP proxy.
//!
//! The proxy gets https sources as a tunnel (`CONNECT`) and http sources as requests in absolute form. TLS is above this
//! file: a proxy never sees the content of an https exchange.

use crate::http::address::Reach;
use crate::settings::{ProxySetting, SourceMapping};
use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io};
use tokio::net::TcpStream;
use tower_service::Service;

/// Any error of a connection.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Which requests go through which proxy. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies(Option<Arc<Matcher>>);

/// A proxy that is not an HTTP proxy without TLS.
#[derive(Debug)]
pub(crate) struct Unsupported(String);

/// The proxy did not make the connection.
#[derive(Debug)]
pub(crate) struct ProxyFailed {
    proxy: String,
    cause: BoxError,
}

impl Proxies {
    /// The proxies of a mapping; those of the environment are read now.
    pub(crate) fn new(mapping: &SourceMapping) -> Self {
        Self(match &mapping.access.proxy {
            ProxySetting::Off => None,
            ProxySetting::Environment => Some(Arc::new(Matcher::from_env())),
            ProxySetting::Url(url) => Some(Arc::new(Matcher::builder().all(url.as_str()).build())),
        })
    }

    /// The proxy for requests to this address; `None`: there is none.
    pub(crate) fn find(&self, to: &Uri) -> Result<Option<Intercept>, Unsupported> {
        let found = self.0.as_ref().and_then(|matcher| matcher.intercept(to));
        match found {
            Some(proxy) if proxy.uri().scheme_str() != Some("http") => {
                Err(Unsupported(proxy.uri().to_string()))
            }
            found => Ok(found),
        }
    }

    /// User and password for the proxy, for requests that it reads itself: those to http sources.
    pub(crate) fn authorization(&self, to: &Uri) -> Option<HeaderValue> {
        if to.scheme_str() != Some("http") {
            return None;
        }
        self.find(to).ok().flatten()?.basic_auth().cloned()
    }
}

/// Makes the TCP connection to a source, or to its proxy.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// To the source itself, within its reach.
    pub(crate) direct: HttpConnector<Reach>,
    /// To a proxy. A person has configured it, so it may be private.
    pub(crate) to_proxy: HttpConnector<Reach>,
    pub(crate) proxies: Proxies,
}

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

impl Service<Uri> for Route {
    type Response = RoutedStream;
    type Error = BoxError;
    type Future = Connecting<RoutedStream>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Both connectors are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let proxy = match self.proxies.find(&to) {
            Ok(None) => {
                let connecting = self.direct.call(to);
                return Box::pin(async {
                    Ok(RoutedStream { stream: connecting.await?, is_forwarded: false })
                });
            }
            Ok(Some(proxy)) => proxy,
            Err(unsupported) => return Box::pin(async { Err(unsupported.into()) }),
        };
        let name = proxy.uri().authority().map(ToString::to_string).unwrap_or_default();
        let failed = |cause: BoxError| -> BoxError { ProxyFailed { proxy: name, cause }.into() };
        if to.scheme_str() == Some("https") {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy.clone());
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            let connecting = tunnel.call(to);
            return Box::pin(async {
                let stream = connecting.await.map_err(|error| failed(error.into()))?;
                Ok(RoutedStream { stream, is_forwarded: false })
            });
        }
        let connecting = self.to_proxy.call(proxy.uri().clone());
        Box::pin(async {
            let stream = connecting.await.map_err(|error| failed(error.into()))?;
            Ok(RoutedStream { stream, is_forwarded: true })
        })
    }
}

/// A TCP connection to a source or to its proxy.
#[derive(Debug)]
pub(crate) struct RoutedStream {
    stream: TokioIo<TcpStream>,
    /// Whether a proxy reads the requests, so that they need the absolute form.
    is_forwarded: bool,
}

impl Connection for RoutedStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_forwarded)
    }
}

impl Read for RoutedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for RoutedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl ProxyFailed {
    /// Host and port of the proxy.
    pub(crate) fn proxy(&self) -> &str {
        &self.proxy
    }
}

impl fmt::Display for ProxyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {} makes no connection: {}", self.proxy, self.cause)
    }
}

impl Error for ProxyFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment names the proxy {}, which is not an http:// proxy", self.0)
    }
}

impl Error for Unsupported {}
