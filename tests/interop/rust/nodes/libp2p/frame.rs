//! Frames: a length as an unsigned LEB128 of at most 10 bytes, then as many bytes.

use futures::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use std::io::{Error, ErrorKind, Result};

/// Up to here a frame is one write, and so one frame of yamux.
const TOGETHER: usize = 16 * 1024 - 10;

fn prefix(mut length: usize) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    let mut used = 0;
    loop {
        bytes[used] = length as u8 & 0x7f;
        length >>= 7;
        if length == 0 {
            return (bytes, used + 1);
        }
        bytes[used] |= 0x80;
        used += 1;
    }
}

fn too_large(length: usize) -> Error {
    Error::new(ErrorKind::InvalidData, format!("too large: {length}"))
}

/// Writes a frame, and does not flush it.
pub async fn write<T: AsyncWrite + Unpin>(io: &mut T, bytes: &[u8], most: usize) -> Result<()> {
    if bytes.len() > most {
        return Err(too_large(bytes.len()));
    }
    let (head, used) = prefix(bytes.len());
    if bytes.len() <= TOGETHER {
        let mut whole = Vec::with_capacity(used + bytes.len());
        whole.extend_from_slice(&head[..used]);
        whole.extend_from_slice(bytes);
        return io.write_all(&whole).await;
    }
    io.write_all(&head[..used]).await?;
    io.write_all(bytes).await
}

/// Nothing at an end before a frame.  `io` should be buffered: the length is read byte by byte.
pub async fn read<T: AsyncRead + Unpin>(io: &mut T, most: usize) -> Result<Option<Vec<u8>>> {
    let mut length = 0u64;
    for at in 0..10 {
        let mut byte = [0];
        if io.read(&mut byte).await? == 0 {
            if at == 0 {
                return Ok(None);
            }
            return Err(ErrorKind::UnexpectedEof.into());
        }
        length |= u64::from(byte[0] & 0x7f) << (7 * at);
        if byte[0] & 0x80 == 0 {
            if length > most as u64 {
                return Err(too_large(length as usize));
            }
            let mut bytes = vec![0; length as usize];
            io.read_exact(&mut bytes).await?;
            return Ok(Some(bytes));
        }
    }
    Err(Error::new(ErrorKind::InvalidData, "length of a frame"))
}
