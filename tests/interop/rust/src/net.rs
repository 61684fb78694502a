//! The library on a bare TCP socket: who dials, who listens, and both in one process.

use crate::bench::Pair;
use crate::link::{Link, Mode};
use crate::serve::{attend, Server};
use crate::{Args, Result, Transport, NAME};
use futures::io::{BufReader, BufWriter};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

/// A socket as the library wants it.
fn plain(tcp: TcpStream) -> Result<Compat<TcpStream>> {
    tcp.set_nodelay(true)?;
    Ok(tcp.compat())
}

/// Connects, and opens no stream yet.
pub async fn connect(addr: &str, args: Args) -> Result<Link> {
    let tcp = TcpStream::connect(addr).await?;
    Ok(Link::start(plain(tcp)?, args.role.unwrap_or(Mode::Client), args).0)
}

pub async fn serve(addr: &str, args: Args, server: Arc<Server>) -> Result<()> {
    let listener = TcpListener::bind(addr).await?;
    println!("listening {}", listener.local_addr()?);
    loop {
        let (tcp, _) = listener.accept().await?;
        if let Ok(socket) = plain(tcp) {
            let (link, inbound) = Link::start(socket, args.role.unwrap_or(Mode::Server), args);
            tokio::spawn(attend(link, inbound, server.clone()));
        }
    }
}

/// The crate makes two writes and two reads of a frame; with buffers small frames take a fourth less time.
fn buffered(tcp: TcpStream) -> Result<impl Transport> {
    const SIZE: usize = 64 * 1024;
    let writer = BufWriter::with_capacity(SIZE, plain(tcp)?);
    Ok(BufReader::with_capacity(SIZE, writer))
}

/// Both ends in this process over TCP loopback.
pub async fn pair(args: Args, what: Pair) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let tcp = TcpStream::connect(listener.local_addr()?).await?;
    let (peer, _) = listener.accept().await?;
    let (link, inbound) = Link::start(buffered(peer)?, Mode::Server, args);
    let server = tokio::spawn(attend(link, inbound, Server::new(args.chunk)));
    let (link, _) = Link::start(buffered(tcp)?, Mode::Client, args);
    let measured = what.measure(&link).await?;
    println!("{{\"peer\":\"{NAME}\",{measured}}}");
    link.close().await?;
    server.await?;
    Ok(())
}
