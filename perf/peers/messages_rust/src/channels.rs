//! The channels behind one face.  Those of std block in `send` and `recv`; that is what their futures do when polled.

use futures::{channel::mpsc as future, executor, SinkExt, StreamExt};
use std::{future::Future, sync::mpsc as blocking};
use tokio::{runtime::Builder, sync::mpsc as task};

/// What a bounded channel holds where throughput is measured.
pub const BOUND: usize = 1024;

pub trait Tx: Clone + Send + 'static {
    fn send(&mut self, word: u64) -> impl Future<Output = ()> + Send;
    /// Does not wait; there is room.
    fn post(&mut self, word: u64);
}

pub trait Rx: Send + 'static {
    fn recv(&mut self) -> impl Future<Output = u64> + Send;
}

pub trait Channel: 'static {
    type Tx: Tx;
    type Rx: Rx;
    const NAME: &'static str;
    fn make(bound: usize) -> (Self::Tx, Self::Rx);
    /// Runs an end of it on a thread of its own.
    fn block_on<F: Future>(f: F) -> F::Output;
}

macro_rules! channel {
    ($type:ident, $name:literal, $tx:ty, $rx:ty, $make:expr, $run:path) => {
        pub struct $type;
        impl Channel for $type {
            type Tx = $tx;
            type Rx = $rx;
            const NAME: &'static str = $name;
            fn make(bound: usize) -> ($tx, $rx) {
                $make(bound)
            }
            fn block_on<F: Future>(f: F) -> F::Output {
                $run(f)
            }
        }
    };
}

fn in_tokio<F: Future>(f: F) -> F::Output {
    Builder::new_current_thread().build().unwrap().block_on(f)
}

fn tokio_unbounded(_: usize) -> (task::UnboundedSender<u64>, task::UnboundedReceiver<u64>) {
    task::unbounded_channel()
}

fn futures_unbounded(_: usize) -> (future::UnboundedSender<u64>, future::UnboundedReceiver<u64>) {
    future::unbounded()
}

fn std_unbounded(_: usize) -> (blocking::Sender<u64>, blocking::Receiver<u64>) {
    blocking::channel()
}

channel!(
    TokioBounded,
    "tokio bounded",
    task::Sender<u64>,
    task::Receiver<u64>,
    task::channel,
    in_tokio
);
channel!(
    TokioUnbounded,
    "tokio unbounded",
    task::UnboundedSender<u64>,
    task::UnboundedReceiver<u64>,
    tokio_unbounded,
    in_tokio
);
channel!(
    FuturesBounded,
    "futures bounded",
    future::Sender<u64>,
    future::Receiver<u64>,
    future::channel,
    executor::block_on
);
channel!(
    FuturesUnbounded,
    "futures unbounded",
    future::UnboundedSender<u64>,
    future::UnboundedReceiver<u64>,
    futures_unbounded,
    executor::block_on
);
channel!(
    StdBounded,
    "std bounded",
    blocking::SyncSender<u64>,
    blocking::Receiver<u64>,
    blocking::sync_channel,
    executor::block_on
);
channel!(
    StdUnbounded,
    "std unbounded",
    blocking::Sender<u64>,
    blocking::Receiver<u64>,
    std_unbounded,
    executor::block_on
);

impl Tx for task::Sender<u64> {
    async fn send(&mut self, word: u64) {
        task::Sender::send(self, word).await.unwrap();
    }
    fn post(&mut self, word: u64) {
        self.try_send(word).unwrap();
    }
}

impl Tx for task::UnboundedSender<u64> {
    async fn send(&mut self, word: u64) {
        self.post(word);
    }
    fn post(&mut self, word: u64) {
        task::UnboundedSender::send(self, word).unwrap();
    }
}

impl Tx for future::Sender<u64> {
    async fn send(&mut self, word: u64) {
        SinkExt::send(self, word).await.unwrap();
    }
    fn post(&mut self, word: u64) {
        self.try_send(word).unwrap();
    }
}

impl Tx for future::UnboundedSender<u64> {
    async fn send(&mut self, word: u64) {
        self.post(word);
    }
    fn post(&mut self, word: u64) {
        self.unbounded_send(word).unwrap();
    }
}

impl Tx for blocking::SyncSender<u64> {
    async fn send(&mut self, word: u64) {
        blocking::SyncSender::send(self, word).unwrap();
    }
    fn post(&mut self, word: u64) {
        self.try_send(word).unwrap();
    }
}

impl Tx for blocking::Sender<u64> {
    async fn send(&mut self, word: u64) {
        self.post(word);
    }
    fn post(&mut self, word: u64) {
        blocking::Sender::send(self, word).unwrap();
    }
}

impl Rx for task::Receiver<u64> {
    async fn recv(&mut self) -> u64 {
        task::Receiver::recv(self).await.unwrap()
    }
}

impl Rx for task::UnboundedReceiver<u64> {
    async fn recv(&mut self) -> u64 {
        task::UnboundedReceiver::recv(self).await.unwrap()
    }
}

impl Rx for future::Receiver<u64> {
    async fn recv(&mut self) -> u64 {
        self.next().await.unwrap()
    }
}

impl Rx for future::UnboundedReceiver<u64> {
    async fn recv(&mut self) -> u64 {
        self.next().await.unwrap()
    }
}

impl Rx for blocking::Receiver<u64> {
    async fn recv(&mut self) -> u64 {
        blocking::Receiver::recv(self).unwrap()
    }
}
