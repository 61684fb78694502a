//! A node of litep2p.  What its handles say and take is passed on, nothing is copied.

use crate::events::{word, AskEvent, LinkEvent, NotifyEvent, Refused};
use crate::options::{self, Options};
use crate::Result;
use futures::channel::mpsc::{unbounded, UnboundedReceiver, UnboundedSender};
use futures::channel::oneshot;
use futures::{FutureExt, StreamExt};
use litep2p::codec::ProtocolCodec;
use litep2p::config::ConfigBuilder;
use litep2p::crypto::ed25519::{Keypair, SecretKey};
use litep2p::protocol::notification::{
    self, Direction, NotificationError, NotificationEvent, NotificationHandle, NotificationSink,
    ValidationResult,
};
use litep2p::protocol::request_response::{
    self, DialOptions, RejectReason, RequestResponseError, RequestResponseEvent,
    RequestResponseHandle,
};
use litep2p::protocol::{TransportService, UserProtocol};
use litep2p::transport::{tcp, Endpoint};
use litep2p::types::multiaddr::{Multiaddr, Protocol};
use litep2p::types::protocol::ProtocolName;
use litep2p::types::RequestId;
use litep2p::{Litep2p, Litep2pEvent};
use std::net::{IpAddr, SocketAddr};

pub use bytes::BytesMut as Bytes;
pub use litep2p::PeerId;

pub type InboundId = RequestId;
pub type OutboundId = RequestId;

/// A responder drops its substream without closing it whatever it is told: that is a reset.
pub const ALWAYS_RESETS: bool = true;
pub const CANCELS: bool = true;

pub struct Node {
    pub id: PeerId,
    pub listening: Vec<SocketAddr>,
    pub links: UnboundedReceiver<LinkEvent>,
    pub control: Control,
    pub notifies: Vec<Notify>,
    pub asks: Vec<Ask>,
}

enum Command {
    Know(PeerId, Multiaddr, oneshot::Sender<()>),
    Dial(PeerId, Multiaddr),
}

#[derive(Clone)]
pub struct Control {
    commands: UnboundedSender<Command>,
    closes: UnboundedSender<PeerId>,
}

impl Control {
    /// Until that is done: what comes next may take another way.
    pub async fn know(&self, addr: SocketAddr, peer: PeerId) {
        let (done, wait) = oneshot::channel();
        let command = Command::Know(peer, with_id(addr, peer), done);
        let _ = self.commands.unbounded_send(command);
        let _ = wait.await;
    }

    pub fn dial(&self, addr: SocketAddr, peer: PeerId) {
        let _ = self
            .commands
            .unbounded_send(Command::Dial(peer, with_id(addr, peer)));
    }

    pub fn disconnect(&self, peer: PeerId) {
        let _ = self.closes.unbounded_send(peer);
    }
}

fn multiaddr(addr: SocketAddr) -> Multiaddr {
    Multiaddr::from(addr.ip()).with(Protocol::Tcp(addr.port()))
}

fn with_id(addr: SocketAddr, peer: PeerId) -> Multiaddr {
    multiaddr(addr).with(Protocol::P2p(peer.into()))
}

fn host_port(addr: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = addr.iter();
    match (parts.next()?, parts.next()?) {
        (Protocol::Ip4(ip), Protocol::Tcp(port)) => Some((IpAddr::V4(ip), port).into()),
        (Protocol::Ip6(ip), Protocol::Tcp(port)) => Some((IpAddr::V6(ip), port).into()),
        _ => None,
    }
}

fn names(names: &[String]) -> (ProtocolName, Vec<ProtocolName>) {
    let mut names = names.iter().map(|name| ProtocolName::from(name.clone()));
    (
        names.next().expect("a protocol has a name"),
        names.collect(),
    )
}

/// There for its service only, which is how a connection can be closed.
struct Closer(UnboundedReceiver<PeerId>);

#[async_trait::async_trait]
impl UserProtocol for Closer {
    fn protocol(&self) -> ProtocolName {
        ProtocolName::from("/reeve/closer/1")
    }

    fn codec(&self) -> ProtocolCodec {
        ProtocolCodec::UnsignedVarint(Some(1))
    }

    async fn run(mut self: Box<Self>, mut service: TransportService) -> litep2p::Result<()> {
        loop {
            futures::select! {
                event = service.next().fuse() => if event.is_none() {
                    return Ok(());
                },
                peer = self.0.next() => match peer {
                    Some(peer) => {
                        let _ = service.force_close(peer);
                    }
                    None => return Ok(()),
                },
            }
        }
    }
}

