//! The command line of a node.

use crate::pattern::unhex;
use crate::Result;
use std::net::SocketAddr;
use std::time::Duration;

/// What becomes of a peer that wants to send us notifications.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Validate {
    Accept,
    Reject,
    /// Nobody answers, or the command `answer` does.
    Never,
}

impl std::str::FromStr for Validate {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "accept" => Ok(Validate::Accept),
            "reject" => Ok(Validate::Reject),
            "never" => Ok(Validate::Never),
            _ => Err(format!("neither accept, reject nor never: {text}")),
        }
    }
}

/// What a request is answered with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Respond {
    Answer,
    Never,
    /// The substream goes without an answer.
    Drop,
    /// An answer, then the substream is dropped rather than closed.
    Reset,
    /// An answer, after a while.
    Later(Duration),
}

impl std::str::FromStr for Respond {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "answer" => Ok(Respond::Answer),
            "never" => Ok(Respond::Never),
            "drop" => Ok(Respond::Drop),
            "reset" => Ok(Respond::Reset),
            _ => text
                .strip_prefix("later:")
                .and_then(|ms| ms.parse().ok())
                .map(|ms| Respond::Later(Duration::from_millis(ms)))
                .ok_or_else(|| format!("no way to respond: {text}")),
        }
    }
}

/// A notification protocol.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The main name, then fallbacks.
    pub names: Vec<String>,
    pub handshake: Vec<u8>,
    pub max_size: usize,
    /// The peer's own substream is accepted unasked where we began.
    pub auto_accept: bool,
    pub validate: Validate,
    /// Messages that wait to be sent, of either kind.
    pub sync_queue: usize,
    pub async_queue: usize,
}

impl Notification {
    pub fn new(names: &str) -> Self {
        Notification {
            names: list(names),
            handshake: Vec::new(),
            max_size: 16 << 20,
            auto_accept: false,
            validate: Validate::Accept,
            sync_queue: 2048,
            async_queue: 8,
        }
    }
}

/// A request-response protocol.
#[derive(Clone, Debug)]
pub struct Request {
    pub names: Vec<String>,
    /// Of requests and responses.
    pub max_size: usize,
    pub timeout: Duration,
    pub respond: Respond,
    /// How many requests may be served at once.
    pub inbound: Option<usize>,
}

impl Request {
    pub fn new(names: &str) -> Self {
        Request {
            names: list(names),
            max_size: 16 << 20,
            timeout: Duration::from_secs(5),
            respond: Respond::Answer,
            inbound: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub seed: Option<u64>,
    pub listen: Option<SocketAddr>,
    pub notifications: Vec<Notification>,
    pub requests: Vec<Request>,
    /// Substreams are negotiated lazily, where the library can.
    pub lazy: bool,
    /// How long a connection without substreams stays.
    pub idle: Duration,
    /// Requests that came are not told one by one.
    pub quiet: bool,
    /// Where a peer of the program `silent` stops, and whom it dials.
    pub silent: Option<String>,
    pub dial: Option<SocketAddr>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: None,
            listen: Some(([127, 0, 0, 1], 0).into()),
            notifications: Vec::new(),
            requests: Vec::new(),
            lazy: false,
            idle: Duration::from_secs(10),
            quiet: false,
            silent: None,
            dial: None,
        }
    }
}

fn list(names: &str) -> Vec<String> {
    names.split(',').map(str::to_string).collect()
}

/// The protocol that options are of.
enum Latest<'a> {
    Notification(&'a mut Notification),
    Request(&'a mut Request),
}

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Options::default();
        let mut asks = false; // whether the latest protocol is of requests
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--seed" => options.seed = Some(value()?.parse()?),
                "--listen" => {
                    let text = value()?;
                    options.listen = if text == "none" {
                        None
                    } else {
                        Some(text.parse()?)
                    };
                }
                "--notif" => {
                    options.notifications.push(Notification::new(&value()?));
                    asks = false;
                }
                "--request" => {
                    options.requests.push(Request::new(&value()?));
                    asks = true;
                }
                "--lazy" => options.lazy = true,
                "--quiet" => options.quiet = true,
                "--idle-ms" => options.idle = Duration::from_millis(value()?.parse()?),
                "--silent" => options.silent = Some(value()?),
                "--dial" => options.dial = Some(value()?.parse()?),
                _ => {
                    let value = value()?;
                    let latest = if asks {
                        options.requests.last_mut().map(Latest::Request)
                    } else {
                        options.notifications.last_mut().map(Latest::Notification)
                    };
                    of_protocol(&word, &value, latest)?;
                }
            }
        }
        Ok(options)
    }

    /// The secret key: the seed, big-endian, in the last 8 of 32 bytes that are 0.
    pub fn secret(&self) -> Option<[u8; 32]> {
        self.seed.map(|seed| {
            let mut secret = [0; 32];
            secret[24..].copy_from_slice(&seed.to_be_bytes());
            secret
        })
    }
}

fn of_protocol(word: &str, value: &str, latest: Option<Latest>) -> Result<()> {
    match (word, latest) {
        ("--max-size", Some(Latest::Notification(p))) => p.max_size = value.parse()?,
        ("--max-size", Some(Latest::Request(p))) => p.max_size = value.parse()?,
        ("--handshake", Some(Latest::Notification(p))) => p.handshake = unhex(value)?,
        ("--auto-accept", Some(Latest::Notification(p))) => p.auto_accept = value == "yes",
        ("--validate", Some(Latest::Notification(p))) => p.validate = value.parse()?,
        ("--sync-queue", Some(Latest::Notification(p))) => p.sync_queue = value.parse()?,
        ("--async-queue", Some(Latest::Notification(p))) => p.async_queue = value.parse()?,
        ("--timeout-ms", Some(Latest::Request(p))) => {
            p.timeout = Duration::from_millis(value.parse()?)
        }
        ("--respond", Some(Latest::Request(p))) => p.respond = value.parse()?,
        ("--inbound", Some(Latest::Request(p))) => p.inbound = Some(value.parse()?),
        _ => return Err(format!("no option {word}, or not of the protocol before it").into()),
    }
    Ok(())
}
