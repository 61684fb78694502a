//go:build hashicorp

// A yamux peer on hashicorp/yamux: the command line of tests/interop/README.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/hashicorp/yamux"
)

// The library has no call to reset a stream.  It sends RST for a stream that was closed and whose peer
// did not end its half within StreamCloseTimeout, so a short timeout is how this peer resets: what the
// other side sees is FIN and, that much later, RST.
const (
	serveCloseTimeout = 2 * time.Second
	resetCloseTimeout = 200 * time.Millisecond
)

// options of the command line; they may stand anywhere.
type options struct {
	role  string
	chunk int
	rest  []string
}

func parse(words []string) (options, error) {
	o := options{chunk: 64 * 1024}
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "--role" && i+1 < len(words):
			i++
			o.role = words[i]
			if o.role != "client" && o.role != "server" {
				return o, errors.New("--role needs client or server")
			}
		case words[i] == "--chunk" && i+1 < len(words):
			i++
			n, err := strconv.Atoi(words[i])
			if err != nil || n < 1 {
				return o, errors.New("--chunk needs a number")
			}
			o.chunk = n
		default:
			o.rest = append(o.rest, words[i])
		}
	}
	return o, nil
}

// session starts yamux on a connection: the library's defaults, except for the log and the close
// timeout where one is given.
func session(conn net.Conn, role string, closeTimeout time.Duration) (*yamux.Session, error) {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	if closeTimeout > 0 {
		cfg.StreamCloseTimeout = closeTimeout
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetNoDelay(true); err != nil {
			return nil, err
		}
	}
	if role == "server" {
		return yamux.Server(conn, cfg)
	}
	return yamux.Client(conn, cfg)
}

func run() error {
	o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	role := func(fallback string) string {
		if o.role != "" {
			return o.role
		}
		return fallback
	}
	switch {
	case len(o.rest) == 2 && o.rest[0] == "serve":
		return serve(o.rest[1], role("server"))
	case len(o.rest) >= 3 && o.rest[0] == "dial":
		return dial(o.rest[1], role("client"), o.chunk, o.rest[2:])
	case len(o.rest) == 4 && o.rest[0] == "pair":
		return pair(o.rest[1:])
	}
	return errors.New("usage: peer serve ADDR | dial HOST:PORT CASE [ARG...] | pair STREAMS WRITE SECONDS")
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "go peer:", err)
		os.Exit(1)
	}
}
