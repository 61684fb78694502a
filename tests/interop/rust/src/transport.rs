//! The transport of a node: TCP, plaintext or Noise, and a multiplexer, each agreed on by multistream-select.

use crate::link::{Facts, Link};
use crate::muxer::mplex_config;
use crate::serve::{attend, Server};
use crate::{bench, Args, Cannot, Result};
use futures::future::{BoxFuture, Either};
use futures::{AsyncRead, AsyncWrite, FutureExt, StreamExt};
use libp2p_core::connection::Endpoint;
use libp2p_core::multiaddr::{Multiaddr, Protocol};
use libp2p_core::muxing::{StreamMuxer, StreamMuxerBox, StreamMuxerEvent, SubstreamBox};
use libp2p_core::transport::{Boxed, DialOpts, ListenerId, PortUse, TransportEvent};
use libp2p_core::upgrade::{
    InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo, Version,
};
use libp2p_core::Transport;
use libp2p_identity::{Keypair, PeerId};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{error, io};

const YAMUX: &str = "/yamux/1.0.0";
const MPLEX: &str = "/mplex/6.7.0";
const NOISE: &str = "/noise";

/// What the command line says of a node.
pub struct Options {
    security: &'static str,
    muxers: Vec<&'static str>,
    lazy: bool,
    negotiate: bool,
    expect: Option<PeerId>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            security: "/plaintext/2.0.0",
            muxers: vec![YAMUX, MPLEX],
            lazy: false,
            negotiate: false,
            expect: None,
        }
    }
}

