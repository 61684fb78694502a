//go:build gomplex

package main

import "net"

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

func newSession(conn net.Conn, role string, o options) (session, error) {
	return newMplex(conn, role, o)
}

func isReset(err error) bool { return isMplexReset(err) }
