package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is how a watched stream ended and how many bytes came before.
type outcome struct {
	kind  byte
	total uint64
}

// ledger holds the outcomes by the token that the dialing side chose.
type ledger struct {
	mu   sync.Mutex
	seen map[uint64]outcome
}

func newLedger() *ledger { return &ledger{seen: map[uint64]outcome{}} }

func (l *ledger) put(token uint64, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[token] = o
}

func (l *ledger) wait(token uint64) outcome {
	for i := 0; i < 500; i++ {
		l.mu.Lock()
		o, ok := l.seen[token]
		l.mu.Unlock()
		if ok {
			return o
		}
		time.Sleep(10 * time.Millisecond)
	}
	return outcome{kind: sawNothing}
}

// server is one connection's serving side.
type server struct {
	session
	*ledger
	chunk  int
	primed atomic.Bool // the next stream is greeted
}

func serve(addr string, o options) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	l := newLedger()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go attend(conn, o.roleOr("server"), l, o)
	}
}

func attend(conn net.Conn, role string, l *ledger, o options) {
	m, err := newSession(conn, role, o)
	if err != nil {
		conn.Close()
		return
	}
	defer m.close()
	v := &server{session: m, ledger: l, chunk: o.chunk}
	for {
		s, err := m.accept()
		if err != nil {
			return
		}
		greet := v.primed.Swap(false)
		go func() {
			if v.handle(s, greet) != nil {
				s.reset()
			} else {
				s.done()
			}
		}()
	}
}

// handle serves one stream; its caller ends it, or resets it after an error.
func (v *server) handle(s stream, greet bool) error {
	if greet {
		if _, err := s.Write([]byte("hello")); err != nil {
			return err
		}
	}
	var what [1]byte
	if _, err := io.ReadFull(s, what[:]); err != nil {
		return err
	}
	switch what[0] {
	case opEcho:
		_, err := io.CopyBuffer(struct{ io.Writer }{s}, s, make([]byte, piece))
		return err
	case opSink:
		return sink(s)
	case opDiscard:
		total, err := drain(s)
		if err == nil {
			_, err = s.Write(be64(total))
		}
		return err
	case opGenerate:
		length, err := number(s)
		if err == nil {
			_, err = drain(s)
		}
		if err == nil {
			err = sendGenerated(s, length, v.chunk)
		}
		return err
	case opReset:
		io.ReadFull(s, what[:])
		return s.reset()
	case opAbrupt:
		return abrupt(s)
	case opCross:
		return cross(s)
	case opPrimer:
		v.primed.Store(true)
		_, err := s.Write([]byte("k"))
		return err
	case opGoAway:
		io.ReadFull(s, what[:])
		return v.goAway()
	case opOpen:
		_, err := s.Write(be64(uint64(v.streams())))
		return err
	}
	return v.handleNoted(s, what[0])
}

// handleNoted serves the requests that begin with a token.
func (v *server) handleNoted(s stream, what byte) error {
	token, err := number(s)
	if err != nil {
		return err
	}
	switch what {
	case opWatch:
		v.put(token, watch(s))
	case opHalf:
		return v.half(s, token)
	case opSilent:
		o := outcome{kind: sawEnd}
		if o.total, err = drain(s); err != nil {
			o.kind = sawReset
		}
		v.put(token, o)
	case opLazy:
		ms, err := number(s)
		if err == nil {
			_, err = s.Write([]byte("k"))
		}
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(ms) * time.Millisecond)
		o := outcome{kind: sawEnd}
		if o.total, err = drain(s); err != nil {
			o.kind = sawReset
		}
		v.put(token, o)
		return err
	case opState:
		var state [1]byte
		if _, err = io.ReadFull(s, state[:]); err != nil {
			return err
		}
		o := outcome{sawReset, resetIn(s, state[0])}
		if (state[0] == stateTheirEnd && !resetsAtOnce) || (state[0] == stateOwnEnd && endIsFinal) {
			o.kind = sawEnd
		}
		err = s.reset()
		v.put(token, o)
	case opQuery:
		o := v.wait(token)
		_, err = s.Write(append([]byte{o.kind}, be64(o.total)...))
	default:
		err = errors.New("unknown request")
	}
	return err
}

func sink(s stream) error {
	sum := sha256.New()
	total, err := io.CopyBuffer(sum, s, make([]byte, piece))
	if err == nil {
		_, err = s.Write(append(sum.Sum(nil), be64(uint64(total))...))
	}
	return err
}

// watch reads to the end of the stream, then writes for a second: the writes of a stream that was reset fail,
// those of one that ended cleanly do not.
func watch(s stream) outcome {
	s.Write([]byte("k"))
	total, _ := drain(s)
	for i := 0; i < 50; i++ {
		if _, err := s.Write([]byte("p")); err != nil {
			return outcome{sawReset, total}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return outcome{sawEnd, total}
}

func (v *server) half(s stream, token uint64) error {
	if _, err := s.Write([]byte("bye")); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	total, err := drain(s)
	if err == nil {
		v.put(token, outcome{sawEnd, total})
	}
	return err
}

// abrupt resets right behind the bytes.  Both libraries return from a write when it is on its way to the
// transport, before everything that is sent later.
func abrupt(s stream) error {
	length, err := number(s)
	if err == nil {
		err = sendGenerated(s, length, 0)
	}
	if err != nil {
		return err
	}
	return s.reset()
}

// resetIn brings a stream into a state in which its caller resets it; returns the bytes read on the way.
func resetIn(s stream, state byte) uint64 {
	total := uint64(0)
	switch state {
	case stateAnswered:
		s.Write([]byte("k"))
	case stateTheirEnd:
		total, _ = drain(s)
	case stateOwnEnd:
		if resetsAtOnce {
			s.end()
			time.Sleep(100 * time.Millisecond) // for the other side to read the end
		} // else the reset is an end and then a reset
	case stateUnread:
		time.Sleep(100 * time.Millisecond)
	case stateWritten:
		n, _ := io.ReadFull(s, make([]byte, piece))
		total = uint64(n)
	}
	return total
}

func cross(s stream) error {
	length, err := number(s)
	if err == nil {
		err = sendGenerated(s, length, 0)
	}
	if err == nil {
		_, err = readGenerated(s, length)
	}
	if err == nil {
		_, err = drain(s)
	}
	return err
}
