//! The baseline of `benches/load`: a pingora proxy without a cache and without custom phases.
//!
//! Usage: `plain_pingora LISTEN SOURCE THREADS`, two addresses and a number.

use async_trait::async_trait;
use pingora_core::server::{RunArgs, Server, configuration::ServerConf};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::Result;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};
use std::net::SocketAddr;

struct Plain {
    source: SocketAddr,
}

#[async_trait]
impl ProxyHttp for Plain {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _session: &mut Session, _context: &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.source, false, String::new())))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, source, threads] = &arguments[..] else {
        return Err("usage: plain_pingora LISTEN SOURCE THREADS".into());
    };
    let conf = ServerConf {
        threads: threads.parse()?,
        // The pool is as large as the number of connections, so that requests reuse them.
        upstream_keepalive_pool_size: 1024,
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut proxy = http_proxy_service(&server.configuration, Plain { source: source.parse()? });
    proxy.add_tcp(listen);
    server.add_service(proxy);
    server.run(RunArgs::default());
    Ok(())
}
