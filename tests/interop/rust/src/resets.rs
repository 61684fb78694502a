//! Cases with resets.  The crate resets a stream that is dropped while both halves are open; a stream that is
//! dropped after the peer's FIN is ended instead, and after our own FIN nothing is sent.  A reader sees a reset as a
//! plain end; writes fail, and the stream says that it is closed.

use crate::dial::{echo, query, rest, settled, start, token, within};
use crate::link::{Link, Stream};
use crate::{wire, Result};
use futures::{AsyncReadExt, AsyncWriteExt};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Writes a piece every few milliseconds until that fails.
async fn refused(s: &mut Stream, piece: &[u8], pause: Duration) -> Result<()> {
    within(10, "the peer's reset", async {
        while s.write_all(piece).await.is_ok() {
            sleep(pause).await;
        }
        Ok(())
    })
    .await
}

pub async fn reset(link: &Link) -> Result<String> {
    /* Theirs reaches us: writing fails in the end. */
    let mut s = start(link, wire::RESET, b"x").await?;
    let begin = Instant::now();
    refused(&mut s, b"x", Duration::from_millis(10)).await?;
    let heard = begin.elapsed().as_millis();
    drop(s);

    /* Ours reaches them. */
    let mark = token();
    let mut s = start(link, wire::WATCH, &mark).await?;
    s.read_exact(&mut [0]).await?;
    drop(s);
    if query(link, mark).await?.0 != wire::WAS_RESET {
        return Err("the peer did not see our reset".into());
    }

    /* And the connection lives on. */
    echo(link, b"alive").await?;
    Ok(format!("\"heard_ms\":{heard}"))
}

/// Drops a stream in each state; `settled` in the end says whether the peer let go of all of them.
async fn ours(link: &Link) -> Result<()> {
    let payload = wire::generated(1000);

    /* Only opened: a RST for a stream that the peer never heard of; and one that an empty write announced. */
    drop(link.open().await?);
    echo(link, b"opened").await?;
    let mut s = link.open().await?;
    let _announced = s.write(&[]).await?;
    drop(s);
    echo(link, b"announced").await?;

    drop(start(link, wire::ECHO, &payload).await?);
    echo(link, b"written to").await?;

    let mut s = start(link, wire::ECHO, b"x").await?;
    s.read_exact(&mut [0]).await?;
    drop(s);
    echo(link, b"answered").await?;

    let mut s = start(link, wire::ECHO, &payload).await?;
    s.close().await?;
    drop(s);
    echo(link, b"after our FIN").await?;

    let mut s = start(link, wire::HALF, &token()).await?;
    if rest(&mut s).await? != b"bye" {
        return Err("the peer's farewell differs".into());
    }
    drop(s);
    echo(link, b"after their FIN").await?;

    let mut s = start(link, wire::ECHO, &payload).await?;
    s.read_exact(&mut [0]).await?;
    drop(s);
    echo(link, b"with unread bytes").await?;

    /* A generator wants our FIN first, and after it the crate cannot reset; a crossing stream does not. */
    let mut s = start(link, wire::CROSS, &(8u64 << 20).to_be_bytes()).await?;
    s.read_exact(&mut [0; 100_000]).await?;
    drop(s);
    echo(link, b"while they write").await
}

/// Waits for the server's reset of a stream in that state; whether there was one.
async fn meet(s: &mut Stream, state: u8) -> Result<bool> {
    let pause = Duration::from_millis(10);
    match state {
        wire::AT_ONCE => refused(s, b"x", pause).await?,
        wire::ANSWERED => {
            s.read_exact(&mut [0]).await?;
            refused(s, b"x", pause).await?;
        }
        wire::AFTER_THEIR_FIN => {
            /* Behind our own FIN the crate shows every end alike. */
            s.close().await?;
            rest(s).await?;
        }
        wire::AFTER_OWN_FIN => {
            /* A server on this crate sends nothing behind its FIN. */
            rest(s).await?;
            let end = timeout(Duration::from_secs(1), refused(s, b"x", pause)).await;
            return Ok(end.is_ok());
        }
        wire::UNREAD => {
            /* Who resets does not wait for all of it. */
            if s.write_all(&wire::generated(1000)).await.is_ok() {
                refused(s, b"x", pause).await?;
            }
        }
        _ => refused(s, &wire::generated(65536), Duration::ZERO).await?,
    }
    Ok(true)
}

pub async fn resets(link: &Link) -> Result<String> {
    ours(link).await?;
    let mut seen = String::new();
    for state in wire::AT_ONCE..=wire::WHILE_WRITTEN {
        let mark = token();
        let mut s = start(link, wire::RESET_IN, &[&mark[..], &[state]].concat()).await?;
        let met = within(15, "the reset", meet(&mut s, state))
            .await
            .map_err(|e| format!("the server's reset in state {state}: {e}"))?;
        drop(s);
        echo(link, b"alive").await?;
        let (outcome, _) = query(link, mark).await?;
        if outcome == wire::UNKNOWN || (outcome == wire::WAS_RESET && !met) {
            let noted = char::from(outcome);
            return Err(format!("in state {state} {noted} was noted, and seen: {met}").into());
        }
        seen.push(char::from(outcome));
    }
    Ok(format!(
        "\"noted\":\"{seen}\",\"left\":{}",
        settled(link).await?
    ))
}

/// The server does not read for so many milliseconds, until its library resets that stream; others go on.
pub async fn slow(link: &Link, pause: u64) -> Result<String> {
    let payload = wire::generated(100_000);
    let mut other = start(link, wire::ECHO, b"x").await?;
    other.read_exact(&mut [0]).await?;
    let mark = token();
    let request = [mark, pause.to_be_bytes()].concat();
    let mut s = start(link, wire::LAZY, &request).await?;
    s.read_exact(&mut [0]).await?;
    let begin = Instant::now();
    refused(&mut s, &payload, Duration::ZERO).await?;
    let held = begin.elapsed().as_millis() as u64;
    if held >= pause {
        return Err("the slow reader was not reset while it was slow".into());
    }
    other.write_all(&payload).await?;
    let mut back = vec![0; payload.len()];
    other.read_exact(&mut back).await?;
    other.close().await?;
    if back != payload || !rest(&mut other).await?.is_empty() {
        return Err("the echo beside a slow reader differs".into());
    }
    echo(link, &payload).await?;
    let (outcome, read) = query(link, mark).await?;
    if outcome != wire::WAS_RESET {
        return Err(format!("the slow reader saw {}", char::from(outcome)).into());
    }
    Ok(format!("\"held_ms\":{held},\"read\":{read}"))
}

pub async fn reply(link: &Link) -> Result<String> {
    let wanted = wire::generated(100_000);
    let mut s = start(link, wire::REPLY, &(wanted.len() as u64).to_be_bytes()).await?;
    let got = rest(&mut s).await?;
    if got != wanted {
        return Err(format!("{} bytes of the reply, or others", got.len()).into());
    }
    let end = if s.is_closed() { "reset" } else { "end" };
    drop(s);
    echo(link, b"alive").await?;
    Ok(format!("\"bytes\":{},\"end\":\"{end}\"", got.len()))
}
