//! `bench`: two nodes in this process on 127.0.0.1, noise and yamux between them, and a workload for each line of the
//! standard input: what polkadot-sdk's benches of notifications and requests measure, without the layer above the library.

use crate::backend::{self, Ask, Node, Notify, PeerId};
use crate::command::say;
use crate::events::{AskEvent, LinkEvent, NotifyEvent};
use crate::options::{Notification, Options, Request};
use crate::pattern::{message, Size, Words};
use crate::Result;
use futures::StreamExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// One message of it before anything is measured: TCP's and yamux's windows are open then.
const PREHEAT: usize = 32 << 20;
const MOST: usize = 1 << 30;

struct Settings {
    requests: bool,
    lazy: bool,
    timeout: Duration,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Settings> {
    let mut settings = Settings {
        requests: false,
        lazy: false,
        timeout: Duration::from_secs(2),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--bench" => match value()?.as_str() {
                "notifications" => settings.requests = false,
                "requests" => settings.requests = true,
                other => return Err(format!("no bench: {other}").into()),
            },
            "--lazy" => settings.lazy = true,
            "--timeout-ms" => settings.timeout = Duration::from_millis(value()?.parse()?),
            _ => return Err(format!("no option {word}").into()),
        }
    }
    Ok(settings)
}

/// Of this process so far, user and system.
fn cpu_seconds() -> f64 {
    // SAFETY: all zero is a valid value, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn options(settings: &Settings) -> Options {
    let mut options = Options {
        lazy: settings.lazy,
        idle: Duration::from_secs(3600),
        ..Default::default()
    };
    if settings.requests {
        options.requests.push(Request {
            max_size: MOST,
            timeout: settings.timeout,
            ..Request::new("/reeve/bench/requests/1")
        });
    } else {
        options.notifications.push(Notification {
            max_size: MOST,
            auto_accept: true,
            ..Notification::new("/reeve/bench/notifications/1")
        });
    }
    options
}

/// Two nodes that are connected; the first one dialed.
async fn pair(settings: &Settings) -> Result<(Node, Node)> {
    let mut first = backend::start(&Options {
        listen: None,
        ..options(settings)
    })
    .await?;
    let mut second = backend::start(&options(settings)).await?;
    first.control.dial(second.listening[0], second.id);
    for node in [&mut first, &mut second] {
        loop {
            match node.links.next().await.ok_or("a node is gone")? {
                LinkEvent::Connected { .. } => break,
                LinkEvent::DialFailed { reason, .. } => return Err(reason.into()),
                LinkEvent::Disconnected { .. } => {}
            }
        }
    }
    Ok((first, second))
}

/// The ends of a notification stream.
struct Stream {
    from: Notify,
    to: Notify,
    peer: PeerId,
}

impl Stream {
    async fn open(first: &mut Node, second: &mut Node) -> Result<Stream> {
        let mut from = first.notifies.remove(0);
        let mut to = second.notifies.remove(0);
        from.open(second.id).await?;
        for side in [&mut to, &mut from] {
            loop {
                match side.next().await.ok_or("the protocol is gone")? {
                    NotifyEvent::Validate { peer, .. } => side.answer(peer, true),
                    NotifyEvent::Opened { .. } => break,
                    NotifyEvent::OpenFailed { reason, .. } => return Err(reason.into()),
                    _ => {}
                }
            }
        }
        let peer = second.id;
        Ok(Stream { from, to, peer })
    }

    /// What comes is what was sent, in its order.
    async fn check(&mut self) -> Result<()> {
        let sink = self.from.sink(self.peer).ok_or("not open")?;
        let size: Size = "0-100000".parse()?;
        let sender = tokio::spawn(async move {
            for index in 0..200 {
                if sink.send(message(1, index, size)).await.is_err() {
                    return;
                }
            }
        });
        for index in 0..200 {
            let bytes = received(&mut self.to).await?;
            if bytes.len() != size.of(1, index) || !Words::new(1, index).matches(&bytes) {
                return Err(format!("notification {index} is not what was sent").into());
            }
        }
        Ok(sender.await?)
    }

