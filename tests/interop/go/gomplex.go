//go:build gomplex || gonode

package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	multiplex "github.com/libp2p/go-mplex"
)

// mplexSession counts the streams that were accepted and are not done with: the library does not tell.
type mplexSession struct {
	*multiplex.Multiplex
	serving atomic.Int64
}

type mplexStream struct {
	*multiplex.Stream
	m    *mplexSession
	over atomic.Bool
}

// How long the library waits for a slow reader is a variable of the package.
var once sync.Once

// mplex has no roles and no windows.
func newMplex(conn net.Conn, _ string, o options) (session, error) {
	once.Do(func() {
		if o.slow > 0 {
			multiplex.ReceiveTimeout = o.slow
		}
	})
	s, err := multiplex.NewMultiplex(conn, true, nil)
	if err != nil {
		return nil, err
	}
	return &mplexSession{Multiplex: s}, nil
}

func (m *mplexSession) open() (stream, error) { return m.openNamed("") }

// openNamed: the library makes the number of the stream of an empty name.
func (m *mplexSession) openNamed(name string) (stream, error) {
	s, err := m.NewNamedStream(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return &mplexStream{Stream: s}, nil
}

func (m *mplexSession) accept() (stream, error) {
	s, err := m.Accept()
	if err != nil {
		return nil, err
	}
	m.serving.Add(1)
	return &mplexStream{Stream: s, m: m}, nil
}

func (m *mplexSession) ping() error             { return errNotHere("mplex has no ping") }
func (m *mplexSession) goAway() error           { return errNotHere("mplex has no GO_AWAY") }
func (m *mplexSession) streams() int            { return int(m.serving.Load()) }
func (m *mplexSession) close() error            { return m.Close() }
func (m *mplexSession) closed() <-chan struct{} { return m.CloseChan() }

// Write: one that waits when the reset comes fails as after a close of our own, and only the next one says why.
func (s *mplexStream) Write(p []byte) (int, error) {
	n, err := s.Stream.Write(p)
	if errors.Is(err, multiplex.ErrStreamClosed) && len(p) > 0 {
		_, err = s.Stream.Write(p[:1])
	}
	return n, err
}

func (s *mplexStream) leave() {
	if s.m != nil && !s.over.Swap(true) {
		s.m.serving.Add(-1)
	}
}

func (s *mplexStream) end() error { return s.CloseWrite() }

func (s *mplexStream) done() {
	s.leave()
	s.Close()
}

func (s *mplexStream) reset() error {
	s.leave()
	return s.Reset()
}

func isMplexReset(err error) bool { return errors.Is(err, multiplex.ErrStreamReset) }
