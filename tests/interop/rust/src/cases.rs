//! Cases that move bytes over streams that all end well.

use crate::dial::{echo, exchange, query, rest, settled, start, token};
use crate::link::{Link, Stream};
use crate::{wire, Result};
use futures::{stream, AsyncReadExt, AsyncWriteExt, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use std::future::Future;
use std::io::Read;

const AT_ONCE: usize = 64;

/// The digest and the length are what a sink has to answer.
async fn sunk(s: &mut Stream, sum: Sha256, total: u64) -> Result<String> {
    s.close().await?;
    let digest = sum.finalize();
    if rest(s).await? != [&digest[..], &total.to_be_bytes()].concat() {
        return Err("the peer's digest or length differs".into());
    }
    Ok(format!("\"bytes\":{total},\"sha256\":\"{digest:x}\""))
}

pub async fn file(link: &Link, path: &str, chunk: usize) -> Result<String> {
    let mut source = std::fs::File::open(path)?;
    let chunk = if chunk == 0 {
        source.metadata()?.len() as usize
    } else {
        chunk
    };
    let mut s = start(link, wire::SINK, &[]).await?;
    let mut sum = Sha256::new();
    let mut buf = vec![0; chunk];
    let mut total = 0;
    loop {
        let n = source.read(&mut buf)?;
        if n == 0 {
            break;
        }
        sum.update(&buf[..n]);
        s.write_all(&buf[..n]).await?;
        total += n as u64;
    }
    sunk(&mut s, sum, total).await
}

pub async fn fetch(link: &Link, count: u64) -> Result<String> {
    let mut s = start(link, wire::GENERATE, &count.to_be_bytes()).await?;
    s.close().await?;
    let mut generator = wire::Generator::new();
    let mut expected = Vec::new();
    let mut total = 0;
    while let Some(packet) = s.next().await {
        let packet = packet?;
        expected.resize(packet.as_ref().len(), 0);
        generator.fill(&mut expected);
        if packet.as_ref() != expected.as_slice() {
            return Err(format!("bytes differ after {total}").into());
        }
        total += packet.as_ref().len() as u64;
    }
    if total != count {
        return Err(format!("{total} bytes instead of {count}").into());
    }
    Ok(format!("\"bytes\":{total}"))
}

pub async fn single(link: &Link, count: usize) -> Result<String> {
    let bytes = wire::generated(count);
    let mut s = start(link, wire::SINK, &[]).await?;
    s.write_all(&bytes).await?;
    sunk(&mut s, Sha256::new_with_prefix(&bytes), count as u64).await?;
    fetch(link, count as u64).await
}

/// Runs `count` of them as tasks, some at once, and fails with the first that fails.
async fn many<F>(count: u64, at_once: usize, each: impl Fn(u64) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    stream::iter(0..count)
        .map(|i| tokio::spawn(each(i)))
        .buffer_unordered(at_once)
        .map(|done| done?)
        .try_collect()
        .await
}

pub async fn short(link: &Link, count: u64) -> Result<String> {
    let each = |i: u64| {
        let link = link.clone();
        async move {
            let mut payload = wire::generated(1 + (i * 37 % 1000) as usize);
            payload[0] = i as u8;
            echo(&link, &payload).await
        }
    };
    many(count, AT_ONCE, each).await?;
    Ok(format!("\"streams\":{count}"))
}

pub async fn opens(link: &Link, count: u64) -> Result<String> {
    let each = |i: u64| {
        let link = link.clone();
        async move { echo(&link, &[i as u8]).await }
    };
    many(count, AT_ONCE, each).await?;
    Ok(format!(
        "\"streams\":{count},\"left\":{}",
        settled(link).await?
    ))
}

/// What the other side writes first comes although we wrote nothing.
pub async fn first(link: &Link) -> Result<String> {
    if exchange(link, wire::GREET, &[]).await? != b"k" {
        return Err("the primer was not answered".into());
    }
    let mut s = link.open().await?;
    let mut hello = [0; 5];
    s.read_exact(&mut hello).await?;
    let payload = wire::generated(1000);
    s.write_all(&[&[wire::ECHO], &payload[..]].concat()).await?;
    s.close().await?;
    if &hello != b"hello" || rest(&mut s).await? != payload {
        return Err("the greeting or what followed differs".into());
    }
    Ok("\"bytes\":1000".into())
}

/// Both sides write before they read.  The library pings by itself while it works.
async fn crossed(link: &Link, length: usize) -> Result<()> {
    let bytes = wire::generated(length);
    let mut s = start(link, wire::CROSS, &(length as u64).to_be_bytes()).await?;
    s.write_all(&bytes).await?;
    let mut got = vec![0; length];
    s.read_exact(&mut got).await?;
    s.close().await?;
    if got != bytes || !rest(&mut s).await?.is_empty() {
        return Err("the crossing bytes differ".into());
    }
    Ok(())
}

pub async fn cross(link: &Link, count: u64, length: usize) -> Result<String> {
    let each = |_| {
        let link = link.clone();
        async move { crossed(&link, length).await }
    };
    many(count, count as usize, each).await?;
    Ok(format!(
        "\"streams\":{count},\"bytes\":{}",
        2 * count * length as u64
    ))
}

pub async fn half(link: &Link) -> Result<String> {
    let payload = wire::generated(100_000);

    /* Our end first: the reply comes after it. */
    let mut s = start(link, wire::SINK, &payload).await?;
    sunk(
        &mut s,
        Sha256::new_with_prefix(&payload),
        payload.len() as u64,
    )
    .await?;
    echo(link, &payload).await?;

    /* The peer's end first: it reads on. */
    let mark = token();
    let mut s = start(link, wire::HALF, &mark).await?;
    if rest(&mut s).await? != b"bye" {
        return Err("the peer's farewell differs".into());
    }
    s.write_all(&payload).await?;
    s.close().await?;
    if query(link, mark).await? != (wire::ENDED, payload.len() as u64) {
        return Err("bytes written after the peer's end were lost".into());
    }

    /* A clean end is not taken for a reset: the control of the reset case. */
    let mark = token();
    let answer = exchange(link, wire::WATCH, &mark).await?;
    if answer.first() != Some(&b'k') || query(link, mark).await?.0 != wire::ENDED {
        return Err("a clean end was seen as something else".into());
    }
    Ok(format!("\"bytes\":{}", payload.len()))
}
