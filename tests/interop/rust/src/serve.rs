//! The serving side: the first byte of each inbound stream selects what is done with it.

use crate::link::{Inbound, Link, Stream};
use crate::{wire, Result};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the connections share.
pub struct Server {
    /// How streams ended, by their token: the outcome and the bytes read.
    ledger: Mutex<HashMap<u64, (u8, u64)>>,
    /// Bytes of generated streams given to one write; 0: all in one.
    chunk: usize,
}

/// What the streams of one connection share.
struct Session {
    server: Arc<Server>,
    link: Link,
    /// The next stream that is accepted is greeted.
    greet: AtomicBool,
    /// Handlers that run; the crate does not tell how many streams are open.
    running: AtomicU64,
}

impl Server {
    pub fn new(chunk: usize) -> Arc<Server> {
        Arc::new(Server {
            ledger: Mutex::default(),
            chunk,
        })
    }

    fn note(&self, token: u64, outcome: u8, total: u64) {
        self.ledger.lock().unwrap().insert(token, (outcome, total));
    }

    /// Waits for the outcome of a token, at most for as long as a slow reader is told to pause and some.
    async fn noted(&self, token: u64) -> (u8, u64) {
        for _ in 0..800 {
            if let Some(found) = self.ledger.lock().unwrap().get(&token) {
                return *found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (wire::UNKNOWN, 0)
    }
}

/// Serves the streams of one connection until it ends.
pub async fn attend(link: Link, mut inbound: Inbound, server: Arc<Server>) {
    let (greet, running) = (AtomicBool::new(false), AtomicU64::new(0));
    let session = Arc::new(Session {
        server,
        link,
        greet,
        running,
    });
    while let Some(stream) = inbound.recv().await {
        let greet = session.greet.swap(false, Ordering::Relaxed);
        let session = session.clone();
        tokio::spawn(async move {
            session.running.fetch_add(1, Ordering::Relaxed);
            let _ = session.handle(stream, greet).await;
            session.running.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

impl Session {
    /// A stream that is dropped while both halves are open is reset, which is what an error deserves.
    async fn handle(
        &self,
        #[cfg_attr(feature = "node", allow(unused_mut))] mut s: Stream,
        greet: bool,
    ) -> Result<()> {
        #[cfg(feature = "node")]
        let mut s = self.link.accept(s).await?;
        if greet {
            s.write_all(b"hello").await?;
        }
        let mut what = [0];
        s.read_exact(&mut what).await?;
        match what[0] {
            wire::ECHO => echo(&mut s).await?,
            wire::SINK => sink(&mut s).await?,
            wire::DISCARD => {
                let total = drain(&mut s).await;
                s.write_all(&total.to_be_bytes()).await?;
            }
            wire::GENERATE => {
                let count = number(&mut s).await?;
                drain(&mut s).await;
                generate(&mut s, count, self.server.chunk).await?;
            }
            wire::RESET => {
                s.read_exact(&mut what).await?;
                return Ok(());
            }
            wire::WATCH => return self.watch(s).await,
            wire::HALF => return self.half(s).await,
            wire::QUERY => {
                let token = number(&mut s).await?;
                let (outcome, total) = self.server.noted(token).await;
                s.write_all(&[outcome]).await?;
                s.write_all(&total.to_be_bytes()).await?;
            }
            wire::GREET => {
                drain(&mut s).await;
                self.greet.store(true, Ordering::Relaxed);
                s.write_all(b"k").await?;
            }
            wire::NOTE => {
                let token = number(&mut s).await?;
                let total = drain(&mut s).await;
                let outcome = if s.is_closed() {
                    wire::WAS_RESET
                } else {
                    wire::ENDED
                };
                self.server.note(token, outcome, total);
            }
            wire::REPLY => {
                let count = number(&mut s).await?;
                /* The reset is queued behind the bytes. */
                return generate(&mut s, count, self.server.chunk).await;
            }
            #[cfg(feature = "node")]
            wire::IDENTIFY => {
                drain(&mut s).await;
                let facts = &self.link.facts;
                let text = format!("{} {} {}", facts.own, facts.peer, facts.muxer);
                s.write_all(text.as_bytes()).await?;
            }
            wire::LAZY => return self.lazy(s).await,
            wire::RESET_IN => return self.reset_in(s).await,
            wire::CROSS => cross(&mut s, self.server.chunk).await?,
            wire::GO_AWAY => {
                s.read_exact(&mut what).await?;
                self.link.close().await?;
                return Ok(());
            }
            wire::COUNT => {
                drain(&mut s).await;
                let running = self.running.load(Ordering::Relaxed);
                s.write_all(&running.to_be_bytes()).await?;
            }
            _ => return Err("unknown stream protocol".into()),
        }
        s.close().await?;
        Ok(())
    }

    /// A peer that cannot reset at once ends its half first: what a write says later is the outcome.
    async fn watch(&self, mut s: Stream) -> Result<()> {
        let token = number(&mut s).await?;
        s.write_all(b"k").await?;
        let total = drain(&mut s).await;
        let mut outcome = wire::ENDED;
        for _ in 0..50 {
            if s.write_all(b"p").await.is_err() {
                outcome = wire::WAS_RESET;
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.server.note(token, outcome, total);
        if outcome == wire::ENDED {
            s.close().await?;
        }
        Ok(())
    }

    /// Reads nothing for as long as it is told.  A write says whether the end was a reset.
    async fn lazy(&self, mut s: Stream) -> Result<()> {
        let token = number(&mut s).await?;
        let pause = number(&mut s).await?;
        s.write_all(b"k").await?;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let total = drain(&mut s).await;
        let outcome = match s.write_all(b"p").await {
            Ok(()) => wire::ENDED,
            Err(_) => wire::WAS_RESET,
        };
        self.server.note(token, outcome, total);
        Ok(())
    }

    async fn half(&self, mut s: Stream) -> Result<()> {
        let token = number(&mut s).await?;
        s.write_all(b"bye").await?;
        s.close().await?;
        let total = drain(&mut s).await;
        self.server.note(token, wire::ENDED, total);
        Ok(())
    }

    /// Dropping a stream is the crate's reset.  After the peer's FIN it is a FIN instead, and after our own
    /// nothing, so those two are noted as ended.
    async fn reset_in(&self, mut s: Stream) -> Result<()> {
        let token = number(&mut s).await?;
        let mut state = [0];
        s.read_exact(&mut state).await?;
        let mut outcome = wire::WAS_RESET;
        let mut total = 0;
        match state[0] {
            wire::AT_ONCE => {}
            wire::ANSWERED => s.write_all(b"k").await?,
            wire::AFTER_THEIR_FIN => {
                total = drain(&mut s).await;
                outcome = wire::ENDED;
            }
            wire::AFTER_OWN_FIN => {
                s.close().await?;
                outcome = wire::ENDED;
            }
            /* What came is not told before it is read. */
            wire::UNREAD => tokio::time::sleep(Duration::from_millis(100)).await,
            wire::WHILE_WRITTEN => {
                if let Some(packet) = s.next().await {
                    total = packet?.as_ref().len() as u64;
                }
            }
            _ => return Err("unknown state".into()),
        }
        drop(s);
        self.server.note(token, outcome, total);
        Ok(())
    }
}

async fn number(s: &mut Stream) -> Result<u64> {
    let mut bytes = [0; 8];
    s.read_exact(&mut bytes).await?;
    Ok(u64::from_be_bytes(bytes))
}

/// Reads to the end, whatever kind of end it is.
async fn drain(s: &mut Stream) -> u64 {
    let mut total = 0;
    while let Some(Ok(packet)) = s.next().await {
        total += packet.as_ref().len() as u64;
    }
    total
}

async fn echo(s: &mut Stream) -> Result<()> {
    while let Some(packet) = s.next().await {
        s.write_all(packet?.as_ref()).await?;
    }
    Ok(())
}

async fn sink(s: &mut Stream) -> Result<()> {
    let mut sum = Sha256::new();
    let mut total = 0u64;
    while let Some(packet) = s.next().await {
        let packet = packet?;
        sum.update(packet.as_ref());
        total += packet.as_ref().len() as u64;
    }
    s.write_all(&sum.finalize()).await?;
    s.write_all(&total.to_be_bytes()).await?;
    Ok(())
}

async fn generate(s: &mut Stream, count: u64, chunk: usize) -> Result<()> {
    let chunk = if chunk == 0 { count } else { chunk as u64 };
    let mut left = count;
    let mut generator = wire::Generator::new();
    let mut buf = vec![0; left.min(chunk) as usize];
    while left > 0 {
        let n = left.min(chunk) as usize;
        generator.fill(&mut buf[..n]);
        s.write_all(&buf[..n]).await?;
        left -= n as u64;
    }
    Ok(())
}

async fn cross(s: &mut Stream, chunk: usize) -> Result<()> {
    let count = number(s).await?;
    generate(s, count, chunk).await?;
    let mut got = vec![0; count.try_into()?];
    s.read_exact(&mut got).await?;
    if got != wire::generated(got.len()) {
        return Err("the bytes differ".into());
    }
    Ok(())
}
