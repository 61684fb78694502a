//! A notification protocol: its commands, and what is told of it.

use crate::backend::{Notify, Sink};
use crate::command::{direction, fail, say, Command};
use crate::events::{NotifyEvent, Refused};
use crate::options::{Notification, Validate};
use crate::pattern::{hex, message, unhex, Size, Tally, Words};
use crate::{PeerId, Result};
use futures::channel::mpsc::UnboundedReceiver;
use futures::{FutureExt, StreamExt};
use std::collections::HashMap;
use std::future::pending;
use std::time::Instant;

pub const COMMANDS: &[&str] = &[
    "open",
    "close",
    "send",
    "sync-send",
    "expect",
    "counts",
    "set-handshake",
    "validate",
    "answer",
    "pause",
    "resume",
];

/// What came of a peer, since `expect` or from the first.
struct Receipt {
    since: Instant,
    tally: Tally,
    /// How many, of which lengths, from which seed.
    expected: Option<(u64, Size, u64)>,
    /// The first message that is not as expected.
    differs: Option<u64>,
}

impl Default for Receipt {
    fn default() -> Self {
        Receipt {
            since: Instant::now(),
            tally: Tally::default(),
            expected: None,
            differs: None,
        }
    }
}

impl Receipt {
    /// Whether that was the last of those that are expected.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let index = self.tally.count;
        self.tally.add(bytes);
        let Some((count, size, seed)) = self.expected else {
            return false;
        };
        let right = bytes.len() == size.of(seed, index) && Words::new(seed, index).matches(bytes);
        if !right && self.differs.is_none() {
            self.differs = Some(index);
        }
        self.tally.count == count
    }

    fn tell(&self, word: &str, peer: PeerId, protocol: &str) {
        let result = match (self.differs, self.expected) {
            (Some(index), _) => format!("differs:{index}"),
            (None, Some((count, ..))) if self.tally.count < count => "short".into(),
            (None, Some((count, ..))) if self.tally.count > count => "more".into(),
            _ => "ok".into(),
        };
        say(format!(
            "{word} peer={peer} protocol={protocol} count={} bytes={} result={result} sha256={} us={}",
            self.tally.count,
            self.tally.bytes,
            self.tally.sha256(),
            self.since.elapsed().as_micros()
        ));
    }
}

struct Protocol {
    handle: Notify,
    name: String,
    validate: Validate,
    receipts: HashMap<PeerId, Receipt>,
}

pub async fn run(handle: Notify, options: Notification, mut orders: UnboundedReceiver<Command>) {
    let mut protocol = Protocol {
        handle,
        name: options.names[0].clone(),
        validate: options.validate,
        receipts: HashMap::new(),
    };
    let mut paused = false;
    loop {
        let next = async {
            if paused {
                pending().await
            } else {
                protocol.handle.next().await
            }
        };
        futures::select! {
            event = next.fuse() => match event {
                Some(event) => protocol.event(event),
                None => return,
            },
            command = orders.next() => match command {
                Some(command) if command.word == "pause" || command.word == "resume" => {
                    paused = command.word == "pause";
                    say(format!("ok {}", command.word));
                }
                Some(command) => if let Err(e) = protocol.obey(&command).await {
                    fail(&command, &e.to_string());
                },
                None => return,
            },
        }
    }
}

impl Protocol {
    fn event(&mut self, event: NotifyEvent) {
        let name = &self.name;
        let other = |fallback: Option<String>| fallback.unwrap_or("-".into());
        match event {
            NotifyEvent::Received { peer, bytes } => {
                let receipt = self.receipts.entry(peer).or_default();
                if receipt.add(&bytes) {
                    receipt.tell("received", peer, name);
                }
            }
            NotifyEvent::Validate {
                peer,
                fallback,
                handshake,
            } => {
                say(format!(
                    "validate peer={peer} protocol={name} fallback={} handshake={}",
                    other(fallback),
                    hex(&handshake)
                ));
                if self.validate != Validate::Never {
                    self.handle.answer(peer, self.validate == Validate::Accept);
                }
            }
            NotifyEvent::Opened {
                peer,
                fallback,
                outbound,
                handshake,
            } => say(format!(
                "opened peer={peer} protocol={name} fallback={} direction={} handshake={}",
                other(fallback),
                direction(outbound),
                hex(&handshake)
            )),
            NotifyEvent::OpenFailed { peer, reason } => say(format!(
                "open-failed peer={peer} protocol={name} reason={reason}"
            )),
            NotifyEvent::Closed { peer, reason } => {
                if let Some(receipt) = self.receipts.get(&peer) {
                    if receipt
                        .expected
                        .is_some_and(|(count, ..)| receipt.tally.count < count)
                    {
                        receipt.tell("received", peer, name);
                    }
                }
                say(format!(
                    "closed peer={peer} protocol={name} reason={reason}"
                ))
            }
        }
    }

