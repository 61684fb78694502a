//go:build hashicorp

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// dial runs one case and prints one line of JSON on success.
func dial(addr, role string, chunk int, words []string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	closeTimeout := time.Duration(0)
	if words[0] == "reset" {
		closeTimeout = resetCloseTimeout
	}
	s, err := session(conn, role, closeTimeout)
	if err != nil {
		return err
	}
	defer s.Close()
	start := time.Now()
	measured, err := runCase(s, chunk, words)
	if err != nil {
		return err
	}
	fmt.Printf("{\"peer\":\"go\",\"case\":%q,\"ms\":%d,%s}\n", words[0], time.Since(start).Milliseconds(), measured)
	return nil
}

func runCase(s *yamux.Session, chunk int, words []string) (string, error) {
	switch strings.Join(words[:1], "") + strconv.Itoa(len(words)-1) {
	case "file1":
		return caseFile(s, words[1], chunk)
	case "fetch1":
		n, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return "", err
		}
		return caseFetch(s, n)
	case "short1":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return "", err
		}
		return caseShort(s, n)
	case "half0":
		return caseHalf(s)
	case "reset0":
		return caseReset(s)
	case "bench3":
		return caseBench(s, words[1:])
	}
	return "", errors.New("cases: file PATH, fetch N, short N, half, reset, bench S W T")
}

// start opens a stream, selects its protocol and writes the rest of the request.
func start(s *yamux.Session, what byte, request ...byte) (*yamux.Stream, error) {
	stream, err := s.OpenStream()
	if err != nil {
		return nil, err
	}
	_, err = stream.Write(append([]byte{what}, request...))
	return stream, err
}

// exchange writes a request, ends our half and returns all that comes back.
func exchange(s *yamux.Session, what byte, request []byte) ([]byte, error) {
	stream, err := start(s, what, request...)
	if err != nil {
		return nil, err
	}
	if err = stream.Close(); err != nil {
		return nil, err
	}
	return io.ReadAll(stream)
}

func newToken() uint64 {
	return uint64(time.Now().UnixNano()) ^ uint64(os.Getpid())
}

// ask is exchange without ending our half first, for an answer of known length.  With the short close
// timeout of the reset case an early end would leave the answer too little time.
func ask(s *yamux.Session, what byte, request, answer []byte) error {
	stream, err := start(s, what, request...)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = io.ReadFull(stream, answer)
	return err
}

// query asks what the serving side saw of the stream with this token.
func query(s *yamux.Session, token uint64) (outcome, error) {
	var answer [9]byte
	err := ask(s, opQuery, be64(token), answer[:])
	return outcome{answer[0], binary.BigEndian.Uint64(answer[1:])}, err
}

func echo(s *yamux.Session, payload []byte) error {
	all, err := exchange(s, opEcho, payload)
	if err == nil && !bytes.Equal(all, payload) {
		err = errors.New("the echo differs")
	}
	return err
}

func caseFile(s *yamux.Session, path string, chunk int) (string, error) {
	source, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer source.Close()
	stream, err := start(s, opSink)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	both := io.MultiWriter(sum, stream)
	total, err := io.CopyBuffer(struct{ io.Writer }{both}, struct{ io.Reader }{source}, make([]byte, chunk))
	if err != nil {
		return "", err
	}
	stream.Close()
	reply, err := io.ReadAll(stream)
	if err != nil {
		return "", err
	}
	digest := sum.Sum(nil)
	if !bytes.Equal(reply, append(bytes.Clone(digest), be64(uint64(total))...)) {
		return "", errors.New("the peer's digest or length differs")
	}
	return fmt.Sprintf("\"bytes\":%d,\"sha256\":\"%x\"", total, digest), nil
}

