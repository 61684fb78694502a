//! A connection that is kept: the time of some MiB over its one stream, given per MiB.

use crate::{accept, dial, Load, PAYLOAD, READ};
use futures::{
    channel::{mpsc, oneshot},
    future::poll_fn,
    AsyncRead, AsyncWrite, StreamExt,
};
use libp2p_core::{
    muxing::{StreamMuxerBox, SubstreamBox},
    transport::ListenerId,
    Transport,
};
use libp2p_identity::Keypair;
use std::{pin::Pin, time::Instant};
use tokio::runtime::Runtime;

pub struct Pair<'a> {
    rt: &'a Runtime,
    payload: &'static [u8],
    mib: usize,
    stream: SubstreamBox,
    received: mpsc::UnboundedReceiver<()>,
    _conn: StreamMuxerBox,
}

impl<'a> Pair<'a> {
    pub fn new(rt: &'a Runtime, load: &Load, keys: &Keypair, mib: usize) -> Self {
        let (said, heard) = oneshot::channel();
        let (done, received) = mpsc::unbounded();
        let _guard = rt.enter();
        let (mut node, mut sender) = (load.node(keys), load.node(keys));
        node.listen_on(ListenerId::next(), load.address()).unwrap();
        rt.spawn(async move {
            let (_conn, mut stream) = accept(&mut node, said).await;
            let mut buf = vec![0u8; PAYLOAD];
            let (mut off, mut all) = (0, 0);
            loop {
                let end = PAYLOAD.min(off + READ);
                let n = poll_fn(|cx| Pin::new(&mut stream).poll_read(cx, &mut buf[off..end]))
                    .await
                    .unwrap_or(0);
                if n == 0 {
                    return;
                }
                off = (off + n) % PAYLOAD;
                all += n;
                if all == mib * PAYLOAD {
                    all = 0;
                    let _ = done.unbounded_send(());
                }
            }
        });
        let (conn, stream) = rt.block_on(async { dial(&mut sender, heard.await.unwrap()).await });
        Pair {
            rt,
            payload: load.payload,
            mib,
            stream,
            received,
            _conn: conn,
        }
    }

    /// Microseconds per MiB.
    pub fn measure(&mut self) -> f64 {
        let from = Instant::now();
        self.rt.block_on(async {
            for _ in 0..self.mib {
                let mut off = 0;
                while off < PAYLOAD {
                    off += poll_fn(|cx| {
                        Pin::new(&mut self.stream).poll_write(cx, &self.payload[off..])
                    })
                    .await
                    .unwrap();
                }
            }
            poll_fn(|cx| Pin::new(&mut self.stream).poll_flush(cx))
                .await
                .unwrap();
            self.received.next().await.unwrap();
        });
        from.elapsed().as_secs_f64() * 1e6 / self.mib as f64
    }
}
