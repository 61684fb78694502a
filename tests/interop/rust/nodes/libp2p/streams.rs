//! A behaviour that hands out substreams once their name is agreed on.  It is what `libp2p-stream` does, with more than one
//! name to a substream, as fallbacks are on the wire of litep2p: proposed one after the other on the same substream.

use futures::future::{ready, Ready};
use libp2p_core::transport::PortUse;
use libp2p_core::upgrade::{InboundUpgrade, OutboundUpgrade, UpgradeInfo};
use libp2p_core::{Endpoint, Multiaddr};
use libp2p_identity::PeerId;
use libp2p_swarm::behaviour::{ConnectionClosed, ConnectionEstablished, DialFailure};
use libp2p_swarm::handler::{ConnectionEvent, DialUpgradeError};
use libp2p_swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, NotifyHandler, Stream, StreamUpgradeError, SubstreamProtocol, ToSwarm,
};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// As litep2p has it.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// The names of each protocol, the main one first.
pub type Sets = Arc<Vec<Vec<String>>>;

/// Proposed in this order.
#[derive(Clone)]
pub struct Names(Vec<String>);

impl UpgradeInfo for Names {
    type Info = String;
    type InfoIter = std::vec::IntoIter<String>;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.clone().into_iter()
    }
}

impl InboundUpgrade<Stream> for Names {
    type Output = (String, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_inbound(self, stream: Stream, name: String) -> Self::Future {
        ready(Ok((name, stream)))
    }
}

impl OutboundUpgrade<Stream> for Names {
    type Output = (String, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_outbound(self, stream: Stream, name: String) -> Self::Future {
        ready(Ok((name, stream)))
    }
}

/// The name that was agreed on and the substream, or why there is none.
pub type Opened = Result<(String, Stream), String>;

/// Of a protocol, by its place in `Sets`.
#[derive(Debug)]
pub enum Told {
    Inbound(usize, String, Stream),
    Outbound(usize, Opened),
}

pub struct Handler {
    sets: Sets,
    /// Protocols of which a substream is to be opened.
    wanted: VecDeque<usize>,
    told: VecDeque<Told>,
}

impl ConnectionHandler for Handler {
    type FromBehaviour = usize;
    type ToBehaviour = Told;
    type InboundProtocol = Names;
    type OutboundProtocol = Names;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = usize;

    fn listen_protocol(&self) -> SubstreamProtocol<Names> {
        SubstreamProtocol::new(Names(self.sets.concat()), ()).with_timeout(OPEN_TIMEOUT)
    }

    fn on_behaviour_event(&mut self, set: usize) {
        self.wanted.push_back(set)
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ConnectionHandlerEvent<Names, usize, Told>> {
        if let Some(told) = self.told.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(told));
        }
        match self.wanted.pop_front() {
            Some(set) => Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest {
                protocol: SubstreamProtocol::new(Names(self.sets[set].clone()), set)
                    .with_timeout(OPEN_TIMEOUT),
            }),
            None => Poll::Pending, // polled again after every call
        }
    }

    fn on_connection_event(&mut self, event: ConnectionEvent<Names, Names, (), usize>) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(done) => {
                let (name, stream) = done.protocol;
                let set = self.sets.iter().position(|names| names.contains(&name));
                let set = set.expect("only our names are agreed on");
                self.told.push_back(Told::Inbound(set, name, stream));
            }
            ConnectionEvent::FullyNegotiatedOutbound(done) => {
                self.told
                    .push_back(Told::Outbound(done.info, Ok(done.protocol)));
            }
            ConnectionEvent::DialUpgradeError(DialUpgradeError { info, error }) => {
                let reason = match error {
                    StreamUpgradeError::Timeout => "timeout".into(),
                    StreamUpgradeError::NegotiationFailed => "unsupported".into(),
                    StreamUpgradeError::Io(e) => crate::events::word(&format!("open:{e}")),
                    StreamUpgradeError::Apply(never) => match never {},
                };
                self.told.push_back(Told::Outbound(info, Err(reason)));
            }
            _ => {}
        }
    }
}

pub struct Behaviour {
    sets: Sets,
    connected: HashMap<PeerId, usize>,
    /// Until the peer is connected.
    waiting: HashMap<PeerId, Vec<usize>>,
    queue: VecDeque<ToSwarm<(PeerId, Told), usize>>,
}

impl Behaviour {
    pub fn new(sets: Sets) -> Self {
        Behaviour {
            sets,
            connected: HashMap::new(),
            waiting: HashMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// Opens a substream, now or when the peer is connected.
    pub fn open(&mut self, peer: PeerId, set: usize) {
        if self.connected.contains_key(&peer) {
            self.notify(peer, set);
        } else {
            self.waiting.entry(peer).or_default().push(set);
        }
    }

    fn notify(&mut self, peer_id: PeerId, set: usize) {
        self.queue.push_back(ToSwarm::NotifyHandler {
            peer_id,
            handler: NotifyHandler::Any,
            event: set,
        });
    }

    /// The peer could not be dialed.
    pub fn give_up(&mut self, peer: PeerId) {
        for set in self.waiting.remove(&peer).unwrap_or_default() {
            let told = Told::Outbound(set, Err("dial-failed".into()));
            self.queue.push_back(ToSwarm::GenerateEvent((peer, told)));
        }
    }

    fn handler(&self) -> Handler {
        Handler {
            sets: self.sets.clone(),
            wanted: VecDeque::new(),
            told: VecDeque::new(),
        }
    }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = Handler;
    type ToSwarm = (PeerId, Told);

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<Handler, ConnectionDenied> {
        Ok(self.handler())
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<Handler, ConnectionDenied> {
        Ok(self.handler())
    }

    fn on_swarm_event(&mut self, event: FromSwarm) {
        match event {
            FromSwarm::ConnectionEstablished(ConnectionEstablished { peer_id, .. }) => {
                *self.connected.entry(peer_id).or_default() += 1;
                for set in self.waiting.remove(&peer_id).unwrap_or_default() {
                    self.notify(peer_id, set);
                }
            }
            FromSwarm::ConnectionClosed(ConnectionClosed {
                peer_id,
                remaining_established: left,
                ..
            }) => {
                if left == 0 {
                    self.connected.remove(&peer_id);
                } else {
                    self.connected.insert(peer_id, left);
                }
            }
            FromSwarm::DialFailure(DialFailure {
                peer_id: Some(peer),
                ..
            }) if !self.connected.contains_key(&peer) => self.give_up(peer),
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, peer: PeerId, _: ConnectionId, told: Told) {
        self.queue.push_back(ToSwarm::GenerateEvent((peer, told)))
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<(PeerId, Told), usize>> {
        match self.queue.pop_front() {
            Some(event) => Poll::Ready(event),
            None => Poll::Pending,
        }
    }
}
