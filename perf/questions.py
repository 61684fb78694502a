"""The questions of the suite and what answers them: perf/run runs the commands, perf/report tells the answers.

A new program is one line: program("name", seconds) for build/perf/name, driver("name", seconds) for perf/peers/name.
Seconds are of a full run, for the progress; a command that takes five times as long (two minutes at least) is ended.
"""

import collections

from results import At

# kind: "program" or "driver"; quick: seconds with --quick
Command = collections.namedtuple("Command", "kind name args seconds quick")
# asked: only when it is named.  answer: parts of a sentence, each with the places of its figure and the figure's unit.
Question = collections.namedtuple("Question", "name text commands answer asked")


def program(name, seconds, *args, quick=3):
    """build/perf/NAME, which takes --quick and --rounds=N."""
    return Command("program", name, args, seconds, quick)


def driver(name, seconds, *args, quick=15):
    """perf/peers/NAME, which takes --quick and --rounds N; only with --peers.  {out}: the folder of the results."""
    return Command("driver", name, args, seconds, quick)


def question(name, text, commands, answer, asked=False):
    return Question(name, text, commands, answer, asked)


QUESTIONS = (
    question(
        "messages", "What does a message between actors, or an item through a queue, cost, beside the usual ways?",
        [program("messages", 100), driver("messages", 120)],
        [("a message to an actor of the same worker costs {}", [At("^same worker$", "^actor$", "time")], "ns"),
         ("across workers {} in a stream", [At("^1 producer$", "^actor$", "time")], "ns"),
         ("where a mutex with a condition variable costs {}", [At("^1 producer$", r"^mutex\+condvar$", "time")], "ns"),
         ("and a pipe {}", [At("^1 producer$", "^pipe$", "time")], "ns"),
         ("a post to a sleeping worker costs its sender {}", [At("^parked, sender$", "^actor$", "p50")], "us"),
         ("the worker runs {} later", [At("^parked, until it runs$", "^actor$", "p50")], "us")]),
    question(
        "isolation", "What do actors cost beside direct calls and beside a mutex around the same engine?",
        [program("isolation", 110), program("isolation", 80, "--one", quick=3)],
        [("with one stream and 64 KiB writes actors carry {} times what direct calls do",
          [At("^1 x 64 KiB", "^worker/inline$", "rate")], "ratio"),
         ("at {} times the processor time", [At("^1 x 64 KiB", "^worker/inline$", "cpu")], "ratio"),
         ("a mutex carries {} times", [At("^1 x 64 KiB", "^mutex/inline$", "rate")], "ratio"),
         ("a small item at a modest pace has a p99 of {} by actors", [At("^64 B at", "^worker$", "p99")], "us"),
         ("{} by direct calls", [At("^64 B at", "^inline$", "p99")], "us"),
         ("{} behind the mutex", [At("^64 B at", "^mutex$", "p99")], "us")]),
    question(
        "handover", "What does handing received bytes over cost, against copying them?",
        [program("handover", 60)],
        [("a reference to 64 KiB costs {} times what a copy in and out does, in one thread",
          [At("^64 KiB x 1 hot$", "^slices/copy$", "time")], "ratio"),
         ("{} times what two copies and two memsets do", [At("^64 KiB x 1 hot$", "^slices/litep2p$", "time")], "ratio"),
         ("below {} a copy costs less", [At("^break-even x 1 hot$", "^slices/copy$", "break-even")], "B")]),
    question(
        "limit", "How far from what the system can do at most is one connection?",
        [program("limit", 75), program("limit", 45, "--one", "--transport", "tcp"), program("latency", 40, quick=5),
         program("stream", 60, "--gates", "--transport", "tcp", quick=5)],
        [("one stream carries {} times a plain loop on a socket", [At("^tcp 1 x 64 KiB", "^worker/plain$", "rate")], "ratio"),
         ("{} times the strongest loop found", [At("^tcp 1 x 64 KiB", "^worker/strong$", "rate")], "ratio"),
         ("on one processor {} times", [At("^one processor, tcp 1 x 64 KiB", "^worker/strong$", "rate")], "ratio"),
         ("a small message there and back takes {} times a bare socket's time",
          [At("^ping-pong tcp 1 B$", "callbacks/raw", "p50")], "ratio"),
         ("{} times by blocking calls", [At("^ping-pong tcp 1 B$", "threads/raw", "p50")], "ratio")]),
    question(
        "peers", "How do other implementations do the same work?",
        [driver("run", 180, "--seconds", "0.4", "--rounds", "5", "rust", "go-yamux", "hashicorp", quick=30),
         driver("run", 60, "--mux", "mplex", "--seconds", "0.4", "--rounds", "5", "--streams", "8", quick=20),
         driver("notifications", 60, "--size", "64", "--size", "4096", "--size", "32768", "--size", "262144", "--out", "{out}",
                quick=30),
         driver("split_send_size", 100, "--rounds", "7", "--out", "{out}", quick=30)],
        [("with writes of 64 KiB ours carries at least {} times rust-yamux",
          [At("64 KiB", "^worker/rust$", "rate")], "ratio"),
         ("at least {} times go-yamux", [At("64 KiB", "^worker/go-yamux$", "rate")], "ratio"),
         ("at least {} times hashicorp's", [At("64 KiB", "^worker/hashicorp$", "rate")], "ratio"),
         ("notifications of 32 KiB with back-pressure take litep2p {} times as long",
          [At("^backpressure 32768$", "^litep2p/calls$", "time")], "ratio"),
         ("rust-libp2p {} times", [At("^backpressure 32768$", "^libp2p/calls$", "time")], "ratio")]),
    question(
        "growth", "What happens with more streams, connections, threads or actors?",
        [program("growth", 120)],
        [("a million idle streams take {} a side", [At("^idle streams 1000000$", "^resident, all", "bytes")], "MiB"),
         ("the largest exponent is {} (0: flat, 1: the cost grows in proportion)", [At("", "", "exponent")], "")]),
    question(
        "beside", "What does bulk traffic do to small messages beside it, and how fair are streams to each other?",
        [program("beside", 100), driver("beside", 180)],
        [("a small message has a p99 of {} alone", [At("^alone$", "^worker$", "^p99$")], "us"),
         ("{} at worst beside bulk at 200 MB/s", [At("200 MB/s", "^worker$", "^p99$")], "us"),
         ("{} at worst beside bulk at full speed", [At("full speed", "^worker$", "^p99$")], "us")]),
    question(
        "opens", "What do beginning and ending streams and connections cost?",
        [program("open", 40), driver("opens", 120)],
        [("a stream opened, accepted and closed costs {} of time",
          [At("^streams tcp, 64 at once$", "^operations$", "time")], "us"),
         ("by blocking calls {}", [At("^streams tcp, one by one$", "^calls$", "time")], "us")]),
    question(
        "memory", "What does it hold: idle, used and unread?",
        [program("memory", 40)],
        [("an idle stream holds {} a side", [At("^idle stream, a side$", "^ours$", "allocated")], "B"),
         ("a stream that nobody reads holds at most {} times its window", [At("^unread, ", "^ours$", "held/window")], "ratio")]),
    question(
        "wan", "Does flow control fill long paths?", [program("wan", 550, quick=15)],
        [("of what a raw stream carries over 100 ms at 1 Gbit/s, one stream carries {}",
          [At("100 ms 1000 Mbit/s x 1 ours/raw$")], "ratio")], asked=True),
)
