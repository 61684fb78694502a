//go:build gomplex

package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	multiplex "github.com/libp2p/go-mplex"
)

// What differs between the libraries.
const (
	library      = "go-mplex"
	mux          = "mplex"
	resetDrops   = true // a reset throws away what was not read
	resetsAtOnce = true
	endIsFinal   = true // behind our own end a reset sends nothing
	forgetsEnded = true // a reset behind their end is not noticed
	losesBuffers = true // unread bytes of a stream that is reset take away a buffer of the session, which has four
)

// muxer counts the streams that were accepted and are not done with: the library does not tell.
type muxer struct {
	*multiplex.Multiplex
	serving atomic.Int64
}

type muxed struct {
	*multiplex.Stream
	m    *muxer
	over atomic.Bool
}

// How long the library waits for a slow reader is a variable of the package.
var once sync.Once

// mplex has no roles and no windows.
func newSession(conn net.Conn, _ string, o options) (session, error) {
	once.Do(func() {
		if o.slow > 0 {
			multiplex.ReceiveTimeout = o.slow
		}
	})
	s, err := multiplex.NewMultiplex(conn, true, nil)
	if err != nil {
		return nil, err
	}
	return &muxer{Multiplex: s}, nil
}

func (m *muxer) open() (stream, error) { return m.openNamed("") }

// openNamed: the library makes the number of the stream of an empty name.
func (m *muxer) openNamed(name string) (stream, error) {
	s, err := m.NewNamedStream(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return &muxed{Stream: s}, nil
}

func (m *muxer) accept() (stream, error) {
	s, err := m.Accept()
	if err != nil {
		return nil, err
	}
	m.serving.Add(1)
	return &muxed{Stream: s, m: m}, nil
}

func (m *muxer) ping() error             { return errNotHere("mplex has no ping") }
func (m *muxer) goAway() error           { return errNotHere("mplex has no GO_AWAY") }
func (m *muxer) streams() int            { return int(m.serving.Load()) }
func (m *muxer) close() error            { return m.Close() }
func (m *muxer) closed() <-chan struct{} { return m.CloseChan() }

// Write: one that waits when the reset comes fails as after a close of our own, and only the next one says why.
func (s *muxed) Write(p []byte) (int, error) {
	n, err := s.Stream.Write(p)
	if errors.Is(err, multiplex.ErrStreamClosed) && len(p) > 0 {
		_, err = s.Stream.Write(p[:1])
	}
	return n, err
}

func (s *muxed) leave() {
	if s.m != nil && !s.over.Swap(true) {
		s.m.serving.Add(-1)
	}
}

func (s *muxed) end() error { return s.CloseWrite() }

func (s *muxed) done() {
	s.leave()
	s.Close()
}

func (s *muxed) reset() error {
	s.leave()
	return s.Reset()
}

func isReset(err error) bool { return errors.Is(err, multiplex.ErrStreamReset) }
