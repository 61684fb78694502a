//! A message to a receiver that waits: what it costs its sender, and when the receiver has it.

use crate::{
    channels::{Channel, Rx, Tx, BOUND},
    line,
};
use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc,
    },
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// Says when each word came, in nanoseconds since the beginning (never 0).
async fn receive<R: Rx>(mut rx: R, begin: Instant, ran: Arc<AtomicU64>, n: usize) {
    for i in 1..=n {
        assert_eq!(rx.recv().await, i as u64, "a word that nobody sent");
        ran.store(begin.elapsed().as_nanos() as u64, Ordering::Release);
    }
}

fn quantiles(row: &str, name: &str, mut us: Vec<f64>) {
    us.sort_by(f64::total_cmp);
    line(row, name, "p50", "us", us[us.len() / 2]);
    line(row, name, "p99", "us", us[us.len() * 99 / 100]);
}

fn send<T: Tx>(mut tx: T, name: &str, begin: Instant, ran: Arc<AtomicU64>, n: usize) {
    let (mut cost, mut delay) = (vec![], vec![]);
    for i in 1..=n {
        thread::sleep(Duration::from_micros(500));
        ran.store(0, Ordering::Release);
        let from = begin.elapsed().as_nanos() as u64;
        tx.post(i as u64);
        let posted = begin.elapsed().as_nanos() as u64;
        while ran.load(Ordering::Acquire) == 0 {
            thread::sleep(Duration::from_micros(20));
        }
        cost.push((posted - from) as f64 / 1000.0);
        delay.push((ran.load(Ordering::Acquire) - from) as f64 / 1000.0);
    }
    quantiles("parked, sender", name, cost);
    quantiles("parked, until it runs", name, delay);
}

/// The receiver is a task.
pub fn task<C: Channel>(rt: &Runtime, n: usize) {
    let (tx, rx) = C::make(BOUND);
    let (begin, ran) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let receiver = rt.spawn(receive(rx, begin, ran.clone(), n));
    send(tx, C::NAME, begin, ran, n);
    rt.block_on(receiver).unwrap();
}

/// The receiver is a thread.
pub fn thread<C: Channel>(n: usize) {
    let (tx, rx) = C::make(BOUND);
    let (begin, ran) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let heard = ran.clone();
    let receiver = thread::spawn(move || C::block_on(receive(rx, begin, heard, n)));
    send(tx, C::NAME, begin, ran, n);
    receiver.join().unwrap();
}
