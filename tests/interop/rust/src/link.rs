//! One connection: the task that drives it and the handle that opens streams on it.

use crate::Result;
use std::future::poll_fn;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};
use yamux::{Config, Connection, Mode, Stream};

type Wish = oneshot::Sender<Stream>;

/// Opens streams; the connection closes once every clone of `wishes` is gone.
pub struct Link {
    wishes: mpsc::Sender<Wish>,
    driver: JoinHandle<()>,
}

struct Driver<F> {
    conn: Connection<Compat<TcpStream>>,
    wishes: mpsc::Receiver<Wish>,
    wish: Option<Wish>,
    closing: bool,
    inbound: F,
}

impl<F: FnMut(Stream) + Unpin> Driver<F> {
    /// Ready when the connection is over.  Every branch that made progress polls again.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.closing {
                return self.conn.poll_close(cx).map(|_| ());
            }
            if self.wish.is_none() {
                match self.wishes.poll_recv(cx) {
                    Poll::Ready(Some(wish)) => self.wish = Some(wish),
                    Poll::Ready(None) => {
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
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            match self.conn.poll_next_inbound(cx) {
                Poll::Ready(Some(Ok(stream))) => (self.inbound)(stream),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Link {
    pub fn start<F>(tcp: TcpStream, mode: Mode, inbound: F) -> Result<Link>
    where
        F: FnMut(Stream) + Unpin + Send + 'static,
    {
        tcp.set_nodelay(true)?;
        let (tx, rx) = mpsc::channel(64);
        let conn = Connection::new(tcp.compat(), Config::default(), mode);
        let mut driver = Driver { conn, wishes: rx, wish: None, closing: false, inbound };
        let task = tokio::spawn(async move { poll_fn(|cx| driver.poll(cx)).await });
        Ok(Link { wishes: tx, driver: task })
    }

    pub async fn open(&self) -> Result<Stream> {
        let (tx, rx) = oneshot::channel();
        self.wishes.send(tx).await.map_err(|_| "the connection is over")?;
        rx.await.map_err(|_| "the connection ended while opening".into())
    }

    /// Graceful close: queued frames, GO_AWAY, end of the socket.
    pub async fn close(self) -> Result<()> {
        drop(self.wishes);
        self.driver.await?;
        Ok(())
    }

    /// Waits for the peer to end the connection; opens nothing.
    pub async fn serve(self) -> Result<()> {
        let Link { wishes, driver } = self;
        driver.await?;
        drop(wishes);
        Ok(())
    }
}
