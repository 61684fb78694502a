//! One connection, driven by litep2p's `ControlledConnection`, and the `Control` that opens streams on it.

use crate::{Args, Result, Transport};
use futures::StreamExt;
use litep2p::yamux::{Config, Connection, Control, ControlledConnection};
pub use litep2p::yamux::{Mode, Stream};
use tokio::sync::{mpsc, watch};

/// Nothing is sent of a stream before its first write.
pub const LAZY: bool = true;
/// The end of a connection is told before it comes.
pub const ENDS_BY_WORD: bool = true;

/// The streams that the peer opens; ends with the connection.
pub type Inbound = mpsc::UnboundedReceiver<Stream>;

/// The connection closes gracefully when every clone is gone.
#[derive(Clone)]
pub struct Link {
    control: Control,
    /// Why the connection ended, once it has.
    end: watch::Receiver<Option<String>>,
}

/// After an error or the end the wrapper is not polled again: it would wait for ever.
async fn drive(
    mut conn: ControlledConnection<impl Transport>,
    inbound: mpsc::UnboundedSender<Stream>,
) -> String {
    loop {
        match conn.next().await {
            /* A side that takes none drops it here, which resets it. */
            Some(Ok(stream)) => drop(inbound.send(stream)),
            Some(Err(e)) => return e.to_string(),
            None => return "ended".into(),
        }
    }
}

impl Link {
    pub fn start(socket: impl Transport, mode: Mode, _: Args) -> (Link, Inbound) {
        let (inbound, streams) = mpsc::unbounded_channel();
        let (ended, end) = watch::channel(None);
        let (control, conn) = Control::new(Connection::new(socket, Config::default(), mode));
        tokio::spawn(async move {
            let reason = drive(conn, inbound).await;
            ended.send_replace(Some(reason));
        });
        (Link { control, end }, streams)
    }

    pub async fn open(&self) -> Result<Stream> {
        Ok(self.control.clone().open_stream().await?)
    }

    /// Graceful close: queued frames, GO_AWAY, end of the socket.  Nothing to do when it is over.
    pub async fn close(&self) -> Result<String> {
        self.control.clone().close().await?;
        self.ended().await
    }

    /// Waits for the end of the connection and says why it ended.
    pub async fn ended(&self) -> Result<String> {
        let mut end = self.end.clone();
        let reason = end.wait_for(Option::is_some).await?;
        Ok(reason.clone().unwrap_or_default())
    }
}
