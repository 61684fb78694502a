//! An interop peer: the command line of tests/interop/README.md.  Built once on each library: a version of the `yamux`
//! crate, litep2p's wrapper of it, rust-libp2p's mplex, and a rust-libp2p transport with all its upgrades.

mod bench;
mod beside;
mod cases;
mod dial;
#[cfg_attr(feature = "control", path = "control.rs")]
#[cfg_attr(feature = "mplex", path = "muxer.rs")]
#[cfg_attr(feature = "node", path = "node.rs")]
mod link;
#[cfg(feature = "node")]
mod muxer;
#[cfg_attr(feature = "node", path = "transport.rs")]
mod net;
mod openrate;
mod resets;
mod serve;
mod session;
mod wire;

use futures::{AsyncRead, AsyncWrite};
use link::Mode;
use std::process::ExitCode;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What a connection can be on.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Transport for T {}

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

/// The options of the command line.
pub struct Options {
    #[cfg_attr(feature = "node", allow(dead_code))]
    pub role: Option<Mode>,
    /// Bytes given to one write; 0: all in one.
    pub chunk: usize,
    /// Bytes of a frame, where the library lets one choose.
    #[cfg_attr(not(any(feature = "mplex", feature = "node")), allow(dead_code))]
    pub split: Option<usize>,
    /// A stream whose reader is slow is reset, where the library can.
    #[cfg_attr(not(any(feature = "mplex", feature = "node")), allow(dead_code))]
    pub impatient: bool,
    /// Of a connection with its upgrades.
    #[cfg(feature = "node")]
    pub node: net::Options,
}

/// They stand for as long as the process.
pub type Args = &'static Options;

/// The options may stand anywhere; the rest are positional.
fn parse() -> Result<(Args, Vec<String>)> {
    let mut options = Options {
        role: None,
        chunk: 64 * 1024,
        split: None,
        impatient: false,
        #[cfg(feature = "node")]
        node: net::Options::default(),
    };
    let mut rest = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        #[cfg(feature = "node")]
        if options.node.take(&word, &mut words)? {
            continue;
        }
        let mut number = || -> Result<u64> {
            Ok(words
                .next()
                .ok_or_else(|| format!("{word} needs a number"))?
                .parse()?)
        };
        match word.as_str() {
            "--chunk" => options.chunk = number()?.try_into()?,
            "--slow-ms" => options.impatient = number()? > 0,
            "--split" => options.split = Some(number()?.try_into()?),
            /* The crates choose windows themselves and have no such timeouts. */
            "--window" | "--open-timeout-ms" | "--close-timeout-ms" => {
                let _ = number()?;
            }
            "--role" => {
                options.role = Some(match words.next().as_deref() {
                    Some("client") => Mode::Client,
                    Some("server") => Mode::Server,
                    _ => return Err("--role needs client or server".into()),
                })
            }
            _ if word.starts_with("--") => return Err(format!("no option {word}").into()),
            _ => rest.push(word),
        }
    }
    Ok((Box::leak(Box::new(options)), rest))
}

async fn run() -> Result<()> {
    let (args, rest) = parse()?;
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", addr] => net::serve(addr, args, serve::Server::new(args.chunk)).await,
        ["dial", addr, case @ ..] => dial::dial(addr, args, case).await,
        ["pair", streams, write, seconds] => {
            let (streams, write, seconds) = (streams.parse()?, write.parse()?, seconds.parse()?);
            net::pair(args, bench::Pair::Bench { streams, write, seconds }).await
        }
        ["beside", bulk, rate, seconds] => {
            let (bulk, rate, seconds) = (bulk.parse()?, rate.parse()?, seconds.parse()?);
            net::pair(args, bench::Pair::Beside { bulk, rate, seconds }).await
        }
        ["openrate", count, at_once] => {
            let (count, at_once) = (count.parse()?, at_once.parse()?);
            net::pair(args, bench::Pair::OpenRate { count, at_once }).await
        }
        _ => Err(
            "usage: peer serve ADDR | dial ADDR CASE [ARG...] | pair STREAMS WRITE SECONDS | beside BULK RATE SECONDS | openrate N AT_ONCE"
                .into(),
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
