//! The listener with TLS: handshakes, and the certificate, which is read again when its files change.
//!
//! pingora is built without TLS. The connection limiter starts TLS itself, so that a connection is counted before its
//! handshake, and the handshake has a time limit. The library is rustls, as for sources: TLS 1.2 and 1.3.

use crate::serve::telemetry::Telemetry;
use async_trait::async_trait;
use oaimend_base::certificate::{CertificateFiles, CurrentCertificate, Refreshed, ring};
use oaimend_base::clock;
use oaimend_base::error::Error;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The protocols that clients can choose, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [H2, b"http/1.1"];
const H2: &[u8] = b"h2";
/// Time between two warnings about a certificate that expires.
const WARNING_INTERVAL: Duration = Duration::from_secs(86_400);

/// The listener with TLS.
#[derive(Clone)]
pub(crate) struct TlsListener {
    address: SocketAddr,
    certificate: Arc<CurrentCertificate>,
    acceptor: TlsAcceptor,
}

/// The result of [`TlsListener::start`].
pub(crate) enum Started {
    /// The connection with TLS.
    Tls(Stream),
    /// The connection of a client that sends something else than TLS.
    NoTls(Stream),
    /// The handshake failed.
    Failed(String),
    /// The client sent nothing, or has left.
    Gone,
}

impl TlsListener {
    /// A listener at this address with the certificate of these files.
    ///
    /// # Errors
    ///
    /// The files cannot be used.
    pub(crate) fn new(address: SocketAddr, files: &CertificateFiles) -> Result<Self, Error> {
        let unusable = |message: String| Error::State { path: files.certificate.clone(), message };
        let certificate = CurrentCertificate::load(files).map_err(|fault| unusable(files.explain(&fault)))?;
        let certificate = Arc::new(certificate);
        let resolver = Arc::new(ServerCertificate(Arc::clone(&certificate)));
        let config =
            ServerConfig::builder_with_provider(Arc::new(ring())).with_safe_default_protocol_versions();
        let config = config.map_err(|error| unusable(error.to_string()))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self { address, certificate, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// The address of the listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a connection with this address of its own was accepted here. The kernel allows only one listener for each
    /// address and port.
    pub(crate) fn has_accepted(&self, local: Option<SocketAddr>) -> bool {
        let Some(local) = local else { return false };
        let (listener, ip) = (self.address.ip(), local.ip());
        let is_any = listener.is_unspecified() && listener.is_ipv4() == ip.is_ipv4();
        local.port() == self.address.port() && (listener == ip || is_any)
    }

    /// Makes the handshake within `time_max`.
    pub(crate) async fn start(&self, stream: Stream, time_max: Duration) -> Started {
        match timeout(time_max, self.handshake(stream)).await {
            Ok(started) => started,
            Err(_) => Started::Failed("the handshake was not complete in time".to_owned()),
        }
    }

    async fn handshake(&self, mut stream: Stream) -> Started {
        let mut first = [0];
        match stream.try_peek(&mut first).await {
            // TLS begins with a control character (RFC 8446, 5.1), and HTTP with the letter of a method.
            Ok(true) if first[0].is_ascii_alphabetic() => return Started::NoTls(stream),
            Ok(_) => {}
            Err(_) => return Started::Gone,
        }
        match self.acceptor.accept(stream).await {
            Ok(stream) => Started::Tls(Box::new(TlsStream(stream))),
            Err(error) => Started::Failed(error.to_string()),
        }
    }

    /// The end of the certificate that new handshakes use; `None` if it is not known.
    pub(crate) fn certificate_expires(&self) -> Option<SystemTime> {
        self.certificate.current().expires
    }

    /// What is necessary to watch the certificate.
    pub(crate) fn watch(&self) -> CertificateWatch {
        CertificateWatch {
            address: self.address,
            certificate: Arc::clone(&self.certificate),
            warned_at: None,
        }
    }
}

impl std::fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsListener").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The certificate that new handshakes use.
#[derive(Debug)]
struct ServerCertificate(Arc<CurrentCertificate>);

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current().certified)
    }
}

/// Watches the files of the certificate and its end.
pub(crate) struct CertificateWatch {
    address: SocketAddr,
    certificate: Arc<CurrentCertificate>,
    /// When the end was last logged.
    warned_at: Option<Duration>,
}

impl CertificateWatch {
    /// Reads the files again if they have changed; returns whether they are unchanged. Open connections continue.
    pub(crate) fn refresh(&mut self, telemetry: &Telemetry) -> bool {
        let refreshed = self.certificate.refresh();
        match &refreshed {
            Refreshed::Unchanged => {}
            Refreshed::Changed => {
                self.warned_at = None;
                let expires = self.certificate.current().expires.map(clock::utc_datetime);
                tracing::info!(expires, "certificate of listen_tls read again");
            }
            Refreshed::Kept(why) => tracing::error!(
                "the previous certificate of listen_tls stays in effect: {why}; replace both files by a pair that \
                 belongs together"
            ),
        }
        self.report_expiry(telemetry);
        refreshed == Refreshed::Unchanged
    }

    /// Sets the metric, and logs a warning if the end is near, once a day.
    pub(crate) fn report_expiry(&mut self, telemetry: &Telemetry) {
        let current = self.certificate.current();
        if let Some(expires) = current.expires {
            telemetry.set_tls_expiry(self.address, clock::secs(expires));
        }
        let now = clock::uptime();
        if self.warned_at.is_some_and(|warned_at| now.saturating_sub(warned_at) < WARNING_INTERVAL) {
            return;
        }
        if let Some(warning) = current.expiry_warning(clock::now()) {
            self.warned_at = Some(now);
            tracing::warn!("listen_tls: {warning}");
        }
    }
}

/// A connection with TLS.
#[derive(Debug)]
struct TlsStream(tokio_rustls::server::TlsStream<Stream>);

impl TlsStream {
    fn socket(&self) -> &Stream {
        self.0.get_ref().0
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for TlsStream {
    async fn shutdown(&mut self) {
        // The connection ends; ignore.
        let _ = self.0.shutdown().await;
    }
}

impl UniqueID for TlsStream {
    fn id(&self) -> UniqueIDType {
        self.socket().id()
    }
}

impl Ssl for TlsStream {
    fn selected_alpn_proto(&self) -> Option<ALPN> {
        let protocol = self.0.get_ref().1.alpn_protocol()?;
        Some(if protocol == H2 { ALPN::H2 } else { ALPN::H1 })
    }
}

impl Peek for TlsStream {}

impl GetTimingDigest for TlsStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.socket().get_timing_digest()
    }
}

impl GetProxyDigest for TlsStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.socket().get_proxy_digest()
    }
}

impl GetSocketDigest for TlsStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.socket().get_socket_digest()
    }
}
