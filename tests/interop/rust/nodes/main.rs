//! A node that is told what to do on its standard input: the language of tests/interop/rust/nodes/README.md.  Built once on
//! litep2p and once on rust-libp2p.  Or, with `bench`, two of them that are measured.

mod ask;
#[cfg_attr(feature = "lite", path = "litep2p.rs")]
#[cfg_attr(feature = "swarm", path = "libp2p/mod.rs")]
mod backend;
mod bench;
mod command;
mod events;
mod notify;
mod options;
mod pattern;

use backend::{Node, PeerId};
use command::{fail, say, Command};
use events::LinkEvent;
use futures::channel::mpsc::{unbounded, UnboundedReceiver, UnboundedSender};
use futures::StreamExt;
use options::Options;
use std::io::BufRead;
use std::process::ExitCode;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A protocol that runs, by its main name.
struct Running {
    name: String,
    commands: UnboundedSender<Command>,
}

async fn tell_links(mut links: UnboundedReceiver<LinkEvent>) {
    while let Some(event) = links.next().await {
        match event {
            LinkEvent::Connected {
                peer,
                outbound,
                address,
            } => say(format!(
                "connected peer={peer} direction={} address={address}",
                command::direction(outbound)
            )),
            LinkEvent::Disconnected { peer, reason } => {
                say(format!("disconnected peer={peer} reason={reason}"))
            }
            LinkEvent::DialFailed { peer, reason } => {
                let peer = peer.map_or("-".to_string(), |peer| peer.to_string());
                say(format!("dial-failed peer={peer} reason={reason}"))
            }
        }
    }
}

/// The lines of the standard input; its end is `quit`.
fn read_lines() -> UnboundedReceiver<String> {
    let (lines, taken) = unbounded();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if lines.unbounded_send(line).is_err() {
                break;
            }
        }
    });
    taken
}

async fn serve(options: Options) -> Result<()> {
    let node = backend::start(&options).await?;
    match node.listening.first() {
        Some(addr) => say(format!("listening {addr}")),
        None => say("listening -".into()),
    }
    say(format!("id {}", node.id));
    let Node {
        links,
        control,
        notifies,
        asks,
        ..
    } = node;
    tokio::spawn(tell_links(links));
    let mut notify_tasks = Vec::new();
    for (protocol, handle) in options.notifications.iter().zip(notifies) {
        let (commands, orders) = unbounded();
        let name = protocol.names[0].clone();
        tokio::spawn(notify::run(handle, protocol.clone(), orders));
        notify_tasks.push(Running { name, commands });
    }
    let mut ask_tasks = Vec::new();
    for (protocol, handle) in options.requests.iter().zip(asks) {
        let (commands, orders) = unbounded();
        let name = protocol.names[0].clone();
        tokio::spawn(ask::run(handle, protocol.clone(), options.quiet, orders));
        ask_tasks.push(Running { name, commands });
    }
    let mut lines = read_lines();
    while let Some(line) = lines.next().await {
        let Some(command) = Command::parse(&line) else {
            continue;
        };
        match command.word.as_str() {
            "quit" => return Ok(()),
            "dial" | "know" | "disconnect" => {
                if let Err(e) = of_links(&control, &command).await {
                    fail(&command, &e.to_string());
                }
            }
            word if notify::COMMANDS.contains(&word) => hand_on(&notify_tasks, command),
            word if ask::COMMANDS.contains(&word) => hand_on(&ask_tasks, command),
            _ => fail(&command, "unknown command"),
        }
    }
    Ok(())
}

async fn of_links(control: &backend::Control, command: &Command) -> Result<()> {
    match command.word.as_str() {
        "disconnect" => control.disconnect(command.peer(0)?),
        "dial" => control.dial(command.number(0)?, command.peer(1)?),
        _ => {
            control.know(command.number(0)?, command.peer(1)?).await;
            say("ok know".into());
        }
    }
    Ok(())
}

/// To the protocol of its name, or the first.
fn hand_on(tasks: &[Running], command: Command) {
    let wanted = command.option("protocol");
    let found = tasks
        .iter()
        .find(|task| wanted.is_none_or(|name| task.name == name));
    match found {
        Some(task) => {
            let _ = task.commands.unbounded_send(command);
        }
        None => fail(&command, "no such protocol"),
    }
}

fn main() -> ExitCode {
    let rt = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("runtime");
    let mut words = std::env::args().skip(1).peekable();
    let done = if words.next_if(|word| word == "bench").is_some() {
        rt.block_on(bench::run(words))
    } else {
        Options::parse(words).and_then(|options| rt.block_on(serve(options)))
    };
    match done {
        Ok(()) => std::process::exit(0), // whatever still runs
        Err(e) => {
            eprintln!("{}: {e}", env!("CARGO_PKG_NAME"));
            ExitCode::FAILURE
        }
    }
}
