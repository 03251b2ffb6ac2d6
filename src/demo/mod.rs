//! A small, deliberately broken data provider for `oaimend demo`.
//!
//! Its pages are compiled in from corpus/demo, so that it works from any folder. It answers all six
//! verbs on loopback, in plain HTTP/1.1, with one thread per connection: enough for a demonstration
//! only.

mod http;
mod pages;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread;

pub use http::fetch;

/// Path of the base URL.
const PATH: &str = "/oai";

/// The running provider. Its thread ends with the process.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    address: SocketAddr,
}

impl Provider {
    /// Starts the provider on that port of 127.0.0.1, or on a free one if it is taken.
    ///
    /// # Errors
    ///
    /// No port is free.
    pub fn start(port: u16) -> io::Result<Self> {
        let listener = listen(port)?;
        let address = listener.local_addr()?;
        let provider = Self { address };
        let base_url = provider.base_url();
        thread::Builder::new().name("demo-provider".to_owned()).spawn(move || {
            http::serve(&listener, PATH, move |arguments| pages::answer(&base_url, arguments));
        })?;
        Ok(provider)
    }

    /// Its base URL.
    pub fn base_url(self) -> String {
        format!("http://{}{PATH}", self.address)
    }
}

/// A listener on that port of 127.0.0.1, or on a free one if it is taken.
///
/// # Errors
///
/// No port is free.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => {
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        }
        _ => Err(error),
    })
}
