//! One connection of a node: a multiplexer's, with what was agreed on and known when it began, and streams that agree on
//! their protocol before they are used.

use crate::muxer;
pub use crate::muxer::{Inbound, Mode, Stream, ENDS_BY_WORD, LAZY};
use crate::Result;
use libp2p_core::muxing::{StreamMuxerBox, SubstreamBox};
use multistream_select::{dialer_select_proto, listener_select_proto, Version};
use std::iter;
use std::sync::Arc;

/// What streams are negotiated for.
pub const PROTOCOL: &str = "/reeve/interop/1";

/// Of a connection.
pub struct Facts {
    /// Both ids, as text, and the name of the multiplexer.
    pub own: String,
    pub peer: String,
    pub muxer: &'static str,
    /// How streams are negotiated, if they are.
    pub negotiate: Option<Version>,
}

/// The connection closes gracefully when every clone is gone.
#[derive(Clone)]
pub struct Link {
    link: muxer::Link,
    pub facts: Arc<Facts>,
}

impl Link {
    pub fn over(conn: StreamMuxerBox, facts: Facts) -> (Link, Inbound) {
        let (link, inbound) = muxer::Link::over(conn, facts.muxer.contains("mplex"), false);
        let facts = Arc::new(facts);
        (Link { link, facts }, inbound)
    }

    pub async fn open(&self) -> Result<Stream> {
        self.open_for(PROTOCOL).await
    }

    /// A stream for any protocol.
    pub async fn open_for(&self, name: &'static str) -> Result<Stream> {
        let stream = self.link.open().await?;
        let Some(version) = self.facts.negotiate else {
            return Ok(stream);
        };
        stream
            .wrap(|io| async move {
                let (_, io) = dialer_select_proto(io, iter::once(name), version).await?;
                Ok(SubstreamBox::new(io))
            })
            .await
    }

    /// A stream of the peer's, ready for use.
    pub async fn accept(&self, stream: Stream) -> Result<Stream> {
        if self.facts.negotiate.is_none() {
            return Ok(stream);
        }
        stream
            .wrap(|io| async move {
                let (_, io) = listener_select_proto(io, iter::once(PROTOCOL)).await?;
                Ok(SubstreamBox::new(io))
            })
            .await
    }

    pub async fn close(&self) -> Result<String> {
        self.link.close().await
    }

    pub async fn ended(&self) -> Result<String> {
        self.link.ended().await
    }
}
