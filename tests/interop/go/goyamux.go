//go:build goyamux || gonode

package main

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/libp2p/go-yamux/v5"
)

type yamuxSession struct{ *yamux.Session }

type yamuxStream struct{ *yamux.Stream }

func newYamux(conn net.Conn, role string, o options) (session, error) {
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
	return &yamuxSession{s}, nil
}

func (m *yamuxSession) open() (stream, error) {
	s, err := m.OpenStream(context.Background())
	if err != nil {
		return nil, err
	}
	return &yamuxStream{s}, nil
}

func (m *yamuxSession) accept() (stream, error) {
	s, err := m.AcceptStream()
	if err != nil {
		return nil, err
	}
	return &yamuxStream{s}, nil
}

func (m *yamuxSession) openNamed(string) (stream, error) {
	return nil, errNotHere("streams of yamux have no names")
}

func (m *yamuxSession) ping() error {
	_, err := m.Ping()
	return err
}

func (m *yamuxSession) goAway() error           { return m.GoAway() }
func (m *yamuxSession) streams() int            { return m.NumStreams() }
func (m *yamuxSession) close() error            { return m.Close() }
func (m *yamuxSession) closed() <-chan struct{} { return m.CloseChan() }

func (s *yamuxStream) end() error   { return s.CloseWrite() }
func (s *yamuxStream) done()        { s.Close() }
func (s *yamuxStream) reset() error { return s.ResetWithError(7) }

func isYamuxReset(err error) bool { return errors.Is(err, yamux.ErrStreamReset) }
