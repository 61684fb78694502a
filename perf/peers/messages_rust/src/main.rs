//! The channels of Rust doing what perf/messages does with ours: one turn, a JSON line a figure.
//!
//! usage: reeve-messages-rust [--quick]
//!
//! Channels: `tokio` 1 mpsc, bounded (1024) and unbounded; `futures` 0.3 mpsc, bounded (1024, and one more a sender) and
//! unbounded; `std` mpsc, sync_channel(1024) and channel().  A message is a u64; its receiver checks number and sum.
//!
//! Rows, in nanoseconds per message (round trips: per round trip):
//! * same worker: producer and consumer are two tasks of a tokio current_thread runtime.
//! * 1 producer, 4 producers: tasks of a tokio multi_thread runtime with 2 workers, which may run several of them on one
//!   worker.  `two threads`: no runtime places them; each end blocks on a thread that is bound to a processor (tokio: in
//!   block_on of a current_thread runtime of its own; futures: in its executor's block_on).  std: threads, bound when
//!   there is one producer.
//! * round trip: a message there and back over two channels (bounded: 1) between two threads as in `two threads`.
//! * round trip same worker: two tasks of a current_thread runtime.  round trip placed: two tasks of the multi_thread one.
//! * parked: the receiver waits (tokio: a task of the multi_thread runtime, all of whose workers sleep; std and futures: a
//!   blocked thread); after half a millisecond of quiet a thread outside of the runtime sends (try_send, which does not
//!   wait): what that cost it, and when the receiver had the message; p50 and p99 of 200, microseconds.

mod channels;
mod wake;

use channels::*;
use std::{
    sync::{Arc, Barrier},
    thread,
    time::Instant,
};
use tokio::runtime::{Builder, Runtime};

pub struct Size {
    messages: u64,
    trips: u64,
    wakes: usize,
}

pub fn line(row: &str, contender: &str, what: &str, unit: &str, value: f64) {
    println!(
        r#"{{"row":"{row}","contender":"{contender}","what":"{what}","unit":"{unit}","value":{value:.4}}}"#
    );
}

fn ns(row: &str, contender: &str, began: Instant, n: u64) {
    let took = began.elapsed().as_nanos() as f64;
    line(row, contender, "time", "ns", took / n as f64);
}

/// What one producer's n words add up to.
fn sum_of(n: u64) -> u64 {
    n * (n + 1) / 2
}

