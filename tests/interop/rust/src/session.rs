//! Cases about the session as a whole: silence, its end by either side, its unexpected end.

use crate::dial::{echo, query, rest, start, token, within};
use crate::link::{Link, Stream};
use crate::net::connect;
use crate::{wire, Args, Result};
use futures::{AsyncReadExt, AsyncWriteExt};
use std::time::{Duration, Instant};
use tokio::time::{interval, sleep};

pub async fn silent(link: &Link, seconds: f64) -> Result<String> {
    let mark = token();
    let mut s = start(link, wire::NOTE, &mark).await?;
    let begin = Instant::now();
    let mut tick = interval(Duration::from_millis(100));
    let mut sent = 0;
    while begin.elapsed().as_secs_f64() < seconds {
        tick.tick().await;
        s.write_all(b"x").await?;
        sent += 1;
    }
    s.close().await?;
    if !rest(&mut s).await?.is_empty() {
        return Err("the silent stream said something".into());
    }
    if query(link, mark).await? != (wire::ENDED, sent) {
        return Err("the silent stream did not get all".into());
    }
    echo(link, b"alive").await?;
    Ok(format!("\"bytes\":{sent}"))
}

/// Streams that echo: every byte is written, one is read.
async fn echoing(link: &Link, payload: &[u8]) -> Result<Vec<Stream>> {
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut s = start(link, wire::ECHO, payload).await?;
        s.read_exact(&mut [0]).await?;
        streams.push(s);
    }
    Ok(streams)
}

pub async fn goaway_theirs(link: &Link) -> Result<String> {
    let payload = wire::generated(1000);
    let mut streams = echoing(link, &payload).await?;
    /* Only what came before the end counts, and nothing tells how much has come. */
    sleep(Duration::from_millis(200)).await;
    let _asking = start(link, wire::GO_AWAY, b"g").await?;
    let begin = Instant::now();
    let reason = within(5, "the end of the session", link.ended()).await?;
    let heard = begin.elapsed().as_millis();
    if within(5, "a late open", link.open()).await.is_ok() {
        return Err("a stream was opened after the end".into());
    }
    for s in &mut streams {
        if within(5, "what was echoed", rest(s)).await? != payload[1..] {
            return Err("what was echoed before the end is lost".into());
        }
    }
    let on = streams[0].write_all(b"x").await.is_ok();
    let streams = if on { "on" } else { "over" };
    Ok(format!(
        "\"heard_ms\":{heard},\"reason\":{reason:?},\"streams\":\"{streams}\""
    ))
}

pub async fn goaway_ours(link: &Link, addr: &str, args: Args) -> Result<String> {
    let payload = wire::generated(100_000);
    let streams = echoing(link, &payload[..1000]).await?;
    let mark = token();
    let mut s = start(link, wire::NOTE, &[&mark, &payload[..]].concat()).await?;
    s.close().await?;
    within(10, "closing", link.close()).await?;
    drop(streams);
    let second = connect(addr, args).await?;
    let (outcome, total) = query(&second, mark).await?;
    within(10, "closing", second.close()).await?;
    if outcome == wire::UNKNOWN || total != payload.len() as u64 {
        return Err(format!("{total} bytes arrived before the end, {}", outcome as char).into());
    }
    Ok(format!(
        "\"noted\":\"{}\",\"arrived\":{total}",
        outcome as char
    ))
}

pub async fn goaway(link: &Link, addr: &str, args: Args) -> Result<String> {
    let theirs = goaway_theirs(link).await?;
    let ours = goaway_ours(&connect(addr, args).await?, addr, args).await?;
    Ok(format!("{theirs},{ours}"))
}

pub async fn hold(link: &Link, count: usize) -> Result<String> {
    let mut streams = Vec::new();
    for i in 0..count {
        let mut s = start(link, wire::ECHO, &[i as u8]).await?;
        s.read_exact(&mut [0]).await?;
        streams.push(s);
    }
    println!("holding");
    let reason = link.ended().await?;
    for s in &mut streams {
        /* With an error or without. */
        let _ = within(5, "the end of a stream", async { Ok(rest(s).await) }).await?;
    }
    Ok(format!("\"streams\":{count},\"reason\":{reason:?}"))
}
