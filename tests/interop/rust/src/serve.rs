//! The serving side: the first byte of each inbound stream selects what is done with it.

use crate::link::Link;
use crate::{wire, Result};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use yamux::{Mode, Stream};

/// How the watched streams ended, by their token: the outcome and the bytes read.
type Ledger = Arc<Mutex<HashMap<u64, (u8, u64)>>>;

pub async fn serve(addr: &str, mode: Mode) -> Result<()> {
    let listener = TcpListener::bind(addr).await?;
    println!("listening {}", listener.local_addr()?);
    let ledger = Ledger::default();
    loop {
        let (tcp, _) = listener.accept().await?;
        let ledger = ledger.clone();
        tokio::spawn(async move { attend(tcp, mode, ledger).await });
    }
}

/// Serves one connection with a ledger of its own; for benchmarks in one process.
pub async fn serve_one(tcp: TcpStream, mode: Mode) -> Result<()> {
    attend(tcp, mode, Ledger::default()).await
}

async fn attend(tcp: TcpStream, mode: Mode, ledger: Ledger) -> Result<()> {
    let inbound = move |stream| {
        let ledger = ledger.clone();
        tokio::spawn(async move {
            let _ = handle(stream, ledger).await;
        });
    };
    Link::start(tcp, mode, inbound)?.serve().await
}

/// A stream that is dropped without `close` is reset, which is what an error deserves.
async fn handle(mut s: Stream, ledger: Ledger) -> Result<()> {
    let mut what = [0];
    s.read_exact(&mut what).await?;
    match what[0] {
        wire::ECHO => {
            while let Some(packet) = s.next().await {
                s.write_all(packet?.as_ref()).await?;
            }
        }
        wire::SINK => {
            let mut sum = Sha256::new();
            let mut total = 0;
            while let Some(packet) = s.next().await {
                let packet = packet?;
                sum.update(packet.as_ref());
                total += packet.as_ref().len() as u64;
            }
            s.write_all(&sum.finalize()).await?;
            s.write_all(&total.to_be_bytes()).await?;
        }
        wire::DISCARD => {
            let total = drain(&mut s).await;
            s.write_all(&total.to_be_bytes()).await?;
        }
        wire::GENERATE => generate(&mut s).await?,
        wire::RESET => {
            s.read_exact(&mut what).await?;
            return Ok(());
        }
        wire::WATCH => return watch(s, ledger).await,
        wire::HALF => return half(s, ledger).await,
        wire::QUERY => {
            let token = number(&mut s).await?;
            let (outcome, total) = outcome(&ledger, token).await;
            s.write_all(&[outcome]).await?;
            s.write_all(&total.to_be_bytes()).await?;
        }
        _ => return Err("unknown stream protocol".into()),
    }
    s.close().await?;
    Ok(())
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

async fn generate(s: &mut Stream) -> Result<()> {
    let mut left = number(s).await?;
    let mut gen = wire::Generator::new();
    let mut buf = vec![0; 64 * 1024];
    drain(s).await;
    while left > 0 {
        let n = left.min(buf.len() as u64) as usize;
        gen.fill(&mut buf[..n]);
        s.write_all(&buf[..n]).await?;
        left -= n as u64;
    }
    Ok(())
}

/// The crate reports a reset to a reader as a plain end, so only a write that fails tells it apart.
async fn watch(mut s: Stream, ledger: Ledger) -> Result<()> {
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
    ledger.lock().unwrap().insert(token, (outcome, total));
    if outcome == wire::ENDED {
        s.close().await?;
    }
    Ok(())
}

async fn half(mut s: Stream, ledger: Ledger) -> Result<()> {
    let token = number(&mut s).await?;
    s.write_all(b"bye").await?;
    s.close().await?;
    let total = drain(&mut s).await;
    ledger.lock().unwrap().insert(token, (wire::ENDED, total));
    Ok(())
}

async fn outcome(ledger: &Ledger, token: u64) -> (u8, u64) {
    for _ in 0..500 {
        if let Some(found) = ledger.lock().unwrap().get(&token) {
            return *found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    (wire::UNKNOWN, 0)
}
