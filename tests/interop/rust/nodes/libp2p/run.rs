//! What runs on the substreams of an open notification stream, one task each.

use super::frame;
use futures::future::{select, Either};
use futures::io::{AsyncWriteExt, BufReader};
use futures::FutureExt;
use libp2p_identity::PeerId;
use libp2p_swarm::Stream;
use std::future::{poll_fn, Future};
use std::io;
use std::pin::pin;
use std::task::Poll;
use tokio::sync::{mpsc, oneshot};

/// Reads until the end, or until it is told to stop; then closes.  Returns why.
pub async fn read<F: Future<Output = bool>>(
    mut stream: BufReader<Stream>,
    peer: PeerId,
    most: usize,
    stops: oneshot::Receiver<()>,
    mut hand_over: impl FnMut(PeerId, Vec<u8>) -> F,
) -> String {
    let reason = {
        let work = pin!(async {
            loop {
                match frame::read(&mut stream, most).await {
                    Ok(Some(bytes)) => {
                        if !hand_over(peer, bytes).await {
                            return "user-gone".to_string();
                        }
                    }
                    Ok(None) => return "ended".into(),
                    Err(e) => return crate::events::word(&format!("read:{e}")),
                }
            }
        });
        match select(work, stops).await {
            Either::Left((reason, _)) => reason,
            Either::Right(_) => "closed-here".into(),
        }
    };
    let _ = stream.close().await;
    reason
}

/// The next of either queue; nothing when both are closed.
async fn next(
    waiting: &mut mpsc::Receiver<Vec<u8>>,
    hurried: &mut mpsc::Receiver<Vec<u8>>,
) -> Option<Vec<u8>> {
    poll_fn(|cx| match waiting.poll_recv(cx) {
        Poll::Ready(Some(bytes)) => Poll::Ready(Some(bytes)),
        one => match (one, hurried.poll_recv(cx)) {
            (_, Poll::Ready(Some(bytes))) => Poll::Ready(Some(bytes)),
            (Poll::Ready(None), Poll::Ready(None)) => Poll::Ready(None),
            _ => Poll::Pending,
        },
    })
    .await
}

async fn write_all(
    stream: &mut Stream,
    most: usize,
    waiting: &mut mpsc::Receiver<Vec<u8>>,
    hurried: &mut mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    loop {
        let bytes = match next(waiting, hurried).now_or_never() {
            Some(bytes) => bytes,
            None => {
                stream.flush().await?; // nothing more for now
                next(waiting, hurried).await
            }
        };
        match bytes {
            Some(bytes) => frame::write(stream, &bytes, most).await?,
            None => return Ok(()),
        }
    }
}

/// Writes what is queued until it is told to stop, and then not what still is; closes.  Returns why.
pub async fn write(
    mut stream: Stream,
    most: usize,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    mut hurried: mpsc::Receiver<Vec<u8>>,
    stops: oneshot::Receiver<()>,
) -> String {
    let reason = {
        let work = pin!(write_all(&mut stream, most, &mut waiting, &mut hurried));
        match select(work, stops).await {
            Either::Left((Ok(()), _)) => "user-gone".to_string(),
            Either::Left((Err(e), _)) => crate::events::word(&format!("write:{e}")),
            Either::Right(_) => "closed-here".into(),
        }
    };
    let _ = stream.close().await;
    reason
}
