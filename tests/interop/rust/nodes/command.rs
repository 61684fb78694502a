//! Lines in and lines out: `WORD ARGUMENT... KEY=VALUE...`.

use crate::{PeerId, Result};
use std::str::FromStr;

pub struct Command {
    pub word: String,
    arguments: Vec<String>,
    options: Vec<(String, String)>,
}

impl Command {
    /// Nothing of an empty line, or one that begins with `#`.
    pub fn parse(line: &str) -> Option<Command> {
        let mut words = line.split_whitespace();
        let word = words.next().filter(|word| !word.starts_with('#'))?;
        let mut command = Command {
            word: word.to_string(),
            arguments: Vec::new(),
            options: Vec::new(),
        };
        for word in words {
            match word.split_once('=') {
                Some((key, value)) => command.options.push((key.to_string(), value.to_string())),
                None => command.arguments.push(word.to_string()),
            }
        }
        Some(command)
    }

    pub fn argument(&self, at: usize) -> Result<&str> {
        let found = self.arguments.get(at).map(String::as_str);
        found.ok_or_else(|| format!("argument {} is missing", at + 1).into())
    }

    pub fn number<T: FromStr>(&self, at: usize) -> Result<T> {
        let text = self.argument(at)?;
        text.parse()
            .map_err(|_| format!("not valid: {text}").into())
    }

    pub fn peer(&self, at: usize) -> Result<PeerId> {
        self.number(at)
    }

    pub fn option(&self, key: &str) -> Option<&str> {
        let found = self.options.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    pub fn option_or<T: FromStr>(&self, key: &str, other: T) -> Result<T> {
        match self.option(key) {
            Some(text) => text
                .parse()
                .map_err(|_| format!("not valid: {key}={text}").into()),
            None => Ok(other),
        }
    }
}

pub fn say(line: String) {
    println!("{line}");
}

pub fn fail(command: &Command, reason: &str) {
    let reason = crate::events::word(reason);
    say(format!("error command={} reason={reason}", command.word));
}

pub fn direction(outbound: bool) -> &'static str {
    if outbound {
        "out"
    } else {
        "in"
    }
}
