//! A node of rust-libp2p: a swarm with `libp2p-request-response`, and litep2p's notification protocol on its substreams.

mod codec;
mod frame;
mod handle;
mod notify;
mod run;
mod silent;
mod streams;

use crate::events::{word, AskEvent, LinkEvent};
use crate::options::{self, Options};
use crate::Result;
use codec::{Codec, Message};
use futures::channel::mpsc::{unbounded, UnboundedReceiver, UnboundedSender};
use futures::StreamExt;
use libp2p_core::multiaddr::{Multiaddr, Protocol};
use libp2p_core::upgrade::Version;
use libp2p_core::{ConnectedPoint, Transport};
use libp2p_identity::Keypair;
use libp2p_request_response as rr;
use libp2p_swarm::behaviour::toggle::Toggle;
use libp2p_swarm::dial_opts::DialOpts;
use libp2p_swarm::{DialError, NetworkBehaviour, StreamProtocol, Swarm, SwarmEvent};
use notify::Step;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

pub use handle::{Notify, Sink};
pub use libp2p_identity::PeerId;

pub type Bytes = Vec<u8>;
pub type InboundId = rr::InboundRequestId;
pub type OutboundId = u64;

pub const ALWAYS_RESETS: bool = false;
pub const CANCELS: bool = false;

/// Requests, or answers, that wait for the user.
const EVENTS: usize = 4096;
/// Requests of either direction on a connection, where the user does not say.
const STREAMS: usize = 1024;

pub struct Node {
    pub id: PeerId,
    pub listening: Vec<SocketAddr>,
    pub links: UnboundedReceiver<LinkEvent>,
    pub control: Control,
    pub notifies: Vec<Notify>,
    pub asks: Vec<Ask>,
}

/// What the swarm's task is to do.
pub enum Order {
    Know(PeerId, Multiaddr),
    Dial(PeerId, Multiaddr),
    Disconnect(PeerId),
    Open(PeerId, usize),
    Ask(PeerId, OutboundId, Vec<u8>, bool),
    Respond(InboundId, Vec<u8>, bool),
    Reject(InboundId),
}

#[derive(Clone)]
pub struct Control(UnboundedSender<Order>);

impl Control {
    /// Before whatever is ordered next.
    pub async fn know(&self, addr: SocketAddr, peer: PeerId) {
        let _ = self.0.unbounded_send(Order::Know(peer, multiaddr(addr)));
    }

    pub fn dial(&self, addr: SocketAddr, peer: PeerId) {
        let _ = self.0.unbounded_send(Order::Dial(peer, multiaddr(addr)));
    }

    pub fn disconnect(&self, peer: PeerId) {
        let _ = self.0.unbounded_send(Order::Disconnect(peer));
    }
}

fn multiaddr(addr: SocketAddr) -> Multiaddr {
    Multiaddr::from(addr.ip()).with(Protocol::Tcp(addr.port()))
}

fn host_port(addr: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = addr.iter();
    match (parts.next()?, parts.next()?) {
        (Protocol::Ip4(ip), Protocol::Tcp(port)) => Some((IpAddr::V4(ip), port).into()),
        (Protocol::Ip6(ip), Protocol::Tcp(port)) => Some((IpAddr::V6(ip), port).into()),
        _ => None,
    }
}

#[derive(NetworkBehaviour)]
#[behaviour(prelude = "libp2p_swarm::derive_prelude")]
struct Behaviour {
    streams: streams::Behaviour,
    requests: Toggle<rr::Behaviour<Codec>>,
}

fn key(options: &Options) -> Result<Keypair> {
    let secret = match options.secret() {
        Some(secret) => secret,
        None => {
            let mut secret = [0; 32];
            File::open("/dev/urandom")?.read_exact(&mut secret)?;
            secret
        }
    };
    Ok(Keypair::ed25519_from_bytes(secret)?)
}

fn requests(protocol: &options::Request) -> rr::Behaviour<Codec> {
    let names = protocol.names.iter().map(|name| {
        let name = StreamProtocol::try_from_owned(name.clone()).expect("a name begins with /");
        (name, rr::ProtocolSupport::Full)
    });
    let codec = Codec {
        max_size: protocol.max_size,
    };
    let config = rr::Config::default()
        .with_request_timeout(protocol.timeout)
        .with_max_concurrent_streams(protocol.inbound.unwrap_or(STREAMS));
    rr::Behaviour::with_codec(codec, names, config)
}

fn swarm(options: &Options, sets: streams::Sets) -> Result<Swarm<Behaviour>> {
    let key = key(options)?;
    let version = if options.lazy {
        Version::V1Lazy
    } else {
        Version::V1
    };
    let tcp = libp2p_tcp::Config::default().nodelay(true);
    let transport = libp2p_tcp::tokio::Transport::new(tcp)
        .upgrade(version)
        .authenticate(libp2p_noise::Config::new(&key)?)
        .multiplex(libp2p_yamux::Config::default())
        .timeout(Duration::from_secs(10))
        .boxed();
    let behaviour = Behaviour {
        streams: streams::Behaviour::new(sets),
        requests: options.requests.first().map(requests).into(),
    };
    let config = libp2p_swarm::Config::with_tokio_executor()
        .with_substream_upgrade_protocol_override(version)
        .with_idle_connection_timeout(options.idle);
    Ok(Swarm::new(
        transport,
        behaviour,
        key.public().to_peer_id(),
        config,
    ))
}

