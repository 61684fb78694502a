//! One connection: the task that drives it and the handle that opens streams on it and closes it.

use crate::{Args, Result, Transport};
use std::future::poll_fn;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot, watch};
use yamux::{Config, Connection};
pub use yamux::{Mode, Stream};

/// Nothing is sent of a stream before its first write.
pub const LAZY: bool = true;
/// The end of a connection is told before it comes.
pub const ENDS_BY_WORD: bool = true;

/// The streams that the peer opens; ends with the connection.
pub type Inbound = mpsc::UnboundedReceiver<Stream>;

enum Command {
    Open(oneshot::Sender<Stream>),
    Close,
}

/// The connection closes gracefully when every clone is gone.
#[derive(Clone)]
pub struct Link {
    commands: mpsc::Sender<Command>,
    /// Why the connection ended, once it has.
    end: watch::Receiver<Option<String>>,
}

struct Driver<T> {
    conn: Connection<T>,
    commands: mpsc::Receiver<Command>,
    wish: Option<oneshot::Sender<Stream>>,
    closing: bool,
    inbound: mpsc::UnboundedSender<Stream>,
}

impl<T: Transport> Driver<T> {
    /// Ready, with the reason, when the connection is over.  Every branch that made progress polls again.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        loop {
            if self.closing {
                return self.conn.poll_close(cx).map(|done| match done {
                    Ok(()) => "closed here".into(),
                    Err(e) => e.to_string(),
                });
            }
            if self.wish.is_none() {
                match self.commands.poll_recv(cx) {
                    Poll::Ready(Some(Command::Open(wish))) => self.wish = Some(wish),
                    Poll::Ready(Some(Command::Close) | None) => {
                        self.closing = true;
                        continue;
                    }
                    Poll::Pending => {}
                }
            }
            if self.wish.is_some() {
                match self.conn.poll_new_outbound(cx) {
                    Poll::Ready(Ok(stream)) => {
                        if let Some(wish) = self.wish.take() {
                            let _ = wish.send(stream);
                        }
                        continue;
                    }
                    Poll::Ready(Err(e)) => return Poll::Ready(e.to_string()),
                    Poll::Pending => {}
                }
            }
            match self.conn.poll_next_inbound(cx) {
                /* A side that takes none drops it here, which resets it. */
                Poll::Ready(Some(Ok(stream))) => drop(self.inbound.send(stream)),
                Poll::Ready(Some(Err(e))) => return Poll::Ready(e.to_string()),
                Poll::Ready(None) => return Poll::Ready("ended by the peer".into()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Link {
    pub fn start(socket: impl Transport, mode: Mode, _: Args) -> (Link, Inbound) {
        let (commands, receiver) = mpsc::channel(64);
        let (inbound, streams) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(None);
        let conn = Connection::new(socket, Config::default(), mode);
        let mut driver = Driver {
            conn,
            commands: receiver,
            wish: None,
            closing: false,
            inbound,
        };
        tokio::spawn(async move {
            let reason = poll_fn(|cx| driver.poll(cx)).await;
            drop(driver);
            ended.send_replace(Some(reason));
        });
        (Link { commands, end }, streams)
    }

    pub async fn open(&self) -> Result<Stream> {
        let (tx, rx) = oneshot::channel();
        self.commands
            .send(Command::Open(tx))
            .await
            .map_err(|_| "the connection is over")?;
        rx.await
            .map_err(|_| "the connection ended while opening".into())
    }

    /// Graceful close: queued frames, GO_AWAY, end of the socket.  Nothing to do when it is over.
    pub async fn close(&self) -> Result<String> {
        let _ = self.commands.send(Command::Close).await;
        self.ended().await
    }

    /// Waits for the end of the connection and says why it ended.
    pub async fn ended(&self) -> Result<String> {
        let mut end = self.end.clone();
        let reason = end.wait_for(Option::is_some).await?;
        Ok(reason.clone().unwrap_or_default())
    }
}
