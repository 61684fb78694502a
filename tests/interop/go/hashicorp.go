//go:build hashicorp

package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// What differs between the libraries.
const (
	library      = "hashicorp"
	mux          = "yamux"
	resetDrops   = true  // a reset throws away what was not read
	resetsAtOnce = false // see reset
	endIsFinal   = false
	forgetsEnded = false
	losesBuffers = false
)

// The library has no call to reset a stream.  It sends RST for a stream that was closed and whose peer did not end
// its half within StreamCloseTimeout, so this short one is how this peer resets: the other side sees FIN, then RST.
const resetTimeout = 50 * time.Millisecond

// muxer holds the lock under which the close timeout of the shared configuration is read by the library.
type muxer struct {
	*yamux.Session
	mu  sync.Mutex
	cfg *yamux.Config
}

type muxed struct {
	*yamux.Stream
	m *muxer
}

func newSession(conn net.Conn, role string, o options) (session, error) {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	if o.window > 0 {
		cfg.MaxStreamWindowSize = o.window
	}
	if o.openTimeout > 0 {
		cfg.StreamOpenTimeout = o.openTimeout
	}
	if o.closeTimeout > 0 {
		cfg.StreamCloseTimeout = o.closeTimeout
	}
	make := yamux.Client
	if role == "server" {
		make = yamux.Server
	}
	s, err := make(conn, cfg)
	if err != nil {
		return nil, err
	}
	return &muxer{Session: s, cfg: cfg}, nil
}

func (m *muxer) open() (stream, error) {
	s, err := m.OpenStream()
	if err != nil {
		return nil, err
	}
	return &muxed{s, m}, nil
}

func (m *muxer) accept() (stream, error) {
	s, err := m.AcceptStream()
	if err != nil {
		return nil, err
	}
	return &muxed{s, m}, nil
}

func (m *muxer) openNamed(string) (stream, error) {
	return nil, errNotHere("streams of yamux have no names")
}

func (m *muxer) ping() error {
	_, err := m.Ping()
	return err
}

func (m *muxer) goAway() error           { return m.GoAway() }
func (m *muxer) streams() int            { return m.NumStreams() }
func (m *muxer) close() error            { return m.Close() }
func (m *muxer) closed() <-chan struct{} { return m.CloseChan() }

func (s *muxed) end() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.Close()
}

func (s *muxed) done() { s.end() }

func (s *muxed) reset() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	usual := s.m.cfg.StreamCloseTimeout
	s.m.cfg.StreamCloseTimeout = resetTimeout
	err := s.Close()
	s.m.cfg.StreamCloseTimeout = usual
	return err
}

func isReset(err error) bool { return errors.Is(err, yamux.ErrConnectionReset) }