    /// Each is sent when the one before it has come.
    async fn serial(self, size: usize, count: usize) -> Result<Stream> {
        let sink = self.from.sink(self.peer).ok_or("not open")?;
        let (tokens, mut wait) = mpsc::channel::<bool>(1);
        tokens.send(true).await?;
        let sender = tokio::spawn(async move {
            while wait.recv().await == Some(true) {
                if sink.send(vec![0; size]).await.is_err() {
                    return;
                }
            }
        });
        let mut to = self.to;
        let receiver = tokio::spawn(async move {
            for at in 1..=count {
                let bytes = received(&mut to).await?;
                if bytes.len() != size {
                    return Err("a notification of another size".into());
                }
                drop(bytes);
                tokens.send(at < count).await?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(to)
        });
        sender.await?;
        let to = receiver.await??;
        Ok(Stream { to, ..self })
    }

    /// They are sent as fast as they are taken.
    async fn backpressure(self, size: usize, count: usize) -> Result<Stream> {
        let sink = self.from.sink(self.peer).ok_or("not open")?;
        let (done, mut wait) = mpsc::channel::<()>(1);
        let sender = tokio::spawn(async move {
            for _ in 0..count {
                if sink.send(vec![0; size]).await.is_err() {
                    return;
                }
            }
            wait.recv().await;
        });
        let mut to = self.to;
        let receiver = tokio::spawn(async move {
            for _ in 0..count {
                let bytes = received(&mut to).await?;
                if bytes.len() != size {
                    return Err("a notification of another size".into());
                }
                drop(bytes);
            }
            done.send(()).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(to)
        });
        sender.await?;
        let to = receiver.await??;
        Ok(Stream { to, ..self })
    }
}

async fn received(to: &mut Notify) -> Result<backend::Bytes> {
    match to.next().await {
        Some(NotifyEvent::Received { bytes, .. }) => Ok(bytes),
        Some(NotifyEvent::Closed { reason, .. }) => Err(format!("closed: {reason}").into()),
        _ => Err("something else than a notification".into()),
    }
}

/// A requester; who responds runs beside it.
struct Requests {
    from: Ask,
    peer: PeerId,
    size: Arc<AtomicUsize>,
}

impl Requests {
    fn start(first: &mut Node, second: &mut Node) -> Requests {
        let size = Arc::new(AtomicUsize::new(0));
        let (mut to, answer) = (second.asks.remove(0), size.clone());
        tokio::spawn(async move {
            while let Some(event) = to.next().await {
                if let AskEvent::Asked { id, .. } = event {
                    to.respond(id, vec![0; answer.load(Ordering::Relaxed)], false);
                }
            }
        });
        Requests {
            from: first.asks.remove(0),
            peer: second.id,
            size,
        }
    }

    /// One after the other.
    async fn serial(&mut self, size: usize, count: usize) -> Result<()> {
        self.size.store(size, Ordering::Relaxed);
        for _ in 0..count {
            self.from.ask(self.peer, vec![0; 2], true).await?;
            match self.from.next().await {
                Some(AskEvent::Answered { bytes, .. }) if bytes.len() == size => drop(bytes),
                Some(AskEvent::Failed { reason, .. }) => return Err(reason.into()),
                _ => return Err("something else than the response".into()),
            }
        }
        Ok(())
    }
}

enum Bench {
    Notifications(Box<Stream>),
    Requests(Requests),
}

impl Bench {
    async fn run(self, variant: &str, size: usize, count: usize) -> Result<Bench> {
        match (self, variant) {
            (Bench::Notifications(stream), "serial") => Ok(Bench::Notifications(Box::new(
                stream.serial(size, count).await?,
            ))),
            (Bench::Notifications(stream), "backpressure") => Ok(Bench::Notifications(Box::new(
                stream.backpressure(size, count).await?,
            ))),
            (Bench::Requests(mut requests), "serial") => {
                requests.serial(size, count).await?;
                Ok(Bench::Requests(requests))
            }
            _ => Err(format!("no variant: {variant}").into()),
        }
    }
}

pub async fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let settings = parse(words)?;
    let (mut first, mut second) = pair(&settings).await?;
    let (mut bench, name) = if settings.requests {
        let mut requests = Requests::start(&mut first, &mut second);
        requests.serial(PREHEAT, 1).await?;
        (Bench::Requests(requests), "requests")
    } else {
        let mut stream = Stream::open(&mut first, &mut second).await?;
        stream.check().await?;
        let stream = stream.backpressure(PREHEAT, 1).await?;
        (Bench::Notifications(Box::new(stream)), "notifications")
    };
    say("ready".into());
    let mut lines = crate::read_lines();
    while let Some(line) = lines.next().await {
        let words: Vec<_> = line.split_whitespace().collect();
        let (variant, size, count) = match words.as_slice() {
            ["run", variant, size, count] => (*variant, size.parse()?, count.parse()?),
            ["quit"] => return Ok(()),
            _ => return Err(format!("no command: {line}").into()),
        };
        let (cpu, since) = (cpu_seconds(), Instant::now());
        bench = bench.run(variant, size, count).await?;
        let seconds = since.elapsed().as_secs_f64();
        say(format!(
            "{{\"bench\":\"{name}\",\"size\":{size},\"n\":{count},\"variant\":\"{variant}\",\"seconds\":{seconds:.9},\
             \"cpu_seconds\":{:.6}}}",
            cpu_seconds() - cpu
        ));
    }
    Ok(())
}
