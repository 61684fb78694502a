//! A yamux peer: the command line of tests/interop/README.md.  Built once on each version of the `yamux` crate
//! and once on litep2p's wrapper of it.

mod bench;
mod cases;
mod dial;
#[cfg_attr(feature = "control", path = "control.rs")]
mod link;
mod resets;
mod serve;
mod session;
mod wire;

#[cfg(not(feature = "control"))]
use ::yamux;
#[cfg(feature = "control")]
use litep2p::yamux;

use futures::{AsyncRead, AsyncWrite};
use std::process::ExitCode;
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};
use yamux::Mode;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What a connection can be on.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Transport for T {}

/// A socket as the library wants it.
pub fn plain(tcp: TcpStream) -> Result<Compat<TcpStream>> {
    tcp.set_nodelay(true)?;
    Ok(tcp.compat())
}

/// The peer's name in the interop matrix.
pub const NAME: &str = env!("CARGO_PKG_DESCRIPTION");

/// What the library has no way to express: exit 77.
#[derive(Debug)]
pub struct Cannot(pub &'static str);

impl std::fmt::Display for Cannot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Cannot {}

/// The command line: the options may stand anywhere, the rest are positional.
struct Args {
    role: Option<Mode>,
    /// Bytes given to one write; 0: all in one.
    chunk: usize,
    rest: Vec<String>,
}

fn parse() -> Result<Args> {
    let mut args = Args {
        role: None,
        chunk: 64 * 1024,
        rest: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            Ok(words
                .next()
                .ok_or_else(|| format!("{word} needs a number"))?
                .parse()?)
        };
        match word.as_str() {
            "--chunk" => args.chunk = number()?.try_into()?,
            /* The crate chooses windows itself and has no such timeouts. */
            "--window" | "--open-timeout-ms" | "--close-timeout-ms" => drop(number()?),
            "--role" => {
                args.role = Some(match words.next().as_deref() {
                    Some("client") => Mode::Client,
                    Some("server") => Mode::Server,
                    _ => return Err("--role needs client or server".into()),
                })
            }
            _ if word.starts_with("--") => return Err(format!("no option {word}").into()),
            _ => args.rest.push(word),
        }
    }
    Ok(args)
}

async fn run() -> Result<()> {
    let args = parse()?;
    let words: Vec<&str> = args.rest.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", addr] => serve::serve(addr, args.role.unwrap_or(Mode::Server), args.chunk).await,
        ["dial", addr, case @ ..] => {
            dial::dial(addr, args.role.unwrap_or(Mode::Client), args.chunk, case).await
        }
        ["pair", streams, write, seconds] => {
            bench::pair(streams.parse()?, write.parse()?, seconds.parse()?).await
        }
        _ => Err(
            "usage: peer serve ADDR | dial ADDR CASE [ARG...] | pair STREAMS WRITE SECONDS".into(),
        ),
    }
}

fn main() -> ExitCode {
    let rt = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("runtime");
    match rt.block_on(run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{NAME} peer: {e}");
            if e.is::<Cannot>() {
                ExitCode::from(77)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