    async fn obey(&mut self, command: &Command) -> Result<()> {
        match command.word.as_str() {
            "open" => self.handle.open(command.peer(0)?).await?,
            "close" => self.handle.close(command.peer(0)?).await,
            "send" => {
                let peer = command.peer(0)?;
                let sink = self.handle.sink(peer).ok_or("not open")?;
                let job = Job::new(command, &self.name)?;
                tokio::spawn(job.send(sink));
            }
            "sync-send" => {
                let job = Job::new(command, &self.name)?;
                job.sync_send(&mut self.handle);
            }
            "expect" => {
                let expected = (command.number(1)?, command.number(2)?, command.number(3)?);
                let receipt = Receipt {
                    expected: Some(expected),
                    ..Default::default()
                };
                self.receipts.insert(command.peer(0)?, receipt);
                say("ok expect".into());
            }
            "counts" => {
                let peer = command.peer(0)?;
                self.receipts
                    .entry(peer)
                    .or_default()
                    .tell("counts", peer, &self.name);
            }
            "set-handshake" => {
                self.handle
                    .set_handshake(unhex(command.argument(0).unwrap_or(""))?);
                say("ok set-handshake".into());
            }
            "validate" => {
                self.validate = command.number(0)?;
                say("ok validate".into());
            }
            _ => {
                let accept = command.number::<Validate>(1)? == Validate::Accept;
                self.handle.answer(command.peer(0)?, accept);
            }
        }
        Ok(())
    }
}

/// Notifications to be sent.
struct Job {
    peer: PeerId,
    protocol: String,
    first: u64,
    /// 0: as many as are taken.
    count: u64,
    size: Size,
    seed: u64,
}

impl Job {
    fn new(command: &Command, protocol: &str) -> Result<Self> {
        Ok(Job {
            peer: command.peer(0)?,
            protocol: protocol.to_string(),
            first: command.option_or("first", 0)?,
            count: command.number(1)?,
            size: command.number(2)?,
            seed: command.number(3)?,
        })
    }

    fn tell(&self, tally: &Tally, result: &str, since: Instant) {
        say(format!(
            "sent peer={} protocol={} count={} bytes={} result={result} sha256={} us={}",
            self.peer,
            self.protocol,
            tally.count,
            tally.bytes,
            tally.sha256(),
            since.elapsed().as_micros()
        ));
    }

    async fn send(self, sink: Sink) {
        let since = Instant::now();
        let mut tally = Tally::default();
        let mut result = "ok";
        while tally.count < self.count {
            let bytes = message(self.seed, self.first + tally.count, self.size);
            let mut next = tally.clone();
            next.add(&bytes);
            if sink.send(bytes).await.is_err() {
                result = "closed";
                break;
            }
            tally = next;
        }
        self.tell(&tally, result, since);
    }

    fn sync_send(self, handle: &mut Notify) {
        let since = Instant::now();
        let mut tally = Tally::default();
        let mut result = "ok";
        while self.count == 0 || tally.count < self.count {
            let bytes = message(self.seed, self.first + tally.count, self.size);
            let mut next = tally.clone();
            next.add(&bytes);
            match handle.try_send(self.peer, bytes) {
                Ok(()) => tally = next,
                Err(Refused::Clogged) => {
                    result = "clogged";
                    break;
                }
                Err(Refused::Closed) => {
                    result = "closed";
                    break;
                }
            }
        }
        self.tell(&tally, result, since);
    }
}
