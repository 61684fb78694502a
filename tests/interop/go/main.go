// A peer on Go libraries, chosen by build tag: two of yamux, one of mplex, and a node of go-libp2p's parts.  The command
// line is that of tests/interop/README.md.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// stream is what the peer needs of a library's stream.
type stream interface {
	io.Reader
	io.Writer
	end() error   // FIN: no more bytes from here, reading goes on
	done()        // FIN unless that was sent, and nothing more is read
	reset() error // RST as far as the library has it
}

// session is what the peer needs of a library's session; newSession of the adapter makes one.
type session interface {
	open() (stream, error)
	openNamed(name string) (stream, error)
	accept() (stream, error)
	ping() error
	goAway() error
	streams() int
	close() error
	closed() <-chan struct{}
}

// options of the command line; they may stand anywhere.
type options struct {
	role         string
	window       uint32
	chunk        int // bytes given to one write call, 0: all in one
	openTimeout  time.Duration
	closeTimeout time.Duration
	slow         time.Duration // for a reader that holds up the others
	apart        bool          // each state of resets on a connection of its own
	muxers       string        // of a node, as the next four
	security     string
	expect       string
	negotiate    bool
	lazy         bool
	rest         []string
}

// errNotHere is the reason why a case cannot be expressed with a library: exit 77.
type errNotHere string

func (e errNotHere) Error() string { return string(e) }

func (o *options) set(name, value string) error {
	if name == "--role" {
		if value != "server" && value != "client" {
			return errors.New("--role needs client or server")
		}
		o.role = value
		return nil
	}
	for flag, text := range map[string]*string{"--muxers": &o.muxers, "--security": &o.security, "--expect": &o.expect} {
		if name == flag {
			*text = value
			return nil
		}
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch name {
	case "--window":
		o.window = uint32(n)
	case "--chunk":
		o.chunk = int(n)
	case "--open-timeout-ms":
		o.openTimeout = time.Duration(n) * time.Millisecond
	case "--close-timeout-ms":
		o.closeTimeout = time.Duration(n) * time.Millisecond
	case "--slow-ms":
		o.slow = time.Duration(n) * time.Millisecond
	default:
		return errors.New("unknown option " + name)
	}
	return nil
}

func parse(words []string) (options, error) {
	o := options{chunk: 64 * 1024, apart: losesBuffers}
	for i := 0; i < len(words); i++ {
		if words[i] == "--apart" {
			o.apart = true
			continue
		}
		if len(words[i]) < 3 || words[i][:2] != "--" {
			o.rest = append(o.rest, words[i])
			continue
		}
		if words[i] == "--negotiate" || words[i] == "--lazy" {
			o.negotiate = o.negotiate || words[i] == "--negotiate"
			o.lazy = o.lazy || words[i] == "--lazy"
			continue
		}
		if i+1 == len(words) {
			return o, errors.New(words[i] + " needs a value")
		}
		if err := o.set(words[i], words[i+1]); err != nil {
			return o, err
		}
		i++
	}
	return o, nil
}

func (o options) roleOr(fallback string) string {
	if o.role != "" {
		return o.role
	}
	return fallback
}

func run() error {
	o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	switch {
	case len(o.rest) == 2 && o.rest[0] == "serve":
		return serve(o.rest[1], o)
	case len(o.rest) >= 3 && o.rest[0] == "dial":
		return dial(o.rest[1], o)
	case len(o.rest) == 4 && o.rest[0] == "pair":
		return pair(o, caseBench)
	case len(o.rest) == 4 && o.rest[0] == "beside":
		return pair(o, caseBeside)
	case len(o.rest) == 3 && o.rest[0] == "openrate":
		return pair(o, caseOpenRate)
	}
	return errors.New("usage: peer serve ADDR | dial HOST:PORT CASE [ARG...] | pair STREAMS WRITE SECONDS | beside BULK RATE SECONDS |" +
		" openrate N AT_ONCE")
}

func main() {
	err := run()
	var notHere errNotHere
	if errors.As(err, &notHere) {
		fmt.Fprintln(os.Stderr, notHere)
		os.Exit(77)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s peer: %v\n", library, err)
		os.Exit(1)
	}
}
