//! The dialing side: one case per run, one line of JSON on success.  Also what the cases share.

use crate::link::Link;
use crate::yamux::{Mode, Stream};
use crate::{bench, cases, plain, resets, session, wire, Cannot, Result, NAME};
use futures::{AsyncReadExt, AsyncWriteExt};
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Connects, and opens no stream yet.
pub async fn connect(addr: &str, mode: Mode) -> Result<Link> {
    let tcp = TcpStream::connect(addr).await?;
    Ok(Link::start(plain(tcp)?, mode).0)
}

pub async fn dial(addr: &str, mode: Mode, chunk: usize, case: &[&str]) -> Result<()> {
    let link = connect(addr, mode).await?;
    let start = Instant::now();
    let measured = match run(&link, (addr, mode), chunk, case).await {
        Ok(measured) => measured,
        Err(e) if e.is::<Cannot>() => return Err(e),
        Err(e) => {
            /* When the session is over as well, why it is says more. */
            return Err(
                match timeout(Duration::from_millis(200), link.ended()).await {
                    Ok(Ok(reason)) => format!("{e}; the session: {reason}").into(),
                    _ => e,
                },
            );
        }
    };
    println!(
        "{{\"peer\":\"{NAME}\",\"case\":\"{}\",\"ms\":{},{}}}",
        case[0],
        start.elapsed().as_millis(),
        measured
    );
    within(10, "closing", link.close()).await?;
    Ok(())
}

/// Runs one case and returns the members of its JSON object.
async fn run(link: &Link, to: (&str, Mode), chunk: usize, case: &[&str]) -> Result<String> {
    match case {
        ["file", path] => cases::file(link, path, chunk).await,
        ["fetch", count] => cases::fetch(link, count.parse()?).await,
        ["single", count] => cases::single(link, count.parse()?).await,
        ["short", count] => cases::short(link, count.parse()?).await,
        ["first"] => Err(Cannot("the crate opens lazily: no SYN before the first write").into()),
        ["silent", seconds] => session::silent(link, seconds.parse()?).await,
        ["half"] => cases::half(link).await,
        ["reset"] => resets::reset(link).await,
        ["resets"] => resets::resets(link).await,
        ["reply"] => resets::reply(link).await,
        ["pings", _] => Err(Cannot("the crate has no call for a ping").into()),
        ["cross", count, length] => cases::cross(link, count.parse()?, length.parse()?).await,
        ["goaway"] => session::goaway(link, to.0, to.1).await,
        ["goaway", "theirs"] => session::goaway_theirs(link).await,
        ["goaway", "ours"] => session::goaway_ours(link, to.0, to.1).await,
        ["opens", count] => cases::opens(link, count.parse()?).await,
        ["hold", count] => session::hold(link, count.parse()?).await,
        ["bench", streams, write, seconds] => {
            bench::dialed(link, streams.parse()?, write.parse()?, seconds.parse()?).await
        }
        _ => Err("cases: file PATH, fetch N, single N, short N, silent SECONDS, half, reset, resets, \
                  reply, cross N LENGTH, goaway [theirs|ours], opens N, hold N, bench STREAMS WRITE SECONDS"
            .into()),
    }
}

/// Nothing of a case may wait for ever.
pub async fn within<T>(
    seconds: u64,
    what: &str,
    step: impl std::future::Future<Output = Result<T>>,
) -> Result<T> {
    timeout(Duration::from_secs(seconds), step)
        .await
        .map_err(|_| format!("{what}: nothing within {seconds} s"))?
}

/// Opens a stream and writes its first byte with the request behind it.
pub async fn start(link: &Link, what: u8, request: &[u8]) -> Result<Stream> {
    let mut s = link.open().await?;
    s.write_all(&[&[what], request].concat()).await?;
    Ok(s)
}

/// All that comes up to the end.
pub async fn rest(s: &mut Stream) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    s.read_to_end(&mut all).await?;
    Ok(all)
}

/// Writes a request, ends our half and returns all that comes back.
pub async fn exchange(link: &Link, what: u8, request: &[u8]) -> Result<Vec<u8>> {
    let mut s = start(link, what, request).await?;
    s.close().await?;
    rest(&mut s).await
}

pub async fn echo(link: &Link, payload: &[u8]) -> Result<()> {
    if exchange(link, wire::ECHO, payload).await? != payload {
        return Err("the echo differs".into());
    }
    Ok(())
}

pub fn token() -> [u8; 8] {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    ((now.as_nanos() as u64) ^ u64::from(std::process::id())).to_be_bytes()
}

/// What the serving side noted of the stream with this token.
pub async fn query(link: &Link, token: [u8; 8]) -> Result<(u8, u64)> {
    match exchange(link, wire::QUERY, &token).await?.as_slice() {
        [outcome, total @ ..] if total.len() == 8 => {
            Ok((*outcome, u64::from_be_bytes(total.try_into()?)))
        }
        _ => Err("short answer to a query".into()),
    }
}

/// Waits until hardly a stream is left on the serving side; returns how many.  Handlers may take a moment to end.
pub async fn settled(link: &Link) -> Result<u64> {
    let begin = Instant::now();
    loop {
        let answer = exchange(link, wire::COUNT, &[]).await?;
        let open = u64::from_be_bytes(answer.as_slice().try_into()?);
        if open <= 4 {
            return Ok(open);
        }
        if begin.elapsed() > Duration::from_secs(5) {
            return Err(format!("{open} streams are left on the serving side").into());
        }
        sleep(Duration::from_millis(50)).await;
    }
}
