//! A ping-pong of 64 bytes beside bulk on the same connection.

use crate::link::Link;
use crate::{dial, wire, Result};
use futures::{AsyncReadExt, AsyncWriteExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WRITE: usize = 65536;
const WARM_UP: Duration = Duration::from_millis(100);

/// Writes at so many bytes a second (0: as fast as it goes); returns what the peer says it read.
async fn bulk(link: Link, rate: f64, stop: Arc<AtomicBool>) -> Result<u64> {
    let mut s = link.open().await?;
    let buf = vec![0x5a; WRITE];
    let begin = Instant::now();
    let mut sent = 0.0;
    s.write_all(&[wire::DISCARD]).await?;
    while !stop.load(Ordering::Relaxed) {
        s.write_all(&buf).await?;
        sent += WRITE as f64;
        if rate > 0.0 {
            tokio::time::sleep_until((begin + Duration::from_secs_f64(sent / rate)).into()).await;
        }
    }
    s.close().await?;
    let mut total = [0; 8];
    s.read_exact(&mut total).await?;
    Ok(u64::from_be_bytes(total))
}

async fn trips(link: &Link, seconds: f64) -> Result<Vec<Duration>> {
    let mut s = dial::start(link, wire::ECHO, &[]).await?;
    let mut taken = Vec::new();
    let begin = Instant::now() + WARM_UP;
    let end = begin + Duration::from_secs_f64(seconds);
    let (mut ping, mut pong) = ([0x5a_u8; 64], [0_u8; 64]);
    loop {
        let from = Instant::now();
        if from > end {
            break;
        }
        ping[0] = ping[0].wrapping_add(1);
        s.write_all(&ping).await?;
        s.read_exact(&mut pong).await?;
        if pong != ping {
            return Err("another answer".into());
        }
        if from > begin {
            taken.push(from.elapsed());
        }
    }
    s.close().await?;
    Ok(taken)
}

/// Measures and returns the members of the JSON object.  Rate: bytes a second of all bulk streams, 0: full speed.
pub async fn dialed(link: &Link, streams: usize, rate: f64, seconds: f64) -> Result<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let tasks: Vec<_> = (0..streams)
        .map(|_| tokio::spawn(bulk(link.clone(), rate / streams as f64, stop.clone())))
        .collect();
    let own = link.clone();
    let asking = tokio::spawn(async move { trips(&own, seconds).await });
    let mut taken = asking.await??;
    stop.store(true, Ordering::Relaxed);
    let mut bytes = 0;
    for task in tasks {
        bytes += task.await??;
    }
    let took = begin.elapsed();
    if taken.is_empty() {
        return Err("no trip was made".into());
    }
    taken.sort();
    let us = |q: f64| taken[((taken.len() - 1) as f64 * q) as usize].as_nanos() as f64 / 1e3;
    Ok(format!(
        "\"trips\":{},\"p50_us\":{:.2},\"p99_us\":{:.2},\"p999_us\":{:.2},\"bytes_per_s\":{:.0}",
        taken.len(),
        us(0.5),
        us(0.99),
        us(0.999),
        bytes as f64 / took.as_secs_f64()
    ))
}
