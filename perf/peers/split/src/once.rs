//! One iteration, all of which is timed: listen, dial, negotiate, open, write, read, let go.

use crate::{accept, dial, unlisten, Load, Node, READ};
use futures::{channel::oneshot, future::poll_fn, AsyncRead, AsyncWrite};
use libp2p_core::transport::ListenerId;
use libp2p_core::Transport;
use std::pin::Pin;
use tokio::runtime::Runtime;

pub fn run(
    rt: &Runtime,
    load: &Load,
    receiver: &mut Option<Node>,
    sender: &mut Node,
    bytes: usize,
    check: bool,
) {
    let mut node = receiver.take().unwrap();
    let (said, heard) = oneshot::channel();
    let payload = load.payload;
    let id = ListenerId::next();
    {
        let _guard = rt.enter();
        node.listen_on(id, load.address()).unwrap();
    }

    let task = rt.spawn(async move {
        let (conn, mut stream) = accept(&mut node, said).await;
        let mut buf = vec![0u8; bytes];
        let mut off = 0;
        while off < bytes {
            let end = bytes.min(off + READ);
            let n = poll_fn(|cx| Pin::new(&mut stream).poll_read(cx, &mut buf[off..end]))
                .await
                .unwrap();
            assert!(n > 0, "the end came early");
            off += n;
        }
        assert!(
            !check || buf == payload[..bytes],
            "other bytes than were sent"
        );
        drop((conn, stream));
        unlisten(&mut node, id).await;
        node
    });

    rt.block_on(async {
        let address = heard.await.unwrap();
        let (conn, mut stream) = dial(sender, address).await;
        let mut off = 0;
        while off < bytes {
            off += poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, &payload[off..bytes]))
                .await
                .unwrap();
        }
        poll_fn(|cx| Pin::new(&mut stream).poll_flush(cx))
            .await
            .unwrap();
        drop((conn, stream));
    });
    *receiver = Some(rt.block_on(task).unwrap());
}
