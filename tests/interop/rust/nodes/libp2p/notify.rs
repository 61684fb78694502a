//! The notification protocol of litep2p over substreams of rust-libp2p, which has none: two substreams, each opened by the
//! side that sends on it; a handshake there and one back, then frames.

use super::frame;
use super::handle::{Notify, Sink, Told};
use super::streams::Opened;
use super::Order;
use crate::events::NotifyEvent;
use crate::options::Notification;
use futures::channel::mpsc::{unbounded, UnboundedReceiver, UnboundedSender};
use futures::io::{AsyncWriteExt, BufReader};
use futures::StreamExt;
use libp2p_identity::PeerId;
use libp2p_swarm::Stream;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Of a handshake on a substream.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Until the peer that accepted us opens its own substream.
const ITS_TURN: Duration = Duration::from_secs(5);
/// Events that wait for the user, of all peers.
const EVENTS: usize = 4096;

type Buffered = BufReader<Stream>;

/// What the protocol's task is told.
pub enum Step {
    // By the swarm.
    Inbound(PeerId, String, Stream),
    Outbound(PeerId, Opened),
    Gone(PeerId),
    // By the user.
    Open(PeerId),
    Close(PeerId),
    Answer(PeerId, bool),
    // By what it started, which may belong to an attempt that is over.
    Shaken(PeerId, u64, io::Result<(String, Stream, Vec<u8>)>),
    Heard(PeerId, u64, io::Result<(String, Buffered, Vec<u8>)>),
    Replied(PeerId, u64, io::Result<Buffered>),
    Late(PeerId, u64),
    Ended(PeerId, u64, String),
}

enum Outbound {
    None,
    /// Being opened, or the handshakes are under way.
    Opening,
    Open(Stream, Vec<u8>),
}

enum Inbound {
    None,
    Reading,
    Validating(Buffered),
    Replying,
    Open(Buffered),
}

/// A peer that is not closed.
struct Peer {
    attempt: u64,
    we_began: bool,
    accepted: bool,
    /// Of the substream that says most of it: ours where we began.
    name: String,
    outbound: Outbound,
    inbound: Inbound,
    /// Ends what runs on open substreams.
    running: Option<[oneshot::Sender<()>; 2]>,
}

struct Protocol {
    set: usize,
    options: Notification,
    handshake: Arc<RwLock<Vec<u8>>>,
    orders: UnboundedSender<Order>,
    events: mpsc::Sender<Told>,
    steps: UnboundedSender<Step>,
    peers: HashMap<PeerId, Peer>,
    attempts: u64,
}

/// Starts the task of a protocol: whom the swarm tells, and the user's side.
pub fn start(
    set: usize,
    options: &Notification,
    orders: UnboundedSender<Order>,
) -> (UnboundedSender<Step>, Notify) {
    let (steps, taken) = unbounded();
    let (events, told) = mpsc::channel(EVENTS);
    let handshake = Arc::new(RwLock::new(options.handshake.clone()));
    let protocol = Protocol {
        set,
        options: options.clone(),
        handshake: handshake.clone(),
        orders,
        events,
        steps: steps.clone(),
        peers: HashMap::new(),
        attempts: 0,
    };
    tokio::spawn(protocol.run(taken));
    (steps.clone(), Notify::new(told, steps, handshake))
}

async fn within<T>(work: impl std::future::Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(HANDSHAKE, work)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::TimedOut => "timeout".into(),
        io::ErrorKind::UnexpectedEof => "rejected".into(),
        _ => crate::events::word(&e.to_string()),
    }
}

impl Protocol {
    async fn run(mut self, mut taken: UnboundedReceiver<Step>) {
        while let Some(step) = taken.next().await {
            match step {
                Step::Open(peer) => self.open(peer),
                Step::Close(peer) => self.close(peer, "closed-here").await,
                Step::Gone(peer) => self.close(peer, "connection-closed").await,
                Step::Answer(peer, accept) => self.answer(peer, accept).await,
                Step::Inbound(peer, name, stream) => self.inbound(peer, name, stream),
                Step::Outbound(peer, opened) => self.outbound(peer, opened).await,
                Step::Shaken(peer, attempt, result) => {
                    if self.current(peer, attempt) {
                        self.shaken(peer, result).await
                    }
                }
                Step::Heard(peer, attempt, result) => {
                    if self.current(peer, attempt) {
                        self.heard(peer, result).await
                    }
                }
                Step::Replied(peer, attempt, result) => {
                    if self.current(peer, attempt) {
                        self.replied(peer, result).await
                    }
                }
                Step::Late(peer, attempt) => {
                    let late = |peer: &Peer| matches!(peer.inbound, Inbound::None);
                    if self.current(peer, attempt) && self.peers.get(&peer).is_some_and(late) {
                        self.fail(peer, "rejected".into()).await
                    }
                }
                Step::Ended(peer, attempt, reason) => {
                    if self.current(peer, attempt) {
                        self.close(peer, &reason).await
                    }
                }
            }
        }
    }

