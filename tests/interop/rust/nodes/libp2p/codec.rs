//! Requests and responses of litep2p's wire: one frame each on a substream of their own.

use super::frame;
use futures::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use libp2p_swarm::StreamProtocol;
use std::io::{Error, ErrorKind, Result};

#[derive(Clone)]
pub struct Codec {
    pub max_size: usize,
}

/// A request, or a response; the name that was agreed on where it is read.
#[derive(Debug)]
pub struct Message {
    pub name: String,
    pub bytes: Vec<u8>,
    /// The substream is dropped behind it, not closed.
    pub reset: bool,
}

impl Codec {
    async fn read<T: AsyncRead + Unpin + Send>(
        &self,
        name: &StreamProtocol,
        io: &mut T,
    ) -> Result<Message> {
        let mut io = BufReader::with_capacity(1024, io);
        match frame::read(&mut io, self.max_size).await? {
            Some(bytes) => Ok(Message {
                name: name.to_string(),
                bytes,
                reset: false,
            }),
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl libp2p_request_response::Codec for Codec {
    type Protocol = StreamProtocol;
    type Request = Message;
    type Response = Message;

    async fn read_request<T: AsyncRead + Unpin + Send>(
        &mut self,
        name: &StreamProtocol,
        io: &mut T,
    ) -> Result<Message> {
        self.read(name, io).await
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(
        &mut self,
        name: &StreamProtocol,
        io: &mut T,
    ) -> Result<Message> {
        self.read(name, io).await
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        message: Message,
    ) -> Result<()> {
        frame::write(io, &message.bytes, self.max_size).await
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        message: Message,
    ) -> Result<()> {
        frame::write(io, &message.bytes, self.max_size).await?;
        if message.reset {
            io.flush().await?;
            return Err(Error::other("reset as asked")); // the handler drops the substream
        }
        Ok(())
    }
}
