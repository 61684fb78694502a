//! The dialing side: one case per run, one line of JSON on success.  Also what the cases share.

use crate::link::{Link, Stream, ENDS_BY_WORD, LAZY};
use crate::net::connect;
use crate::{bench, beside, cases, openrate, resets, session, wire, Args, Cannot, Result, NAME};
use futures::{AsyncReadExt, AsyncWriteExt};
use std::time::{Duration, Instant, SystemTime};
use tokio::time::{sleep, timeout};

pub async fn dial(addr: &str, args: Args, case: &[&str]) -> Result<()> {
    let link = connect(addr, args).await?;
    let start = Instant::now();
    let measured = match run(&link, addr, args, case).await {
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
async fn run(link: &Link, addr: &str, args: Args, case: &[&str]) -> Result<String> {
    match case {
        ["file", path] => cases::file(link, path, args.chunk).await,
        ["fetch", count] => cases::fetch(link, count.parse()?).await,
        ["single", count] => cases::single(link, count.parse()?).await,
        ["short", count] => cases::short(link, count.parse()?).await,
        ["first"] if LAZY => {
            Err(Cannot("the crate opens lazily: no SYN before the first write").into())
        }
        ["first"] => cases::first(link).await,
        ["silent", seconds] => session::silent(link, seconds.parse()?).await,
        ["half"] => cases::half(link).await,
        ["reset"] => resets::reset(link).await,
        ["resets"] => resets::resets(link).await,
        ["reply"] => resets::reply(link).await,
        ["pings", _] => Err(Cannot("the crate has no call for a ping").into()),
        ["cross", count, length] => cases::cross(link, count.parse()?, length.parse()?).await,
        ["goaway"] | ["goaway", "theirs"] if !ENDS_BY_WORD => {
            Err(Cannot("mplex has no GO_AWAY").into())
        }
        ["goaway"] => session::goaway(link, addr, args).await,
        ["goaway", "theirs"] => session::goaway_theirs(link).await,
        ["goaway", "ours"] => session::goaway_ours(link, addr, args).await,
        ["opens", count] => cases::opens(link, count.parse()?).await,
        ["hold", count] => session::hold(link, count.parse()?).await,
        #[cfg(feature = "node")]
        ["agreed"] => agreed(link).await,
        #[cfg(feature = "node")]
        ["unknown"] => unknown(link).await,
        ["slow", _] if ENDS_BY_WORD => {
            Err(Cannot("a slow reader of yamux holds up nobody").into())
        }
        ["slow", pause] => resets::slow(link, pause.parse()?).await,
        ["names"] => Err(Cannot("the crate names no stream").into()),
        ["bench", streams, write, seconds] => {
            bench::dialed(link, streams.parse()?, write.parse()?, seconds.parse()?).await
        }
        ["beside", bulk, rate, seconds] => {
            beside::dialed(link, bulk.parse()?, rate.parse()?, seconds.parse()?).await
        }
        ["openrate", count, at_once] => {
            openrate::dialed(link, count.parse()?, at_once.parse()?).await
        }
        _ => Err("cases: file PATH, fetch N, single N, short N, silent SECONDS, half, reset, resets, \
                  reply, cross N LENGTH, goaway [theirs|ours], opens N, hold N, bench STREAMS WRITE SECONDS, beside BULK RATE SECONDS, openrate N AT_ONCE"
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

/// Both sides know the other's id and agree on the multiplexer.
#[cfg(feature = "node")]
async fn agreed(link: &Link) -> Result<String> {
    let facts = &link.facts;
    let (own, peer, muxer) = (&facts.own, &facts.peer, facts.muxer);
    let answer = String::from_utf8(exchange(link, wire::IDENTIFY, &[]).await?)?;
    if answer != format!("{peer} {own} {muxer}") {
        return Err(format!("here {own} and {peer} agreed on {muxer}, there {answer}").into());
    }
    Ok(format!(
        "\"id\":\"{own}\",\"peer_id\":\"{peer}\",\"muxer\":\"{muxer}\""
    ))
}

/// A protocol that the other side does not have fails on its stream, and only there.
#[cfg(feature = "node")]
async fn unknown(link: &Link) -> Result<String> {
    let mut other = start(link, wire::ECHO, b"x").await?;
    let failure = match link.open_for("/reeve/unknown/1").await {
        Err(e) => e.to_string(),
        /* Lazily: what was written went nowhere. */
        Ok(mut s) => {
            let _ = s.write_all(b"x").await;
            match within(10, "a refusal", rest(&mut s)).await {
                Err(e) => e.to_string(),
                Ok(all) => return Err(format!("{} bytes of an unknown protocol", all.len()).into()),
            }
        }
    };
    other.write_all(b"y").await?;
    other.close().await?;
    if rest(&mut other).await? != b"xy" {
        return Err("another stream suffered".into());
    }
    echo(link, b"alive").await?;
    Ok(format!("\"failure\":{failure:?}"))
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
