//! Streams that are opened, echo a byte, and are closed by both ends.

use crate::link::Link;
use crate::{dial, Result};
use futures::{stream, StreamExt};
use std::time::Instant;

/// Measures and returns the members of the JSON object.
pub async fn dialed(link: &Link, count: usize, at_once: usize) -> Result<String> {
    let begin = Instant::now();
    let done: Vec<_> = stream::iter(0..count)
        .map(|i| {
            let link = link.clone();
            tokio::spawn(async move {
                let from = Instant::now();
                dial::echo(&link, &[i as u8]).await?;
                Result::Ok(from.elapsed())
            })
        })
        .buffer_unordered(at_once)
        .collect()
        .await;
    let took = begin.elapsed();
    let mut taken = Vec::with_capacity(count);
    for one in done {
        taken.push(one??);
    }
    if taken.is_empty() {
        return Err("no stream".into());
    }
    taken.sort();
    let us = |q: f64| taken[((taken.len() - 1) as f64 * q) as usize].as_nanos() as f64 / 1e3;
    Ok(format!(
        "\"streams\":{},\"opens_per_s\":{:.0},\"p50_us\":{:.2},\"p99_us\":{:.2}",
        count,
        count as f64 / took.as_secs_f64(),
        us(0.5),
        us(0.99)
    ))
}
