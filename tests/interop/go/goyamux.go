//go:build goyamux

package main

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/libp2p/go-yamux/v5"
)

// What differs between the libraries.
const (
	library      = "go-yamux"
	mux          = "yamux"
	resetDrops   = true // a reset throws away what was not read
	resetsAtOnce = true
	endIsFinal   = false
	forgetsEnded = false
	losesBuffers = false
)

type muxer struct{ *yamux.Session }

type muxed struct{ *yamux.Stream }

func newSession(conn net.Conn, role string, o options) (session, error) {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	if o.window > 0 {
		cfg.InitialStreamWindowSize = o.window
		cfg.MaxStreamWindowSize = max(cfg.MaxStreamWindowSize, o.window)
	}
	make := yamux.Client
	if role == "server" {
		make = yamux.Server
	}
	s, err := make(conn, cfg, nil)
	if err != nil {
		return nil, err
	}
	return &muxer{s}, nil
}

func (m *muxer) open() (stream, error) {
	s, err := m.OpenStream(context.Background())
	if err != nil {
		return nil, err
	}
	return &muxed{s}, nil
}

func (m *muxer) accept() (stream, error) {
	s, err := m.AcceptStream()
	if err != nil {
		return nil, err
	}
	return &muxed{s}, nil
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

func (s *muxed) end() error   { return s.CloseWrite() }
func (s *muxed) done()        { s.Close() }
func (s *muxed) reset() error { return s.ResetWithError(7) }

func isReset(err error) bool { return errors.Is(err, yamux.ErrStreamReset) }
