package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// cpu is the processor time of this process so far, user and system.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// flood writes until told to stop and returns the bytes that the peer says it read.
func flood(m session, write int, stop *atomic.Bool) (uint64, error) {
	s, err := start(m, opDiscard)
	if err != nil {
		return 0, err
	}
	buf := bytes.Repeat([]byte{0x5a}, write)
	for !stop.Load() {
		if _, err := s.Write(buf); err != nil {
			return 0, err
		}
	}
	if err := s.end(); err != nil {
		return 0, err
	}
	return number(s)
}

func caseBench(m session, words []string) (string, error) {
	streams, err1 := strconv.Atoi(words[0])
	write, err2 := strconv.Atoi(words[1])
	seconds, err3 := strconv.ParseFloat(words[2], 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	var stop atomic.Bool
	var total atomic.Uint64
	var all sync.WaitGroup
	failed := make(chan error, streams)
	begin, beginCPU := time.Now(), cpu()
	for i := 0; i < streams; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			n, err := flood(m, write, &stop)
			if err != nil {
				failed <- err
			}
			total.Add(n)
		}()
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	stop.Store(true)
	all.Wait()
	took, used := time.Since(begin), cpu()-beginCPU
	select {
	case err := <-failed:
		return "", err
	default:
	}
	n := float64(total.Load())
	if n == 0 {
		return "", errors.New("no byte arrived")
	}
	return fmt.Sprintf("\"streams\":%d,\"write\":%d,\"bytes_per_s\":%.0f,\"cpu_ns_per_kib\":%.1f",
		streams, write, n/took.Seconds(), float64(used.Nanoseconds())/(n/1024)), nil
}

// pair runs both ends in this process over TCP loopback, and measures between them.
func pair(o options, measure func(m session, words []string) (string, error)) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	peer, err := listener.Accept()
	if err != nil {
		return err
	}
	go attend(peer, "server", newLedger(), o)
	m, err := newSession(conn, "client", o)
	if err != nil {
		return err
	}
	defer m.close()
	measured, err := measure(m, o.rest[1:])
	if err == nil {
		fmt.Printf("{\"peer\":%q,%s}\n", library, measured)
	}
	return err
}
