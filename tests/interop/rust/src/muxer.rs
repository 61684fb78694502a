//! One connection under any multiplexer of rust-libp2p: the task that drives it, and its streams.
//!
//! Two things that a user of its mplex meets are dealt with here.  Frames that the crate owes a stream which was dropped
//! (the reset, the close behind the peer's) leave when another stream flushes, hence the driver opens one of its own to
//! flush with.  And a stream that is dropped while its full queue holds up the connection holds it up for ever, hence its
//! queue is emptied first.

#[cfg(feature = "mplex")]
use crate::Transport;
use crate::{Args, Result};
use futures::task::{noop_waker, AtomicWaker};
use futures::{AsyncRead, AsyncWrite};
use libp2p_core::muxing::{StreamMuxer, StreamMuxerBox, SubstreamBox};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use tokio::sync::{mpsc, oneshot, watch};

const PIECE: usize = 64 * 1024;

/// Who is the client makes no difference to mplex; in a node it follows from who dials.
#[derive(Clone, Copy)]
pub enum Mode {
    Client,
    Server,
}

/// A stream is announced when it is read or written.
pub const LAZY: bool = false;
pub const ENDS_BY_WORD: bool = false;

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

/// What streams tell their driver.
#[derive(Default)]
struct Bell {
    /// A stream was dropped before both sides had ended it, so a frame is owed.
    owed: AtomicBool,
    driver: AtomicWaker,
}

/// Declared behind the stream in its handle, so that it rings when that is gone.
struct Ring {
    bell: Arc<Bell>,
    ended: [bool; 2], // here, there
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.ended != [true, true] {
            self.bell.owed.store(true, Ordering::Release);
            self.bell.driver.wake();
        }
    }
}

/// A stream.  A write is flushed when it was taken as a whole, or else before the next read.
pub struct Stream {
    io: SubstreamBox,
    unflushed: bool,
    empties: bool,
    ring: Ring,
}

/// What a stream has at once.
pub struct Packet(Vec<u8>);

impl AsRef<[u8]> for Packet {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Stream {
    /// Puts a protocol between the stream and its user.
    #[cfg(feature = "node")]
    pub async fn wrap<F>(mut self, wrapped: impl FnOnce(SubstreamBox) -> F) -> Result<Stream>
    where
        F: std::future::Future<Output = Result<SubstreamBox>>,
    {
        let nothing = SubstreamBox::new(futures::io::Cursor::new(Vec::new()));
        self.io = wrapped(std::mem::replace(&mut self.io, nothing)).await?;
        Ok(self)
    }

    /// A negotiation that failed must not be asked for more.
    fn failed(&mut self, e: io::Error) -> io::Result<usize> {
        self.empties = false;
        Err(e)
    }

    /// No multiplexer tells a reader a reset from an end.
    pub fn is_closed(&self) -> bool {
        false
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let waker = noop_waker();
        let mut buf = [0; 8192];
        while self.empties {
            match Pin::new(&mut self.io).poll_read(&mut Context::from_waker(&waker), &mut buf) {
                Poll::Ready(Ok(n)) if n > 0 => {}
                _ => break,
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.unflushed {
            match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Ready(Err(e)) => return Poll::Ready(self.failed(e)),
                flushed => self.unflushed = flushed.is_pending(),
            }
        }
        match Pin::new(&mut self.io).poll_read(cx, buf) {
            Poll::Ready(Err(e)) => Poll::Ready(self.failed(e)),
            read => {
                self.ring.ended[1] |= matches!(read, Poll::Ready(Ok(0)) if !buf.is_empty());
                read
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let n = match ready!(Pin::new(&mut self.io).poll_write(cx, buf)) {
            Err(e) => return Poll::Ready(self.failed(e)),
            Ok(n) => n,
        };
        self.unflushed = true;
        if n == buf.len() {
            match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Ready(Err(e)) => return Poll::Ready(self.failed(e)),
                flushed => self.unflushed = flushed.is_pending(),
            }
        }
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.io).poll_close(cx);
        self.ring.ended[0] |= matches!(closed, Poll::Ready(Ok(())));
        closed
    }
}

impl futures::Stream for Stream {
    type Item = io::Result<Packet>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut buf = vec![0; PIECE];
        Poll::Ready(match ready!(self.poll_read(cx, &mut buf)) {
            Ok(0) => None,
            Ok(n) => {
                buf.truncate(n);
                Some(Ok(Packet(buf)))
            }
            Err(e) => Some(Err(e)),
        })
    }
}

struct Driver {
    conn: StreamMuxerBox,
    commands: mpsc::Receiver<Command>,
    wish: Option<oneshot::Sender<Stream>>,
    closing: bool,
    inbound: mpsc::UnboundedSender<Stream>,
    bell: Arc<Bell>,
    mplex: bool,
    /// mplex: the stream to flush with, once there was a need.
    flusher: Option<SubstreamBox>,
}

impl Driver {
    fn stream(&self, io: SubstreamBox) -> Stream {
        Stream {
            io,
            unflushed: false,
            empties: self.mplex,
            ring: Ring {
                bell: self.bell.clone(),
                ended: [false, false],
            },
        }
    }

