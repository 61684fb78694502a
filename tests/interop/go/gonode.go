//go:build gonode

package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/security/insecure"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	multistream "github.com/multiformats/go-multistream"
)

// What is true of both multiplexers.
const (
	library      = "go-node"
	mux          = "any"
	resetDrops   = true // a reset throws away what was not read
	resetsAtOnce = true
	endIsFinal   = true // behind our own end a reset may send nothing
	forgetsEnded = true // a reset behind their end may not be noticed
	losesBuffers = true // unread bytes of a stream that is reset may take away a buffer of the session
)

const (
	protocol   = "/reeve/interop/1" // of a stream
	plaintext  = "/plaintext/2.0.0"
	allowedFor = 10 * time.Second // an upgrade, or an agreement on a stream
)

var muxerNames = map[string]string{"yamux": "/yamux/1.0.0", "mplex": "/mplex/6.7.0"}

// key is the same in every run.
func key() (crypto.PrivKey, peer.ID, error) {
	k, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(slices.Repeat([]byte{9}, ed25519.SeedSize)))
	if err != nil {
		return nil, "", err
	}
	id, err := peer.IDFromPrivateKey(k)
	return k, id, err
}

// node is a session that was agreed on, with a peer whose id is known.
type node struct {
	session
	own, peer peer.ID
	muxer     string
	o         options
}

// nodeStream agrees on its protocol before it is used.
type nodeStream struct {
	stream
	io    io.ReadWriter // what was agreed on, or is being
	agree func(s stream) error
	once  sync.Once
	err   error
}

// closer makes a stream what the negotiator takes.
type closer struct{ stream }

func (c closer) Close() error { return c.end() }

func init() {
	cases["agreed"] = struct {
		numbers int
		run     func(d *dialer, n []int) (string, error)
	}{0, caseAgreed}
	cases["unknown"] = struct {
		numbers int
		run     func(d *dialer, n []int) (string, error)
	}{0, caseUnknown}
	announce = func(failure error) {
		if _, id, err := key(); failure == nil && err == nil {
			fmt.Println("id", id)
		} else {
			fmt.Println("failed", errors.Join(failure, err))
		}
	}
}

// muxers of the command line, in its order.
func (o options) muxerIDs() ([]string, error) {
	var ids []string
	for _, name := range strings.Split(cmp.Or(o.muxers, "yamux,mplex"), ",") {
		if muxerNames[name] == "" {
			return nil, errors.New("no multiplexer " + name)
		}
		ids = append(ids, muxerNames[name])
	}
	return ids, nil
}

// choose agrees with the other side on one of the protocols.
func choose(conn net.Conn, names []string, dials bool) (string, error) {
	if dials {
		return multistream.SelectOneOf(names, conn)
	}
	m := multistream.NewMultistreamMuxer[string]()
	for _, name := range names {
		m.AddHandler(name, nil)
	}
	name, _, err := m.Negotiate(conn)
	return name, err
}

// secure is the first step: noise, or plaintext under a name that the other side may not have.
func secure(conn net.Conn, o options, dials bool) (sec.SecureConn, error) {
	k, id, err := key()
	if err != nil {
		return nil, err
	}
	name := plaintext
	if o.security != "" {
		name = o.security
	}
	if _, err = choose(conn, []string{name}, dials); err != nil {
		return nil, fmt.Errorf("security: %w", err)
	}
	ctx, done := context.WithTimeout(context.Background(), allowedFor)
	defer done()
	var transport sec.SecureTransport = insecure.NewWithIdentity(plaintext, id, k)
	if name == noise.ID {
		if transport, err = noise.New(noise.ID, k, nil); err != nil {
			return nil, err
		}
	}
	if !dials {
		return transport.SecureInbound(ctx, conn, "")
	}
	expected, err := peer.Decode(o.expect)
	if err != nil {
		return nil, fmt.Errorf("a dialer needs --expect: %w", err)
	}
	return transport.SecureOutbound(ctx, conn, expected)
}

