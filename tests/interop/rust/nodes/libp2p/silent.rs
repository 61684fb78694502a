//! A peer that says nothing more once it has come to a certain step: what the other side's timeouts are for.

use crate::command::say;
use crate::options::Options;
use crate::Result;
use futures::future::{pending, poll_fn};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite};
use libp2p_core::muxing::{StreamMuxer, StreamMuxerBox};
use libp2p_core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p_identity::Keypair;
use multistream_select::{dialer_select_proto, listener_select_proto, Version};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::compat::TokioAsyncReadCompatExt;

/// The last thing that is done.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Step {
    /// The TCP connection stands.
    Tcp,
    /// `/noise` is agreed on.
    NoiseName,
    Noise,
    /// `/yamux/1.0.0` is agreed on; nothing is said in it.
    YamuxName,
    /// Substreams are taken and never answered.
    Yamux,
    /// Their names are agreed on; nothing is read of them.
    Substream,
}

fn parse(text: &str) -> Result<Step> {
    Ok(match text {
        "tcp" => Step::Tcp,
        "noise-name" => Step::NoiseName,
        "noise" => Step::Noise,
        "yamux-name" => Step::YamuxName,
        "yamux" => Step::Yamux,
        "substream" => Step::Substream,
        _ => return Err(format!("no step: {text}").into()),
    })
}

struct Silent {
    step: Step,
    key: Keypair,
    names: Vec<String>,
}

/// Never comes back: dials once where an address is given, and listens.
pub async fn run(step: &str, options: &Options, key: Keypair) -> Result<()> {
    let notifications = options.notifications.iter().flat_map(|p| p.names.clone());
    let requests = options.requests.iter().flat_map(|p| p.names.clone());
    let silent = Arc::new(Silent {
        step: parse(step)?,
        names: notifications.chain(requests).collect(),
        key,
    });
    let listener = TcpListener::bind(options.listen.ok_or("nowhere to listen")?).await?;
    say(format!("listening {}", listener.local_addr()?));
    say(format!("id {}", silent.key.public().to_peer_id()));
    std::thread::spawn(|| {
        let mut line = String::new();
        while std::io::stdin().read_line(&mut line).is_ok_and(|n| n > 0) && line.trim() != "quit" {
            line.clear();
        }
        std::process::exit(0);
    });
    if let Some(addr) = options.dial {
        let tcp = TcpStream::connect(addr).await?;
        tokio::spawn(silent.clone().watch(tcp, true));
    }
    loop {
        let (tcp, _) = listener.accept().await?;
        tokio::spawn(silent.clone().watch(tcp, false));
    }
}

impl Silent {
    async fn watch(self: Arc<Self>, tcp: TcpStream, dialer: bool) {
        if let Err(e) = self.talk(tcp, dialer).await {
            let reason = crate::events::word(&e.to_string());
            say(format!("silent failed={reason}"));
        }
    }

    /// As far as the step; then holds what there is, and says when it was reached.
    async fn talk(&self, tcp: TcpStream, dialer: bool) -> Result<()> {
        let io = tcp.compat();
        if self.step == Step::Tcp {
            return hold(io).await;
        }
        let io = agree(io, "/noise", dialer).await?;
        if self.step == Step::NoiseName {
            return hold(io).await;
        }
        let noise = libp2p_noise::Config::new(&self.key)?;
        let (_, io) = if dialer {
            noise.upgrade_outbound(io, "/noise").await?
        } else {
            noise.upgrade_inbound(io, "/noise").await?
        };
        if self.step == Step::Noise {
            return hold(io).await;
        }
        let io = agree(io, "/yamux/1.0.0", dialer).await?;
        if self.step == Step::YamuxName {
            return hold(io).await;
        }
        let yamux = libp2p_yamux::Config::default();
        let muxer = if dialer {
            yamux.upgrade_outbound(io, "/yamux/1.0.0").await?
        } else {
            yamux.upgrade_inbound(io, "/yamux/1.0.0").await?
        };
        say("silent reached".into());
        self.streams(StreamMuxerBox::new(muxer)).await
    }

    async fn streams(&self, mut muxer: StreamMuxerBox) -> Result<()> {
        loop {
            let inbound = poll_fn(|cx| {
                // The connection makes progress only when it is polled.
                let _ = Pin::new(&mut muxer).poll(cx)?;
                Pin::new(&mut muxer).poll_inbound(cx)
            });
            let stream = inbound.await?;
            say("silent substream".into());
            let names = self.names.clone();
            if self.step == Step::Substream {
                tokio::spawn(async move {
                    match listener_select_proto(stream, names).await {
                        Ok((name, stream)) => {
                            say(format!("silent agreed={name}"));
                            let _held = stream;
                            pending::<()>().await
                        }
                        Err(e) => say(format!(
                            "silent failed={}",
                            crate::events::word(&e.to_string())
                        )),
                    }
                });
            } else {
                tokio::spawn(async move {
                    let _held = stream;
                    pending::<()>().await
                });
            }
        }
    }
}

async fn agree<T>(
    io: T,
    name: &'static str,
    dialer: bool,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    let names = std::iter::once(name);
    Ok(if dialer {
        dialer_select_proto(io, names, Version::V1).await?.1
    } else {
        listener_select_proto(io, names).await?.1
    })
}

/// Says nothing, and throws away what comes until the other side ends it.
async fn hold<T: AsyncRead + Unpin>(mut io: T) -> Result<()> {
    say("silent reached".into());
    let since = Instant::now();
    let mut bytes = [0; 4096];
    while io.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    say(format!("silent closed us={}", since.elapsed().as_micros()));
    Ok(())
}
