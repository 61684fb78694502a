package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// dialer is the connection that a case runs on.
type dialer struct {
	session
	addr string
	o    options
}

func connect(addr string, o options) (*dialer, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	m, err := newSession(conn, o.roleOr("client"), o)
	if err != nil {
		return nil, err
	}
	return &dialer{m, addr, o}, nil
}

// cases by name: how many numbers they take and what they do.  The result is members of a JSON object.
var cases = map[string]struct {
	numbers int
	run     func(d *dialer, n []int) (string, error)
}{
	"fetch":  {1, caseFetch},
	"single": {1, caseSingle},
	"short":  {1, caseShort},
	"first":  {0, caseFirst},
	"silent": {1, caseSilent},
	"half":   {0, caseHalf},
	"reset":  {0, caseReset},
	"resets": {0, caseResets},
	"reply":  {0, caseReply},
	"pings":  {1, casePings},
	"cross":  {2, caseCross},
	"opens":  {1, caseOpens},
	"hold":   {1, caseHold},
	"slow":   {1, caseSlow},
	"names":  {0, caseNames},
}

// dial runs one case and prints one line of JSON on success.
func dial(addr string, o options) error {
	d, err := connect(addr, o)
	if err != nil {
		return err
	}
	defer d.close()
	start := time.Now()
	measured, err := d.runCase(o.rest[2], o.rest[3:])
	if err != nil {
		return err
	}
	fmt.Printf("{\"peer\":%q,\"case\":%q,\"ms\":%d,%s}\n", library, o.rest[2], time.Since(start).Milliseconds(), measured)
	return nil
}

func (d *dialer) runCase(name string, words []string) (string, error) {
	switch {
	case name == "file" && len(words) == 1:
		return caseFile(d, words[0])
	case name == "goaway" && len(words) == 1 && words[0] == "theirs":
		return caseGoAwayTheirs(d)
	case name == "goaway" && len(words) == 1 && words[0] == "ours":
		return caseGoAwayOurs(d)
	case name == "bench" && len(words) == 3:
		return caseBench(d.session, words)
	}
	c, ok := cases[name]
	if !ok || len(words) != c.numbers {
		return "", errors.New("no such case: " + name + ", see README.md")
	}
	var numbers []int
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil {
			return "", err
		}
		numbers = append(numbers, n)
	}
	return c.run(d, numbers)
}

// start opens a stream, selects its protocol and writes the rest of the request.
func start(m session, what byte, request ...byte) (stream, error) {
	s, err := m.open()
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	_, err = s.Write(append([]byte{what}, request...))
	return s, err
}

// exchange writes a request, ends our half and returns all that comes back.
func exchange(m session, what byte, request []byte) ([]byte, error) {
	s, err := start(m, what, request...)
	if err != nil {
		return nil, err
	}
	defer s.done()
	if err = s.end(); err != nil {
		return nil, err
	}
	return io.ReadAll(s)
}

var tokens struct {
	sync.Mutex
	last uint64
}

func newToken() []byte {
	tokens.Lock()
	defer tokens.Unlock()
	tokens.last = max(tokens.last+1, uint64(time.Now().UnixNano())^uint64(os.Getpid()))
	return be64(tokens.last)
}

// query asks what the serving side saw of the stream with this token.
func query(m session, token []byte) (outcome, error) {
	answer, err := exchange(m, opQuery, token)
	if err == nil && len(answer) != 9 {
		err = fmt.Errorf("an answer of %d bytes to a query", len(answer))
	}
	if err != nil {
		return outcome{}, err
	}
	return outcome{answer[0], binary.BigEndian.Uint64(answer[1:])}, nil
}

// saw asks, and wants this outcome.
func saw(m session, token []byte, want outcome) error {
	o, err := query(m, token)
	if err == nil && o != want {
		err = fmt.Errorf("the other side saw %c after %d bytes, not %c after %d", o.kind, o.total, want.kind, want.total)
	}
	return err
}

func echo(m session, payload []byte) error {
	all, err := exchange(m, opEcho, payload)
	if err == nil && !bytes.Equal(all, payload) {
		err = fmt.Errorf("the echo of %d bytes differs (%d came)", len(payload), len(all))
	}
	return err
}

// echoes writes on an echo stream and reads that back.
func echoes(s stream, payload []byte) error {
	if _, err := s.Write(payload); err != nil {
		return err
	}
	got := make([]byte, len(payload))
	if _, err := io.ReadFull(s, got); err != nil {
		return err
	}
	if !bytes.Equal(got, payload) {
		return errors.New("the echo differs")
	}
	return nil
}

// fewOpen wants at most four streams open at the other side, within five seconds.
func fewOpen(m session) (uint64, error) {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		answer, err := exchange(m, opOpen, nil)
		if err != nil || len(answer) != 8 {
			return 0, fmt.Errorf("open streams: %d bytes, %v", len(answer), err)
		}
		n := binary.BigEndian.Uint64(answer)
		if n <= 4 {
			return n, nil
		}
		if time.Since(begin) > 5*time.Second {
			return n, fmt.Errorf("%d streams are open at the other side", n)
		}
	}
}

// together runs n tasks, at most room at once, and returns one of their errors.
func together(n, room int, task func(i int) error) error {
	gate := make(chan struct{}, room)
	failed := make(chan error, n)
	var all sync.WaitGroup
	for i := 0; i < n; i++ {
		gate <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			if err := task(i); err != nil {
				failed <- err
			}
			<-gate
		}()
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
