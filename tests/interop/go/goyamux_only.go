//go:build goyamux

package main

import "net"

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

func newSession(conn net.Conn, role string, o options) (session, error) {
	return newYamux(conn, role, o)
}

func isReset(err error) bool { return isYamuxReset(err) }