pub async fn start(options: &Options) -> Result<Node> {
    if let Some(step) = &options.silent {
        silent::run(step, options, key(options)?).await?;
    }
    if options.requests.len() > 1 {
        return Err("one request-response protocol is all that this node can have".into());
    }
    let names = options.notifications.iter();
    let sets = Arc::new(names.map(|protocol| protocol.names.clone()).collect());
    let mut swarm = swarm(options, sets)?;
    let mut listening = Vec::new();
    if let Some(addr) = options.listen {
        swarm.listen_on(multiaddr(addr))?;
        while listening.is_empty() {
            if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
                listening.extend(host_port(&address));
            }
        }
    }
    let (orders, taken) = unbounded();
    let (tell, links) = unbounded();
    let (answers, answered) = mpsc::channel(EVENTS);
    let (steps, notifies) = options
        .notifications
        .iter()
        .enumerate()
        .map(|(set, protocol)| notify::start(set, protocol, orders.clone()))
        .unzip();
    let ask = Ask {
        events: answered,
        orders: orders.clone(),
        next: 0,
    };
    let node = Node {
        id: *swarm.local_peer_id(),
        listening,
        links,
        control: Control(orders),
        notifies,
        asks: options.requests.first().map(|_| ask).into_iter().collect(),
    };
    let task = Task {
        swarm,
        tell,
        steps,
        answers,
        main: options.requests.first().map(|p| p.names[0].clone()),
        known: HashMap::new(),
        channels: HashMap::new(),
        ids: HashMap::new(),
    };
    tokio::spawn(task.run(taken));
    Ok(node)
}

/// The swarm and what it belongs to.
struct Task {
    swarm: Swarm<Behaviour>,
    tell: UnboundedSender<LinkEvent>,
    steps: Vec<UnboundedSender<Step>>,
    answers: mpsc::Sender<AskEvent>,
    /// The main name of the request-response protocol.
    main: Option<String>,
    known: HashMap<PeerId, Vec<Multiaddr>>,
    channels: HashMap<InboundId, rr::ResponseChannel<Message>>,
    ids: HashMap<rr::OutboundRequestId, OutboundId>,
}

