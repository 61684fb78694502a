//! Throughput into a discarding peer.  Bytes count only when the peer has said that it read them.

use crate::link::Link;
use crate::{beside, openrate, wire, Result};
use futures::{AsyncReadExt, AsyncWriteExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Processor time of this process so far, user and system.
fn cpu() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the structure that it is given, and all zeroes is a valid one.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|t| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000))
        .sum()
}

async fn flood(link: Link, write: usize, stop: Arc<AtomicBool>) -> Result<u64> {
    let mut s = link.open().await?;
    let buf = vec![0x5a; write];
    s.write_all(&[wire::DISCARD]).await?;
    while !stop.load(Ordering::Relaxed) {
        s.write_all(&buf).await?;
    }
    s.close().await?;
    let mut total = [0; 8];
    s.read_exact(&mut total).await?;
    Ok(u64::from_be_bytes(total))
}

/// What is measured between two ends in this process.
pub enum Pair {
    Bench {
        streams: usize,
        write: usize,
        seconds: f64,
    },
    Beside {
        bulk: usize,
        rate: f64,
        seconds: f64,
    },
    OpenRate {
        count: usize,
        at_once: usize,
    },
}

impl Pair {
    pub async fn measure(self, link: &Link) -> Result<String> {
        match self {
            Pair::Bench {
                streams,
                write,
                seconds,
            } => dialed(link, streams, write, seconds).await,
            Pair::Beside {
                bulk,
                rate,
                seconds,
            } => beside::dialed(link, bulk, rate, seconds).await,
            Pair::OpenRate { count, at_once } => openrate::dialed(link, count, at_once).await,
        }
    }
}

/// Measures and returns the members of the JSON object.
pub async fn dialed(link: &Link, streams: usize, write: usize, seconds: f64) -> Result<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let (start, start_cpu) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..streams)
        .map(|_| tokio::spawn(flood(link.clone(), write, stop.clone())))
        .collect();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut bytes = 0;
    for task in tasks {
        bytes += task.await??;
    }
    let (took, used) = (start.elapsed(), cpu() - start_cpu);
    if bytes == 0 {
        return Err("no byte arrived".into());
    }
    Ok(format!(
        "\"streams\":{},\"write\":{},\"bytes_per_s\":{:.0},\"cpu_ns_per_kib\":{:.1}",
        streams,
        write,
        bytes as f64 / took.as_secs_f64(),
        used.as_nanos() as f64 / (bytes as f64 / 1024.0)
    ))
}
