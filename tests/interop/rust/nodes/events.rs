//! What a library tells of its connections and protocols, in words that all have in common.

use crate::backend::{Bytes, InboundId, OutboundId, PeerId};

pub enum LinkEvent {
    Connected {
        peer: PeerId,
        outbound: bool,
        address: String,
    },
    Disconnected {
        peer: PeerId,
        reason: String,
    },
    DialFailed {
        peer: Option<PeerId>,
        reason: String,
    },
}

pub enum NotifyEvent {
    /// The peer wants to send: `Notify::answer`.
    Validate {
        peer: PeerId,
        fallback: Option<String>,
        handshake: Vec<u8>,
    },
    Opened {
        peer: PeerId,
        fallback: Option<String>,
        outbound: bool,
        handshake: Vec<u8>,
    },
    OpenFailed {
        peer: PeerId,
        reason: String,
    },
    Closed {
        peer: PeerId,
        reason: String,
    },
    Received {
        peer: PeerId,
        bytes: Bytes,
    },
}

pub enum AskEvent {
    Asked {
        peer: PeerId,
        fallback: Option<String>,
        id: InboundId,
        bytes: Vec<u8>,
    },
    Answered {
        fallback: Option<String>,
        id: OutboundId,
        bytes: Vec<u8>,
    },
    Failed {
        id: OutboundId,
        reason: String,
    },
}

/// Why a notification was not taken at once.
pub enum Refused {
    Clogged,
    Closed,
}

/// Text that is one word of an event.
pub fn word(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join("_")
}
