package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

func caseFile(d *dialer, path string) (string, error) {
	source, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer source.Close()
	s, err := start(d, opSink)
	if err != nil {
		return "", err
	}
	chunk := d.o.chunk
	if info, err := source.Stat(); err == nil && chunk == 0 {
		chunk = int(info.Size())
	}
	sum := sha256.New()
	both := io.MultiWriter(sum, s)
	total, err := io.CopyBuffer(struct{ io.Writer }{both}, struct{ io.Reader }{source}, make([]byte, chunk))
	if err != nil {
		return "", err
	}
	digest := sum.Sum(nil)
	if err = sinkEnd(s, digest, uint64(total)); err != nil {
		return "", err
	}
	return fmt.Sprintf("\"bytes\":%d,\"sha256\":\"%x\"", total, digest), nil
}

// sinkEnd ends our half and compares the reply of a sink.
func sinkEnd(s stream, digest []byte, total uint64) error {
	defer s.done()
	if err := s.end(); err != nil {
		return err
	}
	reply, err := io.ReadAll(s)
	if err == nil && !bytes.Equal(reply, append(bytes.Clone(digest), be64(total)...)) {
		err = fmt.Errorf("the peer's digest or length differs (%d bytes of reply)", len(reply))
	}
	return err
}

func fetch(d *dialer, count uint64) error {
	s, err := start(d, opGenerate, be64(count)...)
	if err != nil {
		return err
	}
	defer s.done()
	if err = s.end(); err != nil {
		return err
	}
	total, err := readGenerated(s, math.MaxUint64)
	if err != io.EOF {
		return err
	}
	if total != count {
		return fmt.Errorf("%d bytes instead of %d", total, count)
	}
	return nil
}

func caseFetch(d *dialer, n []int) (string, error) {
	return fmt.Sprintf("\"bytes\":%d", n[0]), fetch(d, uint64(n[0]))
}

func caseSingle(d *dialer, n []int) (string, error) {
	payload := generated(n[0])
	digest := sha256.Sum256(payload)
	s, err := start(d, opSink)
	if err == nil {
		_, err = s.Write(payload)
	}
	if err == nil {
		err = sinkEnd(s, digest[:], uint64(n[0]))
	}
	if err == nil {
		err = fetch(d, uint64(n[0]))
	}
	return fmt.Sprintf("\"bytes\":%d", n[0]), err
}

func caseShort(d *dialer, n []int) (string, error) {
	err := together(n[0], 64, func(i int) error {
		payload := generated(1 + i*37%1000)
		payload[0] = byte(i)
		return echo(d, payload)
	})
	return fmt.Sprintf("\"streams\":%d", n[0]), err
}

// caseFirst: what the other side writes first comes although we wrote nothing.
func caseFirst(d *dialer, _ []int) (string, error) {
	if answer, err := exchange(d, opPrimer, nil); err != nil || string(answer) != "k" {
		return "", fmt.Errorf("primer: %q, %v", answer, err)
	}
	s, err := d.open()
	if err != nil {
		return "", err
	}
	defer s.done()
	hello := make([]byte, 5)
	if _, err = io.ReadFull(s, hello); err != nil || string(hello) != "hello" {
		return "", fmt.Errorf("greeting: %q, %v", hello, err)
	}
	payload := generated(1000)
	if _, err = s.Write([]byte{opEcho}); err == nil {
		err = echoes(s, payload)
	}
	return "\"bytes\":1000", err
}

