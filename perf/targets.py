"""What the project wants to reach, and where among the results the figure is.

Figures of one run are compared with each other, never with another machine's: most targets are ratios.  Where several
rows or contenders fit, the worst counts; "spread" takes the largest by the smallest.
"""

import collections

from results import At

# op: ">=", "<=", or "in" with a pair.  unit: what value is in; "ratio" has none in print.
Target = collections.namedtuple("Target", "question text places op value unit pick", defaults=("worst",))


def rate(row, pair):
    """A ratio of rates."""
    return [At(row, "^%s$" % pair, "rate", "ratio")]


def old(case, unit=""):
    """The figure of an older line."""
    return At(case, "^$", "", unit)


ONE = r"^(tcp )?1 x 64 KiB$"
PEER = r"^tcp \d+ x 64 KiB$"

TARGETS = (
    # messages
    Target("messages", "message to an actor of the same worker", [At("^same worker$", "^actor$", "time")], "<=", 12, "ns"),
    Target("messages", "message to an actor of another worker, in a stream", [At("^1 producer$", "^actor$", "time")], "<=", 60,
           "ns"),
    Target("messages", "item handed across threads in batches of 16", [At("^batched 16$", "^spsc$", "time")], "<=", 5, "ns"),
    Target("messages", "post to a sleeping worker: what the sender pays, p50", [At("^parked, sender$", "^actor$", "p50")], "<=",
           4.4, "us"),
    Target("messages", "post to a sleeping worker: until it runs, p50", [At("^parked, until it runs$", "^actor$", "p50")], "<=",
           24, "us"),
    Target("messages", "four threads that post to one mailbox against one, more threads than processors",
           [At("^free, 4 producers$", "^mailbox$", "rate/1 producer")], ">=", 0.8, "ratio"),
    Target("messages", "windows of 100 ms in which those do less than 0.3 of their mean",
           [At("^free, 4 producers$", "^mailbox$", "100 ms under 0.3")], "<=", 0, "windows"),
    # isolation
    Target("isolation", "actors against the same engine called without them, one stream, 64 KiB writes, TCP",
           rate(ONE, "worker/inline"), ">=", 0.97, "ratio"),
    # limit
    Target("limit", "callbacks on the worker against a plain loop, one stream, 64 KiB", rate(ONE, "worker/plain"), ">=", 1.2,
           "ratio"),
    Target("limit", "callbacks on the worker against the strongest loop found, one stream, 64 KiB",
           rate(ONE, "worker/strong"), ">=", 0.95, "ratio"),
    Target("limit", "the former, all on one processor", rate("^one processor, tcp 1 x 64 KiB$", "worker/plain"), ">=", 1.2,
           "ratio"),
    Target("limit", "the latter, all on one processor", rate("^one processor, tcp 1 x 64 KiB$", "worker/strong"), ">=", 0.95,
           "ratio"),
    Target("limit", "blocking threads at both ends against a plain loop, one stream, 64 KiB", rate(ONE, "threads/plain"), ">=",
           1.1, "ratio"),
    Target("limit", "blocking threads at both ends against the strongest loop found, one stream, 64 KiB",
           rate(ONE, "threads/strong"), ">=", 0.9, "ratio"),
    Target("limit", "100 streams, 16 KiB writes, against a plain loop", rate("^tcp 100 x 16 KiB", "worker/plain"), ">=", 1.0,
           "ratio"),
    Target("limit", "1000 streams, 16 KiB writes, against a plain loop", rate("^tcp 1000 x 16 KiB", "worker/plain"), ">=", 0.9,
           "ratio"),
    Target("limit", "one stream, 1 KiB writes put together, against a plain loop", rate("^tcp 1 x 1 KiB", "threads/plain"), ">=",
           0.9, "ratio"),
    Target("limit", "8 million writes of 64 B a second (0.512 GB/s), one stream", [At("^tcp 1 x 64 B", "^threads$", "rate")],
           ">=", 0.512, "GB/s"),
    Target("limit", "small message there and back by callbacks against a bare socket's, p50",
           [At("^ping-pong tcp", "callbacks/raw", "p50")], "<=", 1.3, "ratio"),
    Target("limit", "small message there and back by blocking threads against a bare socket's, p50",
           [At("^ping-pong tcp", "threads/raw", "p50")], "<=", 2.5, "ratio"),
    Target("limit", "copies of a received byte besides the kernel's, read without a copy",
           [At("^tcp .*64 KiB", "^worker$", "copies")], "<=", 0.05, "/byte"),
    # peers
    Target("peers", "rust-yamux, 64 KiB writes", rate(PEER, "worker/rust"), ">=", 5, "ratio"),
    Target("peers", "go-yamux, 64 KiB writes", rate(PEER, "worker/go-yamux"), ">=", 3, "ratio"),
    Target("peers", "hashicorp/yamux, 64 KiB writes", rate(PEER, "worker/hashicorp"), ">=", 3, "ratio"),
    Target("peers", "rust-yamux, 8 streams of 1 KiB writes", rate("8 x 1 KiB$", "worker/rust"), ">=", 10, "ratio"),
    Target("peers", "rust-yamux, 8 streams of 64 B writes", rate("8 x 64 B$", "worker/rust"), ">=", 30, "ratio"),
    Target("peers", "split_send_size over memory against rust-libp2p's mplex, time", [At("^full memory", "rust/ours", "time")],
           ">=", 4, "ratio"),
    Target("peers", "split_send_size in steady state against rust-libp2p's mplex, time", [At("^steady", "rust/ours", "time")],
           ">=", 4, "ratio"),
    Target("peers", "split_send_size over TCP against rust-libp2p's mplex, time", [At("^full tcp", "rust/ours", "time")], ">=",
           2, "ratio"),
    Target("peers", "split_send_size over TCP against the same bytes in plain C, time", [At("^full tcp", "ours/bare", "time")],
           "<=", 1.2, "ratio"),
    Target("peers", "split_send_size over TCP, slowest by fastest frame size from 1 KiB on",
           [At(r"^full tcp \d{4,}", "^ours$", "time")], "<=", 1.3, "us", "spread"),
    Target("peers", "notifications with back-pressure and noise, litep2p's and rust-libp2p's time by ours",
           [At("^backpressure", "^(litep2p|libp2p)/calls$", "time")], ">=", 2, "ratio"),
    Target("peers", "notifications with back-pressure and noise, their processor time by ours",
           [At("^backpressure", "^(litep2p|libp2p)/calls$", "cpu")], ">=", 2, "ratio"),
    # beside
    Target("beside", "64 B message beside bulk at 200 MB/s, p99", [At("200 MB/s", "^worker$", "^p99$")], "<=", 2, "ms"),
    Target("beside", "64 B message beside bulk at full speed against alone, p99",
           [At("full speed", "^worker$", "^p99 beside/alone$")], "<=", 3, "ratio"),
    # handover
    Target("handover", "copies besides the kernel's of a byte that is read without a copy, 16 KiB and more",
           [At("^library .* (16|256) KiB", "^read_buf$", "copies")], "<=", 0.05, "/byte"),
    Target("handover", "slices against a copy in and out, 2 KiB and more, same thread, time",
           [At("^(2|4|16|64|256) KiB x . hot$", "^slices/copy$", "time")], "<=", 1, "ratio"),
    # growth
    Target("growth", "a million idle streams, one side, resident",
           [At("^idle streams 1000000$", "^resident, all of one side$", "bytes")], "<=", 1024, "MiB"),
    Target("growth", "ping-pong on one stream beside ever more idle ones, exponent",
           [At("^idle streams$", "^ping-pong on one$", "exponent")], "<=", 0.15, ""),
    Target("growth", "message where ever more streams are active, exponent",
           [At("^active streams$", "^message$", "exponent")], "<=", 0.15, ""),
    Target("growth", "message where ever more connections are active, exponent",
           [At("^connections$", "^message$", "exponent")], "<=", 0.15, ""),
    Target("growth", "threads = 4 x cores against threads = cores",
           [At("^threads 4 x cores$", "^threads/as many as cores$", "rate")], ">=", 0.8, "ratio"),
    Target("growth", "its slowest 100 ms by the median", [At("^threads 4 x cores$", "^threads$", "slowest 100 ms")], ">=", 0.3,
           "ratio"),
    Target("growth", "share of equal streams, by a fair one", [At("^share, equal", "^(least|largest)$", "share")], "in",
           (0.98, 1.02), "ratio"),
    Target("growth", "share of streams with mixed sizes, largest by least", [At("^share, mixed", "^largest/least$", "share")],
           "<=", 1.1, "ratio"),
    # opens
    Target("opens", "opening a stream, in a row", [At("^streams tcp, 64 at once$", "^operations$", "time")], "<=", 2, "us"),
    # memory
    Target("memory", "idle stream, one side", [At("^idle stream, a side$", "^ours$", "allocated"),
                                               At("idle stream", "ours", "bytes")], "<=", 300, "B"),
    Target("memory", "stream that nobody reads, held by window", [At("^unread, ", "^ours$", "held/window")], "<=", 5, "ratio"),
    # wan
    Target("wan", "100 ms, 1 Gbit/s, one stream against raw TCP through the same line",
           [old("^100 ms 1000 Mbit/s x 1 ours/raw$")], ">=", 0.9, "ratio"),
)
