//! A yamux peer on the Rust `yamux` crate: the command line of tests/interop/README.md.

mod bench;
mod dial;
mod link;
mod serve;
mod wire;

use std::process::ExitCode;
use yamux::Mode;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The command line: the options may stand anywhere, the rest are positional.
struct Args {
    role: Option<Mode>,
    chunk: usize,
    rest: Vec<String>,
}

fn parse() -> Result<Args> {
    let mut args = Args { role: None, chunk: 64 * 1024, rest: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--role" => {
                args.role = Some(match words.next().as_deref() {
                    Some("client") => Mode::Client,
                    Some("server") => Mode::Server,
                    _ => return Err("--role needs client or server".into()),
                })
            }
            "--chunk" => args.chunk = words.next().ok_or("--chunk needs a number")?.parse()?,
            _ => args.rest.push(word),
        }
    }
    Ok(args)
}

async fn run() -> Result<()> {
    let args = parse()?;
    let words: Vec<&str> = args.rest.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", addr] => serve::serve(addr, args.role.unwrap_or(Mode::Server)).await,
        ["dial", addr, case @ ..] => {
            dial::dial(addr, args.role.unwrap_or(Mode::Client), args.chunk, case).await
        }
        ["pair", streams, write, seconds] => {
            bench::pair(streams.parse()?, write.parse()?, seconds.parse()?).await
        }
        _ => Err("usage: peer serve ADDR | dial HOST:PORT CASE [ARG...] | pair STREAMS WRITE SECONDS".into()),
    }
}

fn main() -> ExitCode {
    let rt = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    match rt.block_on(run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("rust peer: {e}");
            ExitCode::FAILURE
        }
    }
}
