//! A request-response protocol: its commands, and what is told of it.

use crate::backend::{Ask, InboundId, OutboundId, ALWAYS_RESETS, CANCELS};
use crate::command::{fail, say, Command};
use crate::events::AskEvent;
use crate::options::{Request, Respond};
use crate::pattern::{request, request_matches, response, response_matches, Tally, HEAD};
use crate::{PeerId, Result};
use futures::channel::mpsc::UnboundedReceiver;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

pub const COMMANDS: &[&str] = &["request", "cancel", "respond", "asked"];

/// One command `request`.
struct Job {
    peer: PeerId,
    size: usize,
    answer: usize,
    count: u64,
    at_once: u64,
    dial: bool,
    seed: u64,
    since: Instant,
    started: u64,
    under_way: u64,
    tally: Tally,
    differ: u64,
    cancelled: u64,
    fallback: Option<String>,
    failures: BTreeMap<String, u64>,
}

impl Job {
    fn new(command: &Command) -> Result<Self> {
        let job = Job {
            peer: command.peer(0)?,
            size: command.number(1)?,
            answer: command.number(2)?,
            count: command.number(3)?,
            at_once: command.option_or("par", 1)?,
            dial: command.option_or("dial", "yes".to_string())? == "yes",
            seed: command.option_or("seed", 1)?,
            since: Instant::now(),
            started: 0,
            under_way: 0,
            tally: Tally::default(),
            differ: 0,
            cancelled: 0,
            fallback: None,
            failures: BTreeMap::new(),
        };
        if command.option("timeout").is_some() {
            return Err("unsupported: the library has one timeout for all requests".into());
        }
        if job.size < HEAD && job.answer != job.size {
            return Err(format!("less than {HEAD} bytes are answered with themselves").into());
        }
        Ok(job)
    }

    fn failed(&mut self, reason: String) {
        self.under_way -= 1;
        *self.failures.entry(reason).or_default() += 1;
    }

    fn over(&self) -> bool {
        self.under_way == 0 && self.started == self.count
    }

    fn tell(&self, tag: &str, protocol: &str) {
        let reasons: Vec<_> = self
            .failures
            .iter()
            .map(|(reason, count)| format!("{reason}:{count}"))
            .collect();
        let reasons = if reasons.is_empty() {
            "-".into()
        } else {
            reasons.join(",")
        };
        say(format!(
            "requests tag={tag} peer={} protocol={protocol} fallback={} count={} answered={} differ={} failed={} \
             cancelled={} bytes={} reasons={reasons} sha256={} us={}",
            self.peer,
            self.fallback.as_deref().unwrap_or("-"),
            self.started,
            self.tally.count,
            self.differ,
            self.failures.values().sum::<u64>(),
            self.cancelled,
            self.tally.bytes,
            self.tally.sha256(),
            self.since.elapsed().as_micros()
        ));
    }
}

type Later = Pin<Box<dyn Future<Output = (InboundId, Vec<u8>)> + Send>>;

struct Protocol {
    handle: Ask,
    name: String,
    respond: Respond,
    quiet: bool,
    next_tag: u64,
    jobs: HashMap<String, Job>,
    /// The job and the index in it.
    under_way: HashMap<OutboundId, (String, u64)>,
    /// Those that are answered later.
    waiting: FuturesUnordered<Later>,
    asked: Tally,
    differ: u64,
}

pub async fn run(
    handle: Ask,
    options: Request,
    quiet: bool,
    mut orders: UnboundedReceiver<Command>,
) {
    let mut protocol = Protocol {
        handle,
        name: options.names[0].clone(),
        respond: options.respond,
        quiet,
        next_tag: 1,
        jobs: HashMap::new(),
        under_way: HashMap::new(),
        waiting: FuturesUnordered::new(),
        asked: Tally::default(),
        differ: 0,
    };
    loop {
        futures::select! {
            event = protocol.handle.next().fuse() => match event {
                Some(event) => protocol.event(event).await,
                None => return,
            },
            (id, bytes) = protocol.waiting.select_next_some() => {
                protocol.handle.respond(id, bytes, false);
            }
            command = orders.next() => match command {
                Some(command) => if let Err(e) = protocol.obey(&command).await {
                    fail(&command, &e.to_string());
                },
                None => return,
            },
        }
    }
}