/// Binds the calling thread to a processor, counted round.
fn bind(n: usize) {
    let cpus = thread::available_parallelism().map_or(1, |n| n.get());
    // Safety: a set of plain bits, of this thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(n % cpus, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}

async fn produce<T: Tx>(mut tx: T, n: u64) {
    for i in 1..=n {
        tx.send(i).await;
    }
}

async fn consume<R: Rx>(mut rx: R, n: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..n {
        sum += rx.recv().await;
    }
    sum
}

fn stream_tasks<C: Channel>(rt: &Runtime, row: &str, producers: u64, size: &Size) {
    let each = size.messages / producers;
    let (tx, rx) = C::make(BOUND);
    let began = Instant::now();
    let sum = rt.block_on(async {
        let receiver = rt.spawn(consume(rx, each * producers));
        for _ in 0..producers {
            rt.spawn(produce(tx.clone(), each));
        }
        receiver.await.unwrap()
    });
    ns(row, C::NAME, began, each * producers);
    assert_eq!(sum, sum_of(each) * producers, "lost: {row}, {}", C::NAME);
}

fn stream_threads<C: Channel>(row: &str, name: &str, producers: u64, size: &Size) {
    let each = size.messages / producers;
    let (tx, rx) = C::make(BOUND);
    let ready = Arc::new(Barrier::new(producers as usize + 2));
    let place = move |n| {
        if producers == 1 {
            bind(n);
        }
    };
    for id in 0..producers {
        let (tx, ready) = (tx.clone(), ready.clone());
        thread::spawn(move || {
            place(id as usize + 1);
            ready.wait();
            C::block_on(produce(tx, each));
        });
    }
    let at = ready.clone();
    let receiver = thread::spawn(move || {
        place(0);
        at.wait();
        C::block_on(consume(rx, each * producers))
    });
    ready.wait();
    let began = Instant::now();
    let sum = receiver.join().unwrap();
    ns(row, name, began, each * producers);
    assert_eq!(sum, sum_of(each) * producers, "lost: {row}, {name}");
}

async fn echo<C: Channel>(mut rx: C::Rx, mut tx: C::Tx, n: u64) {
    for _ in 0..n {
        let word = rx.recv().await;
        tx.send(word).await;
    }
}

/// The first word there and back is not timed.
async fn call<C: Channel>(mut tx: C::Tx, mut rx: C::Rx, n: u64) -> (u64, Instant) {
    tx.send(0).await;
    let mut sum = rx.recv().await;
    let began = Instant::now();
    for i in 1..=n {
        tx.send(i).await;
        sum += rx.recv().await;
    }
    (sum, began)
}

fn trip_tasks<C: Channel>(rt: &Runtime, row: &str, n: u64) {
    let ((tx, there), (back, rx)) = (C::make(1), C::make(1));
    let (sum, began) = rt.block_on(async {
        rt.spawn(echo::<C>(there, back, n + 1));
        rt.spawn(call::<C>(tx, rx, n)).await.unwrap()
    });
    ns(row, C::NAME, began, n);
    assert_eq!(sum, sum_of(n), "lost: {row}, {}", C::NAME);
}

fn trip_threads<C: Channel>(row: &str, n: u64) {
    let ((tx, there), (back, rx)) = (C::make(1), C::make(1));
    let other = thread::spawn(move || {
        bind(1);
        C::block_on(echo::<C>(there, back, n + 1));
    });
    let caller = thread::spawn(move || {
        bind(0);
        let (sum, began) = C::block_on(call::<C>(tx, rx, n));
        ns("round trip", C::NAME, began, n);
        sum
    });
    assert_eq!(
        caller.join().unwrap(),
        sum_of(n),
        "lost: {row}, {}",
        C::NAME
    );
    other.join().unwrap();
}

fn tasks<C: Channel>(one: &Runtime, two: &Runtime, size: &Size) {
    stream_tasks::<C>(one, "same worker", 1, size);
    stream_tasks::<C>(two, "1 producer", 1, size);
    stream_tasks::<C>(two, "4 producers", 4, size);
    trip_tasks::<C>(one, "round trip same worker", size.trips * 10);
    trip_tasks::<C>(two, "round trip placed", size.trips);
    stream_threads::<C>("1 producer", &format!("{}, two threads", C::NAME), 1, size);
    trip_threads::<C>("round trip", size.trips);
}

fn threads<C: Channel>(size: &Size) {
    stream_threads::<C>("1 producer", C::NAME, 1, size);
    stream_threads::<C>("4 producers", C::NAME, 4, size);
    trip_threads::<C>("round trip", size.trips);
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let size = if quick {
        Size {
            messages: 4000,
            trips: 50,
            wakes: 10,
        }
    } else {
        Size {
            messages: 200_000,
            trips: 2000,
            wakes: 200,
        }
    };
    let one = Builder::new_current_thread().build().unwrap();
    let two = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    tasks::<TokioBounded>(&one, &two, &size);
    tasks::<TokioUnbounded>(&one, &two, &size);
    tasks::<FuturesBounded>(&one, &two, &size);
    tasks::<FuturesUnbounded>(&one, &two, &size);
    threads::<StdBounded>(&size);
    threads::<StdUnbounded>(&size);
    wake::task::<TokioBounded>(&two, size.wakes);
    wake::task::<TokioUnbounded>(&two, size.wakes);
    wake::thread::<FuturesUnbounded>(size.wakes);
    wake::thread::<StdBounded>(size.wakes);
    wake::thread::<StdUnbounded>(size.wakes);
}