    /// Ready, with the reason, when the connection is over.  Every branch that made progress polls again.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        self.bell.driver.register(cx.waker());
        loop {
            if self.closing {
                return Pin::new(&mut self.conn)
                    .poll_close(cx)
                    .map(|done| match done {
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
            let owed = self.mplex && self.bell.owed.load(Ordering::Acquire);
            if owed && self.flusher.is_none() {
                if let Poll::Ready(Ok(io)) = Pin::new(&mut self.conn).poll_outbound(cx) {
                    self.flusher = Some(io);
                }
            }
            if self.wish.is_some() {
                match Pin::new(&mut self.conn).poll_outbound(cx) {
                    Poll::Ready(Ok(io)) => {
                        if let Some(wish) = self.wish.take() {
                            let _ = wish.send(self.stream(io));
                        }
                        continue;
                    }
                    Poll::Ready(Err(e)) => return Poll::Ready(e.to_string()),
                    Poll::Pending => {}
                }
            }
            match Pin::new(&mut self.conn).poll_inbound(cx) {
                /* A side that takes none drops it here, which resets it. */
                Poll::Ready(Ok(io)) => {
                    let _ = self.inbound.send(self.stream(io));
                    continue;
                }
                Poll::Ready(Err(e)) => return Poll::Ready(e.to_string()),
                Poll::Pending => {}
            }
            match Pin::new(&mut self.conn).poll(cx) {
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(e)) => return Poll::Ready(e.to_string()),
                Poll::Pending => {}
            }
            return self.flush(cx);
        }
    }

    /// What the crate put into its buffer for streams that are gone or too slow.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        if let Some(flusher) = &mut self.flusher {
            let _ = Pin::new(flusher).poll_flush(cx);
        }
        Poll::Pending
    }
}

/// mplex as the command line wants it.
pub fn mplex_config(args: Args) -> libp2p_mplex::Config {
    let mut config = libp2p_mplex::Config::default();
    if let Some(size) = args.split {
        config.set_split_send_size(size);
    }
    if args.impatient {
        config.set_max_buffer_behaviour(libp2p_mplex::MaxBufferBehaviour::ResetStream);
    }
    config
}

impl Link {
    /// mplex on a bare socket.
    #[cfg(feature = "mplex")]
    pub fn start(socket: impl Transport, mode: Mode, args: Args) -> (Link, Inbound) {
        use libp2p_core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
        let config = mplex_config(args);
        let name = "/mplex/6.7.0"; // whatever it is, it was agreed on
        let upgraded = match mode {
            Mode::Client => config.upgrade_outbound(socket, name),
            Mode::Server => config.upgrade_inbound(socket, name),
        };
        let muxer = upgraded.into_inner().expect("nothing is exchanged");
        Link::over(StreamMuxerBox::new(muxer), true, args.impatient)
    }

    /// Drives a connection; its streams may be mplex's, which may reset slow readers.
    pub fn over(conn: StreamMuxerBox, mplex: bool, impatient: bool) -> (Link, Inbound) {
        let (commands, receiver) = mpsc::channel(64);
        let (inbound, streams) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(None);
        let mut driver = Driver {
            conn,
            commands: receiver,
            wish: None,
            closing: false,
            inbound,
            bell: Arc::new(Bell {
                owed: AtomicBool::new(impatient),
                driver: AtomicWaker::new(),
            }),
            mplex,
            flusher: None,
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

    /// Graceful close: queued frames, end of the socket.  Nothing to do when it is over.
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