impl Options {
    /// Whether the word is one of ours; then its value is taken from the words behind it.
    pub fn take(&mut self, word: &str, words: &mut impl Iterator<Item = String>) -> Result<bool> {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word {
            "--security" => self.security = value()?.leak(),
            "--muxers" => {
                self.muxers = value()?
                    .split(',')
                    .map(|name| match name {
                        "yamux" => Ok(YAMUX),
                        "mplex" => Ok(MPLEX),
                        _ => Err(format!("no multiplexer {name}")),
                    })
                    .collect::<std::result::Result<_, _>>()?
            }
            "--lazy" => self.lazy = true,
            "--negotiate" => self.negotiate = true,
            "--expect" => self.expect = Some(value()?.parse()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn version(&self) -> Version {
        if self.lazy {
            Version::V1Lazy
        } else {
            Version::V1
        }
    }

    fn facts(&self, peer: PeerId, muxer: &'static str) -> Facts {
        Facts {
            own: key().public().to_peer_id().to_string(),
            peer: peer.to_string(),
            muxer,
            negotiate: self.negotiate.then(|| self.version()),
        }
    }
}

/// The same in every run.
fn key() -> Keypair {
    Keypair::ed25519_from_bytes([7; 32]).expect("any 32 bytes are a key")
}

/// Noise, or plaintext under a name that the other side may not have.
#[derive(Clone)]
struct Security(&'static str);

impl UpgradeInfo for Security {
    type Info = &'static str;
    type InfoIter = std::iter::Once<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        std::iter::once(self.0)
    }
}

type Secured<C> = Either<libp2p_noise::Output<C>, libp2p_plaintext::Output<C>>;

fn noise() -> io::Result<libp2p_noise::Config> {
    libp2p_noise::Config::new(&key()).map_err(io::Error::other)
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<C> for Security {
    type Output = (PeerId, Secured<C>);
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_inbound(self, socket: C, name: Self::Info) -> Self::Future {
        async move {
            if name == NOISE {
                let (id, io) = noise()?
                    .upgrade_inbound(socket, name)
                    .await
                    .map_err(io::Error::other)?;
                return Ok((id, Either::Left(io)));
            }
            let plaintext = libp2p_plaintext::Config::new(&key());
            let (id, io) = plaintext
                .upgrade_inbound(socket, name)
                .await
                .map_err(io::Error::other)?;
            Ok((id, Either::Right(io)))
        }
        .boxed()
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<C> for Security {
    type Output = (PeerId, Secured<C>);
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Output>>;

    fn upgrade_outbound(self, socket: C, name: Self::Info) -> Self::Future {
        async move {
            if name == NOISE {
                let (id, io) = noise()?
                    .upgrade_outbound(socket, name)
                    .await
                    .map_err(io::Error::other)?;
                return Ok((id, Either::Left(io)));
            }
            let plaintext = libp2p_plaintext::Config::new(&key());
            let (id, io) = plaintext
                .upgrade_outbound(socket, name)
                .await
                .map_err(io::Error::other)?;
            Ok((id, Either::Right(io)))
        }
        .boxed()
    }
}

/// A multiplexer that knows its name.
struct Named {
    name: &'static str,
    muxer: StreamMuxerBox,
}

impl StreamMuxer for Named {
    type Substream = SubstreamBox;
    type Error = io::Error;

    fn poll_inbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<SubstreamBox>> {
        Pin::new(&mut self.muxer).poll_inbound(cx)
    }

    fn poll_outbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<SubstreamBox>> {
        Pin::new(&mut self.muxer).poll_outbound(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.muxer).poll_close(cx)
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<StreamMuxerEvent>> {
        Pin::new(&mut self.muxer).poll(cx)
    }
}

/// The multiplexers of the command line, in its order.
#[derive(Clone)]
struct Muxers(Args);

impl UpgradeInfo for Muxers {
    type Info = &'static str;
    type InfoIter = std::vec::IntoIter<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.node.muxers.clone().into_iter()
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<C> for Muxers {
    type Output = Named;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Named>>;

    fn upgrade_inbound(self, socket: C, name: Self::Info) -> Self::Future {
        async move {
            let muxer = if name == YAMUX {
                let config = libp2p_yamux::Config::default();
                StreamMuxerBox::new(config.upgrade_inbound(socket, name).await?)
            } else {
                StreamMuxerBox::new(mplex_config(self.0).upgrade_inbound(socket, name).await?)
            };
            Ok(Named { name, muxer })
        }
        .boxed()
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<C> for Muxers {
    type Output = Named;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Named>>;

    fn upgrade_outbound(self, socket: C, name: Self::Info) -> Self::Future {
        async move {
            let muxer = if name == YAMUX {
                let config = libp2p_yamux::Config::default();
                StreamMuxerBox::new(config.upgrade_outbound(socket, name).await?)
            } else {
                StreamMuxerBox::new(mplex_config(self.0).upgrade_outbound(socket, name).await?)
            };
            Ok(Named { name, muxer })
        }
        .boxed()
    }
}

fn transport(args: Args) -> Boxed<(PeerId, Named)> {
    let security = Security(args.node.security);
    let upgraded = libp2p_tcp::tokio::Transport::new(libp2p_tcp::Config::default())
        .upgrade(args.node.version())
        .authenticate(security)
        .multiplex(Muxers(args))
        .timeout(Duration::from_secs(10));
    Transport::boxed(upgraded)
}

/// "HOST:PORT" as the library writes it.
fn multiaddr(addr: &str) -> Result<Multiaddr> {
    let addr: SocketAddr = addr.parse()?;
    Ok(Multiaddr::from(addr.ip()).with(Protocol::Tcp(addr.port())))
}

fn host_port(addr: &Multiaddr) -> Result<SocketAddr> {
    match addr.iter().collect::<Vec<_>>().as_slice() {
        [Protocol::Ip4(ip), Protocol::Tcp(port)] => Ok((IpAddr::V4(*ip), *port).into()),
        _ => Err(format!("strange address {addr}").into()),
    }
}

/// An error with what it came from.
fn whole(e: &(dyn error::Error + 'static)) -> String {
    let mut text = e.to_string();
    let mut next = e.source();
    while let Some(e) = next {
        let more = e.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        next = e.source();
    }
    text
}

/// Connects, upgrades, and opens no stream yet.
pub async fn connect(addr: &str, args: Args) -> Result<Link> {
    let options = DialOpts {
        role: Endpoint::Dialer,
        port_use: PortUse::New,
    };
    let dialing = transport(args).dial(multiaddr(addr)?, options)?;
    let (peer, named) = dialing.await.map_err(|e| format!("dial: {}", whole(&e)))?;
    if let Some(expected) = args.node.expect.filter(|id| *id != peer) {
        return Err(format!("dial: the peer is {peer}, not {expected}").into());
    }
    let facts = args.node.facts(peer, named.name);
    Ok(Link::over(named.muxer, facts).0)
}

/// Prints our id behind the address, and how the upgrade of each connection went.
pub async fn serve(addr: &str, args: Args, server: Arc<Server>) -> Result<()> {
    let mut transport = transport(args);
    transport.listen_on(ListenerId::next(), multiaddr(addr)?)?;
    loop {
        match transport.select_next_some().await {
            TransportEvent::NewAddress { listen_addr, .. } => {
                println!("listening {}", host_port(&listen_addr)?);
                println!("id {}", key().public().to_peer_id());
            }
            TransportEvent::Incoming { upgrade, .. } => {
                let server = server.clone();
                tokio::spawn(async move {
                    match upgrade.await {
                        Ok((peer, named)) => {
                            println!("agreed {peer} {}", named.name);
                            let facts = args.node.facts(peer, named.name);
                            let (link, inbound) = Link::over(named.muxer, facts);
                            attend(link, inbound, server).await;
                        }
                        Err(e) => println!("failed {}", whole(&e)),
                    }
                });
            }
            TransportEvent::ListenerError { error, .. } => return Err(error.into()),
            TransportEvent::ListenerClosed { reason, .. } => return Ok(reason?),
            TransportEvent::AddressExpired { .. } => {}
        }
    }
}

pub async fn pair(_: Args, _: bench::Pair) -> Result<()> {
    Err(Cannot("a node is no benchmark").into())
}
