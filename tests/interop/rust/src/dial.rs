//! The dialing side: one case per run, one line of JSON on success.

use crate::link::Link;
use crate::{bench, wire, Result};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use yamux::{Mode, Stream};

pub async fn dial(addr: &str, mode: Mode, chunk: usize, case: &[&str]) -> Result<()> {
    let tcp = TcpStream::connect(addr).await?;
    let link = Arc::new(Link::start(tcp, mode, |_| {})?);
    let start = Instant::now();
    let measured = match case {
        ["file", path] => file(&link, path, chunk).await?,
        ["fetch", count] => fetch(&link, count.parse()?).await?,
        ["short", count] => short(&link, count.parse()?).await?,
        ["half"] => half(&link).await?,
        ["reset"] => reset(&link).await?,
        ["bench", streams, write, seconds] => {
            bench::dialed(&link, streams.parse()?, write.parse()?, seconds.parse()?).await?
        }
        _ => return Err("cases: file PATH, fetch N, short N, half, reset, bench S W T".into()),
    };
    println!(
        "{{\"peer\":\"rust\",\"case\":\"{}\",\"ms\":{},{}}}",
        case[0],
        start.elapsed().as_millis(),
        measured
    );
    let link = Arc::into_inner(link).ok_or("a stream task is left")?;
    Ok(tokio::time::timeout(Duration::from_secs(10), link.close()).await??)
}

async fn start(link: &Link, what: u8) -> Result<Stream> {
    let mut s = link.open().await?;
    s.write_all(&[what]).await?;
    Ok(s)
}

async fn rest(s: &mut Stream) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    s.read_to_end(&mut all).await?;
    Ok(all)
}

fn token() -> [u8; 8] {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    ((now.as_nanos() as u64) ^ u64::from(std::process::id())).to_be_bytes()
}

/// What the serving side saw of the stream with this token.
async fn query(link: &Link, token: [u8; 8]) -> Result<(u8, u64)> {
    let mut s = start(link, wire::QUERY).await?;
    s.write_all(&token).await?;
    s.close().await?;
    let all = rest(&mut s).await?;
    match all.as_slice() {
        [outcome, total @ ..] if total.len() == 8 => Ok((*outcome, u64::from_be_bytes(total.try_into()?))),
        _ => Err("short answer to a query".into()),
    }
}

async fn echo(link: &Link, payload: &[u8]) -> Result<()> {
    let mut s = start(link, wire::ECHO).await?;
    s.write_all(payload).await?;
    s.close().await?;
    if rest(&mut s).await? != payload {
        return Err("the echo differs".into());
    }
    Ok(())
}

async fn file(link: &Link, path: &str, chunk: usize) -> Result<String> {
    let mut source = std::fs::File::open(path)?;
    let mut s = start(link, wire::SINK).await?;
    let mut sum = Sha256::new();
    let mut buf = vec![0; chunk];
    let mut total = 0u64;
    loop {
        let n = source.read(&mut buf)?;
        if n == 0 {
            break;
        }
        sum.update(&buf[..n]);
        s.write_all(&buf[..n]).await?;
        total += n as u64;
    }
    s.close().await?;
    let digest = sum.finalize();
    let mut expected = digest.to_vec();
    expected.extend_from_slice(&total.to_be_bytes());
    if rest(&mut s).await? != expected {
        return Err("the peer's digest or length differs".into());
    }
    Ok(format!("\"bytes\":{total},\"sha256\":\"{digest:x}\""))
}

async fn fetch(link: &Link, count: u64) -> Result<String> {
    let mut s = start(link, wire::GENERATE).await?;
    s.write_all(&count.to_be_bytes()).await?;
    s.close().await?;
    let mut gen = wire::Generator::new();
    let mut expected = Vec::new();
    let mut total = 0u64;
    while let Some(packet) = s.next().await {
        let packet = packet?;
        expected.resize(packet.as_ref().len(), 0);
        gen.fill(&mut expected);
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

async fn short(link: &Arc<Link>, count: u64) -> Result<String> {
    let room = Arc::new(Semaphore::new(64));
    let mut tasks = Vec::new();
    for i in 0..count {
        let permit = room.clone().acquire_owned().await?;
        let link = link.clone();
        tasks.push(tokio::spawn(async move {
            let mut payload = vec![0; 1 + (i * 37 % 1000) as usize];
            wire::Generator::new().fill(&mut payload);
            payload[0] = i as u8;
            let done = echo(&link, &payload).await;
            drop(permit);
            done
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(format!("\"streams\":{count}"))
}

async fn half(link: &Link) -> Result<String> {
    let mut payload = vec![0; 100_000];
    wire::Generator::new().fill(&mut payload);

    /* Our end first: the reply comes after it. */
    let mut s = start(link, wire::SINK).await?;
    s.write_all(&payload).await?;
    s.close().await?;
    let mut expected = Sha256::digest(&payload).to_vec();
    expected.extend_from_slice(&(payload.len() as u64).to_be_bytes());
    if rest(&mut s).await? != expected {
        return Err("the reply after our end differs".into());
    }
    echo(link, &payload).await?;

    /* The peer's end first: it reads on. */
    let mark = token();
    let mut s = start(link, wire::HALF).await?;
    s.write_all(&mark).await?;
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
    let mut s = start(link, wire::WATCH).await?;
    s.write_all(&mark).await?;
    s.close().await?;
    let answer = rest(&mut s).await?;
    if answer.first() != Some(&b'k') || query(link, mark).await?.0 != wire::ENDED {
        return Err("a clean end was seen as something else".into());
    }
    Ok(format!("\"bytes\":{}", payload.len()))
}

async fn reset(link: &Link) -> Result<String> {
    /* Theirs reaches us: writing fails in the end. */
    let mut s = start(link, wire::RESET).await?;
    let start_of = Instant::now();
    s.write_all(b"x").await?;
    while s.write_all(b"x").await.is_ok() {
        if start_of.elapsed() > Duration::from_secs(10) {
            return Err("the peer's reset never arrived".into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let heard = start_of.elapsed().as_millis();
    drop(s);

    /* Ours reaches them: a stream dropped while open is reset. */
    let mark = token();
    let mut s = start(link, wire::WATCH).await?;
    s.write_all(&mark).await?;
    s.read_exact(&mut [0]).await?;
    drop(s);
    if query(link, mark).await?.0 != wire::WAS_RESET {
        return Err("the peer did not see our reset".into());
    }

    /* And the connection lives on. */
    echo(link, b"alive").await?;
    Ok(format!("\"heard_ms\":{heard}"))
}
