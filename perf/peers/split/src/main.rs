//! rust-libp2p's mplex doing what perf/split_send_size does with ours: its benchmark of the same name as it was in 2020
//! (sender and receiver on two threads, one runtime outside the timer), with the crates of today.
//!
//! usage: reeve-split-rust [--transport tcp|memory] [--size N] [--work full|handshake|steady] [--rounds N] [--warm N] [--mib N]
//! Prints a JSON line per transport, kind of work and size.

mod once;
mod steady;

use futures::future::poll_fn;
use libp2p_core::{
    muxing::{StreamMuxerBox, StreamMuxerExt, SubstreamBox},
    transport::{Boxed, DialOpts, ListenerId, MemoryTransport, PortUse, TransportEvent},
    upgrade, Endpoint, Multiaddr, Transport,
};
use libp2p_identity::{Keypair, PeerId};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

pub const PAYLOAD: usize = 1 << 20;
pub const READ: usize = 8192;
const SIZES: [usize; 8] = [256, 512, 1024, 8192, 16384, 65536, 262144, 1048576];

pub type Node = Boxed<(PeerId, StreamMuxerBox)>;

pub struct Load {
    pub tcp: bool,
    pub size: usize,
    pub payload: &'static [u8],
    pub turn: u32,
}

impl Load {
    /// A fresh address a turn: what closed before keeps its ports for a minute.
    pub fn address(&self) -> Multiaddr {
        if self.tcp {
            format!("/ip4/127.0.0.{}/tcp/0", 2 + self.turn % 250)
                .parse()
                .unwrap()
        } else {
            "/memory/0".parse().unwrap()
        }
    }

    pub fn node(&self, keys: &Keypair) -> Node {
        if self.tcp {
            let tcp = libp2p_tcp::Config::default().nodelay(true);
            upgraded(libp2p_tcp::tokio::Transport::new(tcp), self.size, keys)
        } else {
            upgraded(MemoryTransport::default(), self.size, keys)
        }
    }
}

fn upgraded<T>(transport: T, size: usize, keys: &Keypair) -> Node
where
    T: Transport + Send + Unpin + 'static,
    T::Output: futures::AsyncRead + futures::AsyncWrite + Send + Unpin + 'static,
    T::Error: Send + Sync,
    T::Dial: Send + 'static,
    T::ListenerUpgrade: Send + 'static,
{
    let mut mplex = libp2p_mplex::Config::default();
    mplex.set_split_send_size(size);
    transport
        .upgrade(upgrade::Version::V1)
        .authenticate(libp2p_plaintext::Config::new(keys))
        .multiplex(mplex)
        .timeout(Duration::from_secs(5))
        .boxed()
}

/// The next inbound connection and its first stream; the address goes to whoever dials.
pub async fn accept(
    node: &mut Node,
    address: futures::channel::oneshot::Sender<Multiaddr>,
) -> (StreamMuxerBox, SubstreamBox) {
    let mut address = Some(address);
    loop {
        match futures::StreamExt::next(node).await.unwrap() {
            TransportEvent::NewAddress { listen_addr, .. } => {
                address.take().unwrap().send(listen_addr).unwrap();
            }
            TransportEvent::Incoming { upgrade, .. } => {
                let (_, mut conn) = upgrade.await.unwrap();
                let stream = poll_fn(|cx| conn.poll_inbound_unpin(cx)).await.unwrap();
                return (conn, stream);
            }
            event => panic!("unexpected {event:?}"),
        }
    }
}

pub async fn dial(node: &mut Node, address: Multiaddr) -> (StreamMuxerBox, SubstreamBox) {
    let how = DialOpts {
        role: Endpoint::Dialer,
        port_use: PortUse::New,
    };
    let (_, mut conn) = node.dial(address, how).unwrap().await.unwrap();
    let stream = poll_fn(|cx| conn.poll_outbound_unpin(cx)).await.unwrap();
    (conn, stream)
}