pub async fn start(options: &Options) -> Result<Node> {
    if options.silent.is_some() {
        return Err("libp2p-node is the one that can be silent".into());
    }
    let (closes, closer) = unbounded();
    let mut config = ConfigBuilder::new()
        .with_tcp(tcp::config::Config {
            listen_addresses: options.listen.iter().map(|addr| multiaddr(*addr)).collect(),
            nodelay: true,
            ..Default::default()
        })
        .with_keep_alive_timeout(options.idle)
        .with_user_protocol(Box::new(Closer(closer)));
    if let Some(mut secret) = options.secret() {
        config = config.with_keypair(Keypair::from(SecretKey::try_from_bytes(&mut secret)?));
    }
    let mut notifies = Vec::new();
    for protocol in &options.notifications {
        let (main, fallbacks) = names(&protocol.names);
        let (settings, handle) = notification::ConfigBuilder::new(main)
            .with_fallback_names(fallbacks)
            .with_handshake(protocol.handshake.clone())
            .with_max_size(protocol.max_size)
            .with_auto_accept_inbound(protocol.auto_accept)
            .with_sync_channel_size(protocol.sync_queue)
            .with_async_channel_size(protocol.async_queue)
            .build();
        config = config.with_notification_protocol(settings);
        notifies.push(Notify { handle });
    }
    let mut asks = Vec::new();
    for protocol in &options.requests {
        let (settings, ask) = Ask::new(protocol);
        config = config.with_request_response_protocol(settings);
        asks.push(ask);
    }
    let litep2p = Litep2p::new(config.build())?;
    let (commands, orders) = unbounded();
    let (tell, links) = unbounded();
    let node = Node {
        id: *litep2p.local_peer_id(),
        listening: litep2p.listen_addresses().filter_map(host_port).collect(),
        links,
        control: Control { commands, closes },
        notifies,
        asks,
    };
    tokio::spawn(run(litep2p, orders, tell));
    Ok(node)
}

async fn run(
    mut litep2p: Litep2p,
    mut orders: UnboundedReceiver<Command>,
    tell: UnboundedSender<LinkEvent>,
) {
    loop {
        futures::select! {
            event = litep2p.next_event().fuse() => match event {
                Some(event) => {
                    let _ = tell.unbounded_send(link_event(event));
                }
                None => return,
            },
            order = orders.next() => match order {
                Some(Command::Know(peer, addr, done)) => {
                    litep2p.add_known_address(peer, std::iter::once(addr));
                    let _ = done.send(());
                }
                Some(Command::Dial(peer, addr)) => {
                    if let Err(e) = litep2p.dial_address(addr).await {
                        let _ = tell.unbounded_send(LinkEvent::DialFailed {
                            peer: Some(peer),
                            reason: word(&e.to_string()),
                        });
                    }
                }
                None => return,
            },
        }
    }
}

fn link_event(event: Litep2pEvent) -> LinkEvent {
    match event {
        Litep2pEvent::ConnectionEstablished { peer, endpoint } => LinkEvent::Connected {
            peer,
            outbound: matches!(endpoint, Endpoint::Dialer { .. }),
            address: host_port(endpoint.address()).map_or("-".into(), |addr| addr.to_string()),
        },
        Litep2pEvent::ConnectionClosed { peer, .. } => LinkEvent::Disconnected {
            peer,
            reason: "-".into(), // it gives none
        },
        Litep2pEvent::DialFailure { address, error } => failed(&address, error),
        Litep2pEvent::ListDialFailures { errors } => match errors.into_iter().next() {
            Some((address, error)) => failed(&address, error),
            None => LinkEvent::DialFailed {
                peer: None,
                reason: "-".into(),
            },
        },
    }
}

fn failed(address: &Multiaddr, error: litep2p::error::DialError) -> LinkEvent {
    LinkEvent::DialFailed {
        peer: PeerId::try_from_multiaddr(address),
        reason: match error {
            litep2p::error::DialError::Timeout => "timeout".into(),
            error => word(&error.to_string()),
        },
    }
}

/// A notification protocol.
pub struct Notify {
    handle: NotificationHandle,
}

/// To one peer, while the notification stream is open.
#[derive(Clone)]
pub struct Sink(NotificationSink);

impl Sink {
    /// Waits for room.
    pub async fn send(&self, bytes: Vec<u8>) -> std::result::Result<(), Refused> {
        self.0
            .send_async_notification(bytes)
            .await
            .map_err(|_| Refused::Closed)
    }
}

impl Notify {
    pub async fn next(&mut self) -> Option<NotifyEvent> {
        Some(match self.handle.next().await? {
            NotificationEvent::NotificationReceived { peer, notification } => {
                NotifyEvent::Received {
                    peer,
                    bytes: notification,
                }
            }
            NotificationEvent::ValidateSubstream {
                fallback,
                peer,
                handshake,
                ..
            } => NotifyEvent::Validate {
                peer,
                fallback: fallback.map(|name| name.to_string()),
                handshake,
            },
            NotificationEvent::NotificationStreamOpened {
                fallback,
                direction,
                peer,
                handshake,
                ..
            } => NotifyEvent::Opened {
                peer,
                fallback: fallback.map(|name| name.to_string()),
                outbound: direction == Direction::Outbound,
                handshake,
            },
            NotificationEvent::NotificationStreamClosed { peer } => NotifyEvent::Closed {
                peer,
                reason: "-".into(), // it gives none
            },
            NotificationEvent::NotificationStreamOpenFailure { peer, error } => {
                NotifyEvent::OpenFailed {
                    peer,
                    reason: match error {
                        NotificationError::Rejected => "rejected",
                        NotificationError::NoConnection => "no-connection",
                        NotificationError::ChannelClogged => "clogged",
                        NotificationError::ValidationPending => "validation-pending",
                        NotificationError::DialFailure => "dial-failed",
                        NotificationError::EssentialTaskClosed => "protocol-gone",
                    }
                    .into(),
                }
            }
        })
    }