    fn current(&self, peer: PeerId, attempt: u64) -> bool {
        self.peers
            .get(&peer)
            .is_some_and(|peer| peer.attempt == attempt)
    }

    async fn tell(&mut self, event: NotifyEvent) {
        let _ = self.events.send(Told::Event(event)).await;
    }

    fn begin(&mut self, peer: PeerId, we_began: bool) {
        self.attempts += 1;
        let begun = Peer {
            attempt: self.attempts,
            we_began,
            accepted: false,
            name: String::new(),
            outbound: Outbound::None,
            inbound: Inbound::None,
            running: None,
        };
        self.peers.insert(peer, begun);
    }

    fn open(&mut self, peer: PeerId) {
        if !self.peers.contains_key(&peer) {
            self.begin(peer, true);
        }
        let state = self.peers.get_mut(&peer).expect("it is there now");
        if matches!(state.outbound, Outbound::None) {
            state.we_began = true;
            state.outbound = Outbound::Opening;
            let _ = self.orders.unbounded_send(Order::Open(peer, self.set));
        }
    }

    /// Ends it in any state, and says so where the user knows of it.
    async fn close(&mut self, peer: PeerId, reason: &str) {
        let open = self
            .peers
            .get(&peer)
            .is_some_and(|peer| peer.running.is_some());
        if !open {
            return self.fail(peer, "rejected".into()).await;
        }
        self.peers.remove(&peer); // ends the tasks, which close their substreams
        self.tell(NotifyEvent::Closed {
            peer,
            reason: reason.into(),
        })
        .await;
    }

    async fn fail(&mut self, peer: PeerId, reason: String) {
        let Some(mut state) = self.peers.remove(&peer) else {
            return;
        };
        if let Outbound::Open(stream, _) = &mut state.outbound {
            let _ = stream.close().await;
        }
        if let Inbound::Open(stream) | Inbound::Validating(stream) = &mut state.inbound {
            let _ = stream.close().await;
        }
        if state.we_began || state.accepted {
            self.tell(NotifyEvent::OpenFailed { peer, reason }).await;
        }
    }

