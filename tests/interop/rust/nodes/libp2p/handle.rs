//! The user's side of the notification protocol.

use super::notify::Step;
use crate::events::{NotifyEvent, Refused};
use futures::channel::mpsc::UnboundedSender;
use libp2p_identity::PeerId;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use tokio::sync::mpsc;

/// To one peer, while the notification stream is open.
#[derive(Clone)]
pub struct Sink {
    pub waits: mpsc::Sender<Vec<u8>>,
    pub at_once: mpsc::Sender<Vec<u8>>,
}

impl Sink {
    /// Waits for room.
    pub async fn send(&self, bytes: Vec<u8>) -> Result<(), Refused> {
        self.waits.send(bytes).await.map_err(|_| Refused::Closed)
    }
}

pub enum Told {
    Event(NotifyEvent),
    Opened(NotifyEvent, PeerId, Sink),
}

/// The user's side.
pub struct Notify {
    events: mpsc::Receiver<Told>,
    steps: UnboundedSender<Step>,
    sinks: HashMap<PeerId, Sink>,
    handshake: Arc<RwLock<Vec<u8>>>,
}

impl Notify {
    pub fn new(
        events: mpsc::Receiver<Told>,
        steps: UnboundedSender<Step>,
        handshake: Arc<RwLock<Vec<u8>>>,
    ) -> Self {
        Notify {
            events,
            steps,
            sinks: HashMap::new(),
            handshake,
        }
    }

    pub async fn next(&mut self) -> Option<NotifyEvent> {
        Some(match self.events.recv().await? {
            Told::Opened(event, peer, sink) => {
                self.sinks.insert(peer, sink);
                event
            }
            Told::Event(event) => {
                if let NotifyEvent::Closed { peer, .. } = &event {
                    self.sinks.remove(peer);
                }
                event
            }
        })
    }

    pub async fn open(&mut self, peer: PeerId) -> crate::Result<()> {
        if self.sinks.contains_key(&peer) {
            return Err("open already".into());
        }
        let _ = self.steps.unbounded_send(Step::Open(peer));
        Ok(())
    }

    pub async fn close(&mut self, peer: PeerId) {
        let _ = self.steps.unbounded_send(Step::Close(peer));
    }

    pub fn answer(&mut self, peer: PeerId, accept: bool) {
        let _ = self.steps.unbounded_send(Step::Answer(peer, accept));
    }

    pub fn set_handshake(&mut self, handshake: Vec<u8>) {
        *self.handshake.write().expect("no panic while it is held") = handshake;
    }

    pub fn sink(&self, peer: PeerId) -> Option<Sink> {
        self.sinks.get(&peer).cloned()
    }

    /// Does not wait.
    pub fn try_send(&mut self, peer: PeerId, bytes: Vec<u8>) -> Result<(), Refused> {
        let sink = self.sinks.get(&peer).ok_or(Refused::Closed)?;
        sink.at_once.try_send(bytes).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => Refused::Clogged,
            mpsc::error::TrySendError::Closed(_) => Refused::Closed,
        })
    }
}