/// Drop the listener: in 2020 it was a value of its own that the receiver dropped.
pub async fn unlisten(node: &mut Node, id: ListenerId) {
    node.remove_listener(id);
    while !matches!(
        futures::StreamExt::next(node).await.unwrap(),
        TransportEvent::ListenerClosed { .. }
    ) {}
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let low = at as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (at - low as f64) * (sorted[high] - sorted[low])
}

fn report(work: &str, load: &Load, us: &mut [f64]) {
    let mean = us.iter().sum::<f64>() / us.len() as f64;
    us.sort_by(f64::total_cmp);
    println!(
        "{{\"bench\":\"split_send_size\",\"case\":\"rust\",\"work\":\"{work}\",\"transport\":\"{}\",\"split\":{},\
         \"unit\":\"us\",\"p10\":{:.2},\"median\":{:.2},\"p90\":{:.2},\"mean\":{mean:.2},\"n\":{}}}",
        if load.tcp { "tcp" } else { "memory" },
        load.size,
        quantile(us, 0.1),
        quantile(us, 0.5),
        quantile(us, 0.9),
        us.len()
    );
}

struct Options {
    transports: Vec<bool>,
    sizes: Vec<usize>,
    works: Vec<String>,
    rounds: usize,
    warm: usize,
    mib: usize,
}

fn options() -> Options {
    let mut o = Options {
        transports: vec![true, false],
        sizes: SIZES.to_vec(),
        works: ["full", "handshake", "steady"].map(String::from).to_vec(),
        rounds: 50,
        warm: 5,
        mib: 32,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args
            .next()
            .unwrap_or_else(|| panic!("{name} needs a value"));
        match name.as_str() {
            "--transport" => o.transports = vec![value == "tcp"],
            "--size" => o.sizes = vec![value.parse().unwrap()],
            "--work" => o.works = vec![value],
            "--rounds" => o.rounds = value.parse().unwrap(),
            "--mib" => o.mib = value.parse().unwrap(),
            "--warm" => o.warm = value.parse().unwrap(),
            _ => panic!("unknown option {name}"),
        }
    }
    o
}

/// Microseconds of each measured turn of `turn`.
fn turns(o: &Options, load: &mut Load, mut turn: impl FnMut(&Load) -> f64) -> Vec<f64> {
    for _ in 0..o.warm {
        turn(load);
        load.turn += 1;
    }
    (0..o.rounds)
        .map(|_| {
            load.turn += 1;
            turn(load)
        })
        .collect()
}

fn main() {
    let o = options();
    let rt = Runtime::new().unwrap();
    let keys = Keypair::generate_ed25519();
    let payload: &'static [u8] = Box::leak(
        (0..PAYLOAD)
            .map(|i| (i * 31 + i / 251) as u8)
            .collect::<Box<[u8]>>(),
    );
    for tcp in &o.transports {
        for work in &o.works {
            for size in &o.sizes {
                let mut load = Load {
                    tcp: *tcp,
                    size: *size,
                    payload,
                    turn: std::process::id(),
                };
                let mut us = if work == "steady" {
                    let mut pair = steady::Pair::new(&rt, &load, &keys, o.mib);
                    turns(&o, &mut load, |_| pair.measure())
                } else {
                    // Receiver and sender in one process need a node each since transports own their listeners.
                    let (mut receiver, mut sender) = {
                        let _guard = rt.enter();
                        (Some(load.node(&keys)), load.node(&keys))
                    };
                    let bytes = if work == "full" { PAYLOAD } else { 1 };
                    once::run(&rt, &load, &mut receiver, &mut sender, bytes, true);
                    turns(&o, &mut load, |load| {
                        let from = Instant::now();
                        once::run(&rt, load, &mut receiver, &mut sender, bytes, false);
                        from.elapsed().as_secs_f64() * 1e6
                    })
                };
                report(work, &load, &mut us);
            }
        }
    }
}