func caseSilent(d *dialer, n []int) (string, error) {
	token := newToken()
	s, err := start(d, opSilent, token...)
	if err != nil {
		return "", err
	}
	defer s.done()
	count := uint64(n[0] * 10)
	for i := uint64(0); i < count; i++ {
		if _, err = s.Write([]byte("x")); err != nil {
			return "", fmt.Errorf("byte %d: %w", i, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err = s.end(); err != nil {
		return "", err
	}
	if all, err := io.ReadAll(s); err != nil || len(all) != 0 {
		return "", fmt.Errorf("%d bytes from a silent server, %v", len(all), err)
	}
	if err = saw(d, token, outcome{sawEnd, count}); err == nil {
		err = echo(d, []byte("alive"))
	}
	return fmt.Sprintf("\"bytes\":%d", count), err
}

func caseHalf(d *dialer, _ []int) (string, error) {
	payload := generated(100000)
	digest := sha256.Sum256(payload)

	// Our end first: the reply comes after it.
	s, err := start(d, opSink, payload...)
	if err == nil {
		err = sinkEnd(s, digest[:], uint64(len(payload)))
	}
	if err == nil {
		err = echo(d, payload)
	}
	if err != nil {
		return "", err
	}

	// The peer's end first: it reads on.
	token := newToken()
	if s, err = start(d, opHalf, token...); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(s)
	if err != nil || string(reply) != "bye" {
		return "", fmt.Errorf("the peer's farewell differs: %q, %v", reply, err)
	}
	if _, err = s.Write(payload); err != nil {
		return "", err
	}
	s.done()
	if err = saw(d, token, outcome{sawEnd, uint64(len(payload))}); err != nil {
		return "", err
	}

	// A clean end is not taken for a reset: the control of the reset case.
	token = newToken()
	if reply, err = exchange(d, opWatch, token); err != nil {
		return "", err
	}
	if len(reply) == 0 || reply[0] != 'k' {
		return "", fmt.Errorf("the watch answered %q", reply)
	}
	return fmt.Sprintf("\"bytes\":%d", len(payload)), saw(d, token, outcome{sawEnd, 0})
}

func casePings(d *dialer, n []int) (string, error) {
	var stop atomic.Bool
	echoed := make(chan error, 4)
	payload := generated(10000)
	for i := 0; i < 4; i++ {
		go func() {
			s, err := start(d, opEcho)
			for err == nil && !stop.Load() {
				err = echoes(s, payload)
			}
			if err == nil {
				s.done()
			}
			echoed <- err
		}()
	}
	err := together(n[0], 16, func(int) error { return d.ping() })
	stop.Store(true)
	for i := 0; i < 4; i++ {
		err = errors.Join(err, <-echoed)
	}
	if err == nil {
		err = echo(d, payload)
	}
	return fmt.Sprintf("\"pings\":%d", n[0]), err
}

// caseCross: both sides write before they read, while pings run.
func caseCross(d *dialer, n []int) (string, error) {
	length := uint64(n[1])
	var stop atomic.Bool
	pinged := make(chan error, 1)
	pings := 0
	go func() {
		var err error
		for ; err == nil && !stop.Load() && mux == "yamux"; pings++ {
			err = d.ping()
			time.Sleep(2 * time.Millisecond)
		}
		pinged <- err
	}()
	err := together(n[0], n[0], func(int) error {
		s, err := start(d, opCross, be64(length)...)
		if err == nil {
			err = sendGenerated(s, length, 0)
		}
		if err == nil {
			_, err = readGenerated(s, length)
		}
		if err != nil {
			return err
		}
		defer s.done()
		if err = s.end(); err != nil {
			return err
		}
		if more, err := drain(s); err != nil || more != 0 {
			return fmt.Errorf("%d bytes more, %v", more, err)
		}
		return nil
	})
	stop.Store(true)
	if err == nil {
		err = <-pinged
	}
	return fmt.Sprintf("\"bytes\":%d,\"pings\":%d", n[0]*n[1], pings), err
}

func caseOpens(d *dialer, n []int) (string, error) {
	err := together(n[0], 64, func(int) error { return echo(d, []byte("x")) })
	if err != nil {
		return "", err
	}
	left, err := fewOpen(d)
	return fmt.Sprintf("\"streams\":%d,\"left\":%d", n[0], left), err
}

// caseNames: streams under names of any length; the library makes the first one the number of the stream.
func caseNames(d *dialer, _ []int) (string, error) {
	lengths := []int{0, 1, 1000, 5000}
	for _, n := range lengths {
		s, err := d.openNamed(strings.Repeat("n", n))
		if err == nil {
			_, err = s.Write([]byte{opEcho})
		}
		if err == nil {
			err = echoes(s, generated(1000))
		}
		if err != nil {
			return "", fmt.Errorf("a name of %d bytes: %w", n, err)
		}
		s.done()
	}
	return fmt.Sprintf("\"names\":%d", len(lengths)), nil
}