func caseFetch(s *yamux.Session, count uint64) (string, error) {
	stream, err := start(s, opGenerate, be64(count)...)
	if err != nil {
		return "", err
	}
	stream.Close()
	g := newGenerator()
	got, want := make([]byte, 64*1024), make([]byte, 64*1024)
	total := uint64(0)
	for {
		n, err := stream.Read(got)
		g.fill(want[:n])
		if !bytes.Equal(got[:n], want[:n]) {
			return "", fmt.Errorf("bytes differ after %d", total)
		}
		total += uint64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if total != count {
		return "", fmt.Errorf("%d bytes instead of %d", total, count)
	}
	return fmt.Sprintf("\"bytes\":%d", total), nil
}

func caseShort(s *yamux.Session, count int) (string, error) {
	room := make(chan struct{}, 64)
	failed := make(chan error, count)
	var all sync.WaitGroup
	for i := 0; i < count; i++ {
		room <- struct{}{}
		all.Add(1)
		go func(i int) {
			defer all.Done()
			payload := make([]byte, 1+i*37%1000)
			newGenerator().fill(payload)
			payload[0] = byte(i)
			if err := echo(s, payload); err != nil {
				failed <- err
			}
			<-room
		}(i)
	}
	all.Wait()
	select {
	case err := <-failed:
		return "", err
	default:
		return fmt.Sprintf("\"streams\":%d", count), nil
	}
}

func caseHalf(s *yamux.Session) (string, error) {
	payload := make([]byte, 100000)
	newGenerator().fill(payload)

	// Our end first: the reply comes after it.
	reply, err := exchange(s, opSink, payload)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(payload)
	if !bytes.Equal(reply, append(digest[:], be64(uint64(len(payload)))...)) {
		return "", errors.New("the reply after our end differs")
	}
	if err := echo(s, payload); err != nil {
		return "", err
	}

	// The peer's end first: it reads on.
	token := newToken()
	stream, err := start(s, opHalf, be64(token)...)
	if err != nil {
		return "", err
	}
	if reply, err = io.ReadAll(stream); err != nil || string(reply) != "bye" {
		return "", fmt.Errorf("the peer's farewell differs (%v)", err)
	}
	if _, err = stream.Write(payload); err != nil {
		return "", err
	}
	stream.Close()
	if saw, err := query(s, token); err != nil || saw != (outcome{sawEnd, uint64(len(payload))}) {
		return "", fmt.Errorf("bytes written after the peer's end were lost (%v)", err)
	}

	// A clean end is not taken for a reset: the control of the reset case.
	token = newToken()
	if reply, err = exchange(s, opWatch, be64(token)); err != nil {
		return "", err
	}
	saw, err := query(s, token)
	if err != nil || saw.kind != sawEnd || len(reply) == 0 || reply[0] != 'k' {
		return "", fmt.Errorf("a clean end was seen as something else (%v)", err)
	}
	return fmt.Sprintf("\"bytes\":%d", len(payload)), nil
}

func caseReset(s *yamux.Session) (string, error) {
	// Theirs reaches us: writing fails in the end.
	stream, err := start(s, opReset, 'x')
	if err != nil {
		return "", err
	}
	begin := time.Now()
	for err == nil {
		if time.Since(begin) > 10*time.Second {
			return "", errors.New("the peer's reset never arrived")
		}
		time.Sleep(10 * time.Millisecond)
		_, err = stream.Write([]byte("x"))
	}
	if !errors.Is(err, yamux.ErrConnectionReset) {
		return "", fmt.Errorf("not a reset: %w", err)
	}
	heard := time.Since(begin).Milliseconds()

	// Ours reaches them: FIN, then RST when the close timeout is over.
	token := newToken()
	stream, err = start(s, opWatch, be64(token)...)
	if err != nil {
		return "", err
	}
	var ready [1]byte
	if _, err = io.ReadFull(stream, ready[:]); err != nil {
		return "", err
	}
	stream.Close()
	saw, err := query(s, token)
	if err != nil || saw.kind != sawReset {
		return "", fmt.Errorf("the peer did not see our reset (%v)", err)
	}

	// And the connection lives on.
	var alive [5]byte
	if err := ask(s, opEcho, []byte("alive"), alive[:]); err != nil || string(alive[:]) != "alive" {
		return "", fmt.Errorf("the echo after the resets differs (%v)", err)
	}
	return fmt.Sprintf("\"heard_ms\":%d", heard), nil
}