    pub async fn open(&mut self, peer: PeerId) -> Result<()> {
        Ok(self.handle.open_substream(peer).await?)
    }

    pub async fn close(&mut self, peer: PeerId) {
        self.handle.close_substream(peer).await
    }

    pub fn answer(&mut self, peer: PeerId, accept: bool) {
        let result = if accept {
            ValidationResult::Accept
        } else {
            ValidationResult::Reject
        };
        self.handle.send_validation_result(peer, result)
    }

    pub fn set_handshake(&mut self, handshake: Vec<u8>) {
        self.handle.set_handshake(handshake)
    }

    pub fn sink(&self, peer: PeerId) -> Option<Sink> {
        self.handle.notification_sink(peer).map(Sink)
    }

    /// Does not wait.  The handle's call, which closes the connection when the queue is full.
    pub fn try_send(&mut self, peer: PeerId, bytes: Vec<u8>) -> std::result::Result<(), Refused> {
        if self.handle.notification_sink(peer).is_none() {
            return Err(Refused::Closed); // the call would say that all is well
        }
        match self.handle.send_sync_notification(peer, bytes) {
            Ok(()) => Ok(()),
            Err(NotificationError::ChannelClogged) => Err(Refused::Clogged),
            Err(_) => Err(Refused::Closed),
        }
    }
}

/// A request-response protocol.
pub struct Ask {
    handle: RequestResponseHandle,
}

impl Ask {
    fn new(protocol: &options::Request) -> (request_response::Config, Ask) {
        let (main, fallbacks) = names(&protocol.names);
        let mut builder = request_response::ConfigBuilder::new(main)
            .with_fallback_names(fallbacks)
            .with_max_size(protocol.max_size)
            .with_timeout(protocol.timeout);
        if let Some(most) = protocol.inbound {
            builder = builder.with_max_concurrent_inbound_requests(most);
        }
        let (settings, handle) = builder.build();
        (settings, Ask { handle })
    }

    pub async fn next(&mut self) -> Option<AskEvent> {
        Some(match self.handle.next().await? {
            RequestResponseEvent::RequestReceived {
                peer,
                fallback,
                request_id,
                request,
            } => AskEvent::Asked {
                peer,
                fallback: fallback.map(|name| name.to_string()),
                id: request_id,
                bytes: request,
            },
            RequestResponseEvent::ResponseReceived {
                request_id,
                fallback,
                response,
                ..
            } => AskEvent::Answered {
                fallback: fallback.map(|name| name.to_string()),
                id: request_id,
                bytes: response,
            },
            RequestResponseEvent::RequestFailed {
                request_id, error, ..
            } => AskEvent::Failed {
                id: request_id,
                reason: reason(error),
            },
        })
    }

    pub async fn ask(&mut self, peer: PeerId, bytes: Vec<u8>, dial: bool) -> Result<OutboundId> {
        let options = if dial {
            DialOptions::Dial
        } else {
            DialOptions::Reject
        };
        Ok(self.handle.send_request(peer, bytes, options).await?)
    }

    /// Drops its substream when the response has been handed over, whether that is asked for or not.
    pub fn respond(&mut self, id: InboundId, bytes: Vec<u8>, _reset: bool) {
        self.handle.send_response(id, bytes)
    }

    pub fn reject(&mut self, id: InboundId) {
        self.handle.reject_request(id)
    }

    pub async fn cancel(&mut self, id: OutboundId) {
        self.handle.cancel_request(id).await
    }
}

fn reason(error: RequestResponseError) -> String {
    match error {
        RequestResponseError::Rejected(RejectReason::SubstreamClosed) => "rejected".into(),
        RequestResponseError::Rejected(RejectReason::ConnectionClosed) => {
            "connection-closed".into()
        }
        RequestResponseError::Rejected(RejectReason::DialFailed(_)) => "dial-failed".into(),
        RequestResponseError::Rejected(RejectReason::SubstreamOpenError(e)) => {
            let text = format!("{e:?}");
            if text.contains("Timeout") {
                "timeout".into()
            } else {
                format!("open:{}", word(&text))
            }
        }
        RequestResponseError::Canceled => "cancelled".into(),
        RequestResponseError::Timeout => "timeout".into(),
        RequestResponseError::NotConnected => "not-connected".into(),
        RequestResponseError::TooLargePayload => "too-large".into(),
        RequestResponseError::UnsupportedProtocol => "unsupported".into(),
    }
}
