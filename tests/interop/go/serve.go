//go:build hashicorp

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
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

func serve(addr, role string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	l := &ledger{seen: map[uint64]outcome{}}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go attend(conn, role, l, serveCloseTimeout)
	}
}

func attend(conn net.Conn, role string, l *ledger, closeTimeout time.Duration) {
	s, err := session(conn, role, closeTimeout)
	if err != nil {
		conn.Close()
		return
	}
	defer s.Close()
	for {
		stream, err := s.AcceptStream()
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			handle(stream, l)
		}()
	}
}

// handle serves one stream; its caller closes it, which resets it if the peer does not end its half.
func handle(s *yamux.Stream, l *ledger) {
	var what [1]byte
	if _, err := io.ReadFull(s, what[:]); err != nil {
		return
	}
	switch what[0] {
	case opEcho:
		io.CopyBuffer(struct{ io.Writer }{s}, s, make([]byte, 64*1024))
	case opSink:
		sum := sha256.New()
		total, err := io.CopyBuffer(sum, s, make([]byte, 64*1024))
		if err == nil {
			s.Write(append(sum.Sum(nil), be64(uint64(total))...))
		}
	case opDiscard:
		if total, err := drain(s); err == nil {
			s.Write(be64(total))
		}
	case opGenerate:
		generate(s)
	case opReset:
		io.ReadFull(s, what[:])
	case opWatch:
		watch(s, l)
	case opHalf:
		half(s, l)
	case opQuery:
		if token, err := number(s); err == nil {
			o := l.wait(token)
			s.Write(append([]byte{o.kind}, be64(o.total)...))
		}
	}
}

func number(s *yamux.Stream) (uint64, error) {
	var bytes [8]byte
	_, err := io.ReadFull(s, bytes[:])
	return binary.BigEndian.Uint64(bytes[:]), err
}

// drain reads to the end; a nil error is a clean one.
func drain(s *yamux.Stream) (uint64, error) {
	buf := make([]byte, 64*1024)
	total := uint64(0)
	for {
		n, err := s.Read(buf)
		total += uint64(n)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

func generate(s *yamux.Stream) {
	left, err := number(s)
	if err != nil {
		return
	}
	if _, err = drain(s); err != nil {
		return
	}
	g := newGenerator()
	buf := make([]byte, 64*1024)
	for left > 0 {
		n := min(left, uint64(len(buf)))
		g.fill(buf[:n])
		if _, err := s.Write(buf[:n]); err != nil {
			return
		}
		left -= n
	}
}

// watch reads to the end of the stream, then writes for a second: the writes of a stream that was
// reset fail, those of one that ended cleanly do not.
func watch(s *yamux.Stream, l *ledger) {
	token, err := number(s)
	if err != nil {
		return
	}
	s.Write([]byte("k"))
	total, _ := drain(s)
	o := outcome{sawEnd, total}
	for i := 0; i < 50; i++ {
		if _, err := s.Write([]byte("p")); err != nil {
			o.kind = sawReset
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.put(token, o)
}

func half(s *yamux.Stream, l *ledger) {
	token, err := number(s)
	if err != nil {
		return
	}
	s.Write([]byte("bye"))
	s.Close()
	total, err := drain(s)
	if err == nil {
		l.put(token, outcome{sawEnd, total})
	}
}