impl Task {
    async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        loop {
            futures::select! {
                event = self.swarm.select_next_some() => self.event(event).await,
                order = orders.next() => match order {
                    Some(order) => self.obey(order).await,
                    None => return,
                },
            }
        }
    }

    fn dial(
        &mut self,
        peer: PeerId,
        addresses: Vec<Multiaddr>,
    ) -> std::result::Result<(), DialError> {
        let options = DialOpts::peer_id(peer)
            .addresses(addresses)
            .allocate_new_port()
            .build();
        self.swarm.dial(options)
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Know(peer, addr) => self.known.entry(peer).or_default().push(addr),
            Order::Dial(peer, addr) => {
                self.known.entry(peer).or_default().push(addr.clone());
                if let Err(e) = self.dial(peer, vec![addr]) {
                    self.dial_failed(Some(peer), &e);
                }
            }
            Order::Disconnect(peer) => {
                let _ = self.swarm.disconnect_peer_id(peer);
            }
            Order::Open(peer, set) => {
                self.swarm.behaviour_mut().streams.open(peer, set);
                if !self.swarm.is_connected(&peer) {
                    let addresses = self.known.get(&peer).cloned().unwrap_or_default();
                    match self.dial(peer, addresses) {
                        Ok(()) | Err(DialError::DialPeerConditionFalse(_)) => {}
                        Err(_) => self.swarm.behaviour_mut().streams.give_up(peer),
                    }
                }
            }
            Order::Ask(peer, id, bytes, dial) => {
                if !dial && !self.swarm.is_connected(&peer) {
                    let reason = "not-connected".into();
                    let _ = self.answers.send(AskEvent::Failed { id, reason }).await;
                    return;
                }
                let addresses = self.known.get(&peer).cloned().unwrap_or_default();
                let message = Message {
                    name: String::new(),
                    bytes,
                    reset: false,
                };
                if let Some(requests) = self.swarm.behaviour_mut().requests.as_mut() {
                    let theirs = requests.send_request_with_addresses(&peer, message, addresses);
                    self.ids.insert(theirs, id);
                }
            }
            Order::Respond(id, bytes, reset) => {
                let message = Message {
                    name: String::new(),
                    bytes,
                    reset,
                };
                if let Some(channel) = self.channels.remove(&id) {
                    if let Some(requests) = self.swarm.behaviour_mut().requests.as_mut() {
                        let _ = requests.send_response(channel, message);
                    }
                }
            }
            Order::Reject(id) => {
                self.channels.remove(&id);
            }
        }
    }

    async fn event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Streams((peer, told))) => match told {
                streams::Told::Inbound(set, name, stream) => {
                    let _ = self.steps[set].unbounded_send(Step::Inbound(peer, name, stream));
                }
                streams::Told::Outbound(set, opened) => {
                    let _ = self.steps[set].unbounded_send(Step::Outbound(peer, opened));
                }
            },
            SwarmEvent::Behaviour(BehaviourEvent::Requests(event)) => self.answer(event).await,
            SwarmEvent::ConnectionEstablished {
                peer_id,
                endpoint,
                num_established,
                ..
            } if num_established.get() == 1 => {
                let (outbound, address) = match &endpoint {
                    ConnectedPoint::Dialer { address, .. } => (true, address),
                    ConnectedPoint::Listener { send_back_addr, .. } => (false, send_back_addr),
                };
                let _ = self.tell.unbounded_send(LinkEvent::Connected {
                    peer: peer_id,
                    outbound,
                    address: host_port(address).map_or("-".into(), |addr| addr.to_string()),
                });
            }
            SwarmEvent::ConnectionClosed {
                peer_id,
                num_established: 0,
                cause,
                ..
            } => {
                for steps in &self.steps {
                    let _ = steps.unbounded_send(Step::Gone(peer_id));
                }
                let reason = cause.map_or("-".into(), |cause| word(&cause.to_string()));
                let _ = self.tell.unbounded_send(LinkEvent::Disconnected {
                    peer: peer_id,
                    reason,
                });
            }
            SwarmEvent::OutgoingConnectionError { peer_id, error, .. } => {
                self.dial_failed(peer_id, &error)
            }
            _ => {}
        }
    }

    fn dial_failed(&self, peer: Option<PeerId>, error: &DialError) {
        let text = word(&error.to_string());
        let reason = if text.contains("Timeout") {
            "timeout".into()
        } else {
            text
        };
        let _ = self
            .tell
            .unbounded_send(LinkEvent::DialFailed { peer, reason });
    }

    fn fallback(&self, name: String) -> Option<String> {
        (self.main.as_ref() != Some(&name)).then_some(name)
    }

    async fn answer(&mut self, event: rr::Event<Message, Message>) {
        let event = match event {
            rr::Event::Message {
                peer,
                message:
                    rr::Message::Request {
                        request_id,
                        request,
                        channel,
                    },
                ..
            } => {
                self.channels.insert(request_id, channel);
                AskEvent::Asked {
                    peer,
                    fallback: self.fallback(request.name),
                    id: request_id,
                    bytes: request.bytes,
                }
            }
            rr::Event::Message {
                message:
                    rr::Message::Response {
                        request_id,
                        response,
                    },
                ..
            } => match self.ids.remove(&request_id) {
                Some(id) => AskEvent::Answered {
                    fallback: self.fallback(response.name),
                    id,
                    bytes: response.bytes,
                },
                None => return,
            },
            rr::Event::OutboundFailure {
                request_id, error, ..
            } => match self.ids.remove(&request_id) {
                Some(id) => AskEvent::Failed {
                    id,
                    reason: reason(error),
                },
                None => return,
            },
            rr::Event::InboundFailure { request_id, .. } => {
                self.channels.remove(&request_id);
                return;
            }
            rr::Event::ResponseSent { .. } => return,
        };
        let _ = self.answers.send(event).await;
    }
}

fn reason(error: rr::OutboundFailure) -> String {
    match error {
        rr::OutboundFailure::DialFailure => "dial-failed".into(),
        rr::OutboundFailure::Timeout => "timeout".into(),
        rr::OutboundFailure::ConnectionClosed => "connection-closed".into(),
        rr::OutboundFailure::UnsupportedProtocols => "unsupported".into(),
        rr::OutboundFailure::Io(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            "rejected".into()
        }
        rr::OutboundFailure::Io(e) if e.to_string().starts_with("too large") => "too-large".into(),
        rr::OutboundFailure::Io(e) => word(&format!("io:{e}")),
    }
}

/// The request-response protocol.
pub struct Ask {
    events: mpsc::Receiver<AskEvent>,
    orders: UnboundedSender<Order>,
    next: OutboundId,
}

impl Ask {
    pub async fn next(&mut self) -> Option<AskEvent> {
        self.events.recv().await
    }

    pub async fn ask(&mut self, peer: PeerId, bytes: Vec<u8>, dial: bool) -> Result<OutboundId> {
        self.next += 1;
        self.orders
            .unbounded_send(Order::Ask(peer, self.next, bytes, dial))?;
        Ok(self.next)
    }

    pub fn respond(&mut self, id: InboundId, bytes: Vec<u8>, reset: bool) {
        let _ = self.orders.unbounded_send(Order::Respond(id, bytes, reset));
    }

    pub fn reject(&mut self, id: InboundId) {
        let _ = self.orders.unbounded_send(Order::Reject(id));
    }

    /// There is no such thing.
    pub async fn cancel(&mut self, _: OutboundId) {}
}