func upgrade(conn net.Conn, o options, dials bool) (session, error) {
	conn.SetDeadline(time.Now().Add(allowedFor))
	secured, err := secure(conn, o, dials)
	if err != nil {
		return nil, err
	}
	ids, err := o.muxerIDs()
	if err != nil {
		return nil, err
	}
	n := &node{own: secured.LocalPeer(), peer: secured.RemotePeer(), o: o}
	if n.muxer, err = choose(secured, ids, dials); err != nil {
		return nil, fmt.Errorf("multiplexer: %w", err)
	}
	conn.SetDeadline(time.Time{})
	role := "server"
	if dials {
		role = "client"
	}
	if n.muxer == muxerNames["mplex"] {
		n.session, err = newMplex(secured, role, o)
	} else {
		n.session, err = newYamux(secured, role, o)
	}
	return n, err
}

// newSession: the role is who dialed.
func newSession(conn net.Conn, role string, o options) (session, error) {
	n, err := upgrade(conn, o, role == "client")
	if err != nil {
		conn.Close()
	}
	return n, err
}

func isReset(err error) bool { return isYamuxReset(err) || isMplexReset(err) }

// facts of a session with a peer: both ids and the multiplexer.
func (n *node) facts() string { return fmt.Sprintf("%s %s %s", n.own, n.peer, n.muxer) }

func (n *node) open() (stream, error) { return n.openFor(protocol) }

func (n *node) openFor(name string) (stream, error) {
	s, err := n.session.open()
	if err != nil || !n.o.negotiate {
		return s, err
	}
	if n.o.lazy {
		return &nodeStream{stream: s, io: multistream.NewMSSelect(closer{s}, name)}, nil
	}
	if err = multistream.SelectProtoOrFail(name, closer{s}); err != nil {
		s.reset()
		return nil, err
	}
	return s, nil
}

func (n *node) accept() (stream, error) {
	s, err := n.session.accept()
	if err != nil || !n.o.negotiate {
		return s, err
	}
	return &nodeStream{stream: s, io: s, agree: func(s stream) error {
		m := multistream.NewMultistreamMuxer[string]()
		m.AddHandler(protocol, nil)
		_, _, err := m.Negotiate(closer{s})
		return err
	}}, nil
}

// ready runs the agreement of an accepted stream, in whoever serves it.
func (s *nodeStream) ready() error {
	s.once.Do(func() {
		if s.agree != nil {
			s.err = s.agree(s.stream)
		}
	})
	return s.err
}

func (s *nodeStream) Read(p []byte) (int, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	return s.io.Read(p)
}

func (s *nodeStream) Write(p []byte) (int, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	return s.io.Write(p)
}

// end: a proposal that waits for the first bytes leaves before.
func (s *nodeStream) end() error {
	if lazy, ok := s.io.(interface{ Flush() error }); ok {
		lazy.Flush()
	}
	return s.stream.end()
}

// caseAgreed: both sides know the other's id and agree on the multiplexer.
func caseAgreed(d *dialer, _ []int) (string, error) {
	n := d.session.(*node)
	answer, err := exchange(d, opIdentify, nil)
	if err != nil {
		return "", err
	}
	if want := fmt.Sprintf("%s %s %s", n.peer, n.own, n.muxer); string(answer) != want {
		return "", fmt.Errorf("%q there, and here %q", answer, n.facts())
	}
	return fmt.Sprintf("\"id\":%q,\"peer_id\":%q,\"muxer\":%q", n.own, n.peer, n.muxer), nil
}

// caseUnknown: a protocol that the other side does not have fails on its stream, and only there.
func caseUnknown(d *dialer, _ []int) (string, error) {
	other, err := start(d, opEcho)
	if err != nil {
		return "", err
	}
	defer other.done()
	s, failure := d.session.(*node).openFor("/reeve/unknown/1")
	if failure == nil { // lazily: what was written went nowhere
		if _, failure = s.Write([]byte("x")); failure == nil {
			_, failure = s.Read(make([]byte, 1))
		}
		s.reset()
	}
	if failure == nil {
		return "", errors.New("an unknown protocol was taken")
	}
	if err = echoes(other, []byte("y")); err == nil {
		err = echo(d, []byte("alive"))
	}
	return fmt.Sprintf("\"failure\":%q", failure), err
}