    async fn outbound(&mut self, peer: PeerId, opened: Opened) {
        let opening = |peer: &Peer| matches!(peer.outbound, Outbound::Opening);
        if !self.peers.get(&peer).is_some_and(opening) {
            return; // nobody wants it any more
        }
        let (name, mut stream) = match opened {
            Ok(opened) => opened,
            Err(reason) => return self.fail(peer, reason).await,
        };
        let attempt = self.peers[&peer].attempt;
        let handshake = self
            .handshake
            .read()
            .expect("no panic while it is held")
            .clone();
        let (steps, most) = (self.steps.clone(), self.options.max_size);
        tokio::spawn(async move {
            let result = within(async {
                frame::write(&mut stream, &handshake, most).await?;
                stream.flush().await?;
                match frame::read(&mut stream, most).await? {
                    Some(theirs) => Ok((name, stream, theirs)),
                    None => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            });
            let _ = steps.unbounded_send(Step::Shaken(peer, attempt, result.await));
        });
    }

    async fn shaken(&mut self, peer: PeerId, result: io::Result<(String, Stream, Vec<u8>)>) {
        let (name, stream, theirs) = match result {
            Ok(done) => done,
            Err(e) => return self.fail(peer, reason(&e)).await,
        };
        let state = self.peers.get_mut(&peer).expect("it is current");
        state.outbound = Outbound::Open(stream, theirs);
        if state.we_began {
            state.name = name;
        }
        if matches!(state.inbound, Inbound::None) {
            let (steps, attempt) = (self.steps.clone(), state.attempt);
            tokio::spawn(async move {
                sleep(ITS_TURN).await;
                let _ = steps.unbounded_send(Step::Late(peer, attempt));
            });
        }
        self.complete(peer).await;
    }

    fn inbound(&mut self, peer: PeerId, name: String, stream: Stream) {
        if !self.peers.contains_key(&peer) {
            self.begin(peer, false);
        }
        let state = self.peers.get_mut(&peer).expect("it is there now");
        if !matches!(state.inbound, Inbound::None) {
            return; // one is enough: dropped
        }
        state.inbound = Inbound::Reading;
        let (steps, attempt, most) = (self.steps.clone(), state.attempt, self.options.max_size);
        tokio::spawn(async move {
            let mut stream = BufReader::with_capacity(16 * 1024, stream);
            let result = within(async {
                match frame::read(&mut stream, most).await? {
                    Some(theirs) => Ok((name, stream, theirs)),
                    None => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            });
            let _ = steps.unbounded_send(Step::Heard(peer, attempt, result.await));
        });
    }

    async fn heard(&mut self, peer: PeerId, result: io::Result<(String, Buffered, Vec<u8>)>) {
        let (name, stream, handshake) = match result {
            Ok(done) => done,
            Err(e) => return self.fail(peer, reason(&e)).await,
        };
        let fallback = self.fallback(&name);
        let state = self.peers.get_mut(&peer).expect("it is current");
        state.inbound = Inbound::Validating(stream);
        if !state.we_began {
            state.name = name;
        }
        if state.we_began && self.options.auto_accept {
            return self.answer(peer, true).await;
        }
        self.tell(NotifyEvent::Validate {
            peer,
            fallback,
            handshake,
        })
        .await;
    }

    async fn answer(&mut self, peer: PeerId, accept: bool) {
        let Some(state) = self.peers.get_mut(&peer) else {
            return;
        };
        let validating = std::mem::replace(&mut state.inbound, Inbound::Replying);
        let Inbound::Validating(mut stream) = validating else {
            state.inbound = validating;
            return;
        };
        if !accept {
            let _ = stream.close().await;
            state.inbound = Inbound::None;
            return self.fail(peer, "rejected".into()).await;
        }
        state.accepted = true;
        let handshake = self
            .handshake
            .read()
            .expect("no panic while it is held")
            .clone();
        let (steps, attempt, most) = (self.steps.clone(), state.attempt, self.options.max_size);
        tokio::spawn(async move {
            let result = within(async {
                frame::write(&mut stream, &handshake, most).await?;
                stream.flush().await?;
                Ok(stream)
            });
            let _ = steps.unbounded_send(Step::Replied(peer, attempt, result.await));
        });
        if matches!(state.outbound, Outbound::None) {
            state.outbound = Outbound::Opening;
            let _ = self.orders.unbounded_send(Order::Open(peer, self.set));
        }
    }

    async fn replied(&mut self, peer: PeerId, result: io::Result<Buffered>) {
        match result {
            Ok(stream) => {
                let state = self.peers.get_mut(&peer).expect("it is current");
                state.inbound = Inbound::Open(stream);
                self.complete(peer).await
            }
            Err(e) => self.fail(peer, reason(&e)).await,
        }
    }

    fn fallback(&self, name: &str) -> Option<String> {
        (name != self.options.names[0]).then(|| name.to_string())
    }

    /// Both substreams are open: it is, for the user.
    async fn complete(&mut self, peer: PeerId) {
        let state = self.peers.get_mut(&peer).expect("it is current");
        let outbound = std::mem::replace(&mut state.outbound, Outbound::Opening);
        let inbound = std::mem::replace(&mut state.inbound, Inbound::Replying);
        let (outbound, handshake, inbound) = match (outbound, inbound) {
            (Outbound::Open(outbound, handshake), Inbound::Open(inbound)) => {
                (outbound, handshake, inbound)
            }
            (outbound, inbound) => {
                state.outbound = outbound;
                state.inbound = inbound;
                return;
            }
        };
        let (waits, waiting) = mpsc::channel(self.options.async_queue);
        let (at_once, hurried) = mpsc::channel(self.options.sync_queue);
        let (stop_reader, reader_stops) = oneshot::channel();
        let (stop_writer, writer_stops) = oneshot::channel();
        state.running = Some([stop_reader, stop_writer]);
        let (attempt, we_began, name) = (state.attempt, state.we_began, state.name.clone());
        let event = NotifyEvent::Opened {
            peer,
            fallback: self.fallback(&name),
            outbound: we_began,
            handshake,
        };
        let told = Told::Opened(event, peer, Sink { waits, at_once });
        let _ = self.events.send(told).await;
        let most = self.options.max_size;
        let (steps, events) = (self.steps.clone(), self.events.clone());
        tokio::spawn(async move {
            let reason = super::run::read(inbound, peer, most, reader_stops, |peer, bytes| {
                let event = NotifyEvent::Received { peer, bytes };
                let events = &events;
                async move { events.send(Told::Event(event)).await.is_ok() }
            });
            let _ = steps.unbounded_send(Step::Ended(peer, attempt, reason.await));
        });
        let steps = self.steps.clone();
        tokio::spawn(async move {
            let reason = super::run::write(outbound, most, waiting, hurried, writer_stops);
            let _ = steps.unbounded_send(Step::Ended(peer, attempt, reason.await));
        });
    }
}