impl Protocol {
    async fn event(&mut self, event: AskEvent) {
        match event {
            AskEvent::Asked {
                peer,
                fallback,
                id,
                bytes,
            } => self.asked(peer, fallback, id, bytes),
            AskEvent::Answered {
                fallback,
                id,
                bytes,
            } => {
                if let Some((tag, index)) = self.under_way.remove(&id) {
                    if let Some(job) = self.jobs.get_mut(&tag) {
                        job.under_way -= 1;
                        job.tally.add(&bytes);
                        job.fallback = fallback;
                        if !response_matches(&bytes, job.seed, index, job.size, job.answer) {
                            job.differ += 1;
                        }
                    }
                    self.go_on(tag).await;
                }
            }
            AskEvent::Failed { id, reason } => {
                if let Some((tag, _)) = self.under_way.remove(&id) {
                    if let Some(job) = self.jobs.get_mut(&tag) {
                        job.failed(reason);
                    }
                    self.go_on(tag).await;
                }
            }
        }
    }

    fn asked(&mut self, peer: PeerId, fallback: Option<String>, id: InboundId, bytes: Vec<u8>) {
        let right = request_matches(&bytes);
        self.asked.add(&bytes);
        self.differ += !right as u64;
        if !self.quiet {
            say(format!(
                "request peer={peer} protocol={} fallback={} size={} result={}",
                self.name,
                fallback.unwrap_or("-".into()),
                bytes.len(),
                if right { "ok" } else { "differs" }
            ));
        }
        match self.respond {
            Respond::Answer => self.handle.respond(id, response(&bytes), false),
            Respond::Reset => self.handle.respond(id, response(&bytes), true),
            Respond::Drop => self.handle.reject(id),
            Respond::Never => {}
            Respond::Later(wait) => self.waiting.push(Box::pin(async move {
                tokio::time::sleep(wait).await;
                (id, response(&bytes))
            })),
        }
    }

    /// Asks as many as may be under way; or the job is over.
    async fn go_on(&mut self, tag: String) {
        let Some(job) = self.jobs.get_mut(&tag) else {
            return;
        };
        while job.started < job.count && job.under_way < job.at_once {
            let bytes = request(job.seed, job.started, job.size, job.answer);
            let index = job.started;
            job.started += 1;
            job.under_way += 1;
            match self.handle.ask(job.peer, bytes, job.dial).await {
                Ok(id) => {
                    self.under_way.insert(id, (tag.clone(), index));
                }
                Err(e) => job.failed(crate::events::word(&e.to_string())),
            }
        }
        if job.over() {
            job.tell(&tag, &self.name);
            self.jobs.remove(&tag);
        }
    }

    async fn obey(&mut self, command: &Command) -> Result<()> {
        match command.word.as_str() {
            "request" => {
                let job = Job::new(command)?;
                let tag = command.option_or("tag", self.next_tag.to_string())?;
                self.next_tag += 1;
                say(format!("ok request tag={tag}"));
                self.jobs.insert(tag.clone(), job);
                self.go_on(tag).await;
            }
            "cancel" => {
                if !CANCELS {
                    return Err("unsupported: the library cannot cancel a request".into());
                }
                let tag = command.argument(0)?;
                let mut job = self.jobs.remove(tag).ok_or("no such requests")?;
                let ids: Vec<_> = self
                    .under_way
                    .iter()
                    .filter(|(_, (of, _))| of == tag)
                    .map(|(id, _)| *id)
                    .collect();
                for id in ids {
                    self.handle.cancel(id).await;
                    self.under_way.remove(&id);
                    job.cancelled += 1;
                }
                job.tell(tag, &self.name);
            }
            "respond" => {
                let respond = command.number(0)?;
                if respond == Respond::Answer && ALWAYS_RESETS {
                    say("ok respond always-resets".into());
                } else {
                    say("ok respond".into());
                }
                self.respond = respond;
            }
            _ => say(format!(
                "asked protocol={} count={} bytes={} differ={} sha256={}",
                self.name,
                self.asked.count,
                self.asked.bytes,
                self.differ,
                self.asked.sha256()
            )),
        }
        Ok(())
    }
}
