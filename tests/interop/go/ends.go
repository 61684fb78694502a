package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// untilReset writes until that fails and wants a reset; returns how long it took.
func untilReset(s stream) (time.Duration, error) {
	begin := time.Now()
	for {
		took := time.Since(begin)
		if _, err := s.Write([]byte("x")); isReset(err) {
			return took, nil
		} else if err != nil {
			return took, fmt.Errorf("not a reset: %w", err)
		}
		if took > 10*time.Second {
			return took, errors.New("the peer's reset never arrived")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func caseReset(d *dialer, _ []int) (string, error) {
	// Theirs reaches us: writing fails in the end.
	s, err := start(d, opReset, 'x')
	if err != nil {
		return "", err
	}
	heard, err := untilReset(s)
	if err != nil {
		return "", err
	}
	// Ours reaches them.
	if err = resetAnswered(d); err != nil {
		return "", fmt.Errorf("our reset: %w", err)
	}
	return fmt.Sprintf("\"heard_ms\":%d", heard.Milliseconds()), echo(d, []byte("alive"))
}

func resetAnswered(d *dialer) error {
	token := newToken()
	s, err := start(d, opWatch, token...)
	if err != nil {
		return err
	}
	if _, err = io.ReadFull(s, make([]byte, 1)); err != nil {
		return err
	}
	if err = s.reset(); err != nil {
		return err
	}
	return saw(d, token, outcome{sawReset, 0})
}

func resetOpened(d *dialer) error {
	s, err := d.open()
	if err != nil {
		return err
	}
	return s.reset()
}

func resetWritten(d *dialer) error {
	s, err := start(d, opEcho, generated(1000)...)
	if err != nil {
		return err
	}
	return s.reset()
}

// Where a reset is an end and then a reset, or not possible behind an end, this is resetAnswered.
func resetOwnEnd(d *dialer) error {
	if !resetsAtOnce || endIsFinal {
		return resetAnswered(d)
	}
	token := newToken()
	s, err := start(d, opWatch, token...)
	if err != nil {
		return err
	}
	if err = s.end(); err != nil {
		return err
	}
	if _, err = io.ReadFull(s, make([]byte, 2)); err != nil {
		return err
	}
	if err = s.reset(); err != nil {
		return err
	}
	return saw(d, token, outcome{sawReset, 0})
}

func resetTheirEnd(d *dialer) error {
	s, err := start(d, opHalf, newToken()...)
	if err != nil {
		return err
	}
	if all, err := io.ReadAll(s); err != nil || string(all) != "bye" {
		return fmt.Errorf("farewell: %q, %v", all, err)
	}
	return s.reset()
}

func resetUnread(d *dialer) error {
	s, err := start(d, opEcho, generated(1000)...)
	if err != nil {
		return err
	}
	if _, err = io.ReadFull(s, make([]byte, 1)); err != nil {
		return err
	}
	return s.reset()
}

func resetSending(d *dialer) error {
	what := byte(opGenerate)
	if endIsFinal {
		what = opCross // writes before our end
	}
	s, err := start(d, what, be64(64<<20)...)
	if err != nil {
		return err
	}
	if !endIsFinal {
		err = s.end()
	}
	if err != nil {
		return err
	}
	if _, err = io.ReadFull(s, make([]byte, piece)); err != nil {
		return err
	}
	if !resetsAtOnce { // our end was no reset, so it is read out
		n, err := drain(s)
		if err == nil && n != 64<<20-piece {
			err = fmt.Errorf("%d bytes", n)
		}
		return err
	}
	return s.reset()
}

// resetByThem has the server reset a stream in a state.
func resetByThem(d *dialer, state byte) error {
	token := newToken()
	s, err := start(d, opState, append(token, state)...)
	if err != nil {
		return err
	}
	switch state {
	case stateAnswered:
		if _, err = io.ReadFull(s, make([]byte, 1)); isReset(err) && resetDrops {
			err = nil
		}
	case stateTheirEnd:
		err = s.end()
	case stateOwnEnd:
		_, err = drain(s)
	case stateUnread:
		_, err = s.Write(generated(1000))
	case stateWritten:
		for payload := generated(piece); err == nil; {
			_, err = s.Write(payload)
		}
	}
	if isReset(err) && state >= stateUnread { // the reset waits for no more than the first byte
		err = nil
	}
	if err != nil {
		return err
	}
	if state == stateTheirEnd {
		if _, err = drain(s); err != nil && !isReset(err) {
			return err
		}
	} else if state != stateOwnEnd {
		if _, err = untilReset(s); err != nil {
			return err
		}
	}
	o, err := query(d, token)
	if err == nil && o.kind != sawReset && o.kind != sawEnd {
		err = errors.New("the server noted nothing")
	}
	// A library that cannot reset behind its own end notes an end.
	if err == nil && state == stateOwnEnd && o.kind == sawReset && !forgetsEnded {
		_, err = untilReset(s)
	}
	if err == nil {
		s.done()
	}
	return err
}

// inState runs one state of resets and an echo behind it.
func inState(d *dialer, run func(*dialer) error) error {
	if d.o.apart {
		own, err := connect(d.addr, d.o)
		if err != nil {
			return err
		}
		defer own.close()
		d = own
	}
	if err := run(d); err != nil {
		return err
	}
	if err := echo(d, []byte("alive")); err != nil {
		return fmt.Errorf("afterwards: %w", err)
	}
	return nil
}

func caseResets(d *dialer, _ []int) (string, error) {
	ours := []func(*dialer) error{resetOpened, resetWritten, resetAnswered, resetOwnEnd, resetTheirEnd, resetUnread, resetSending}
	for i, reset := range ours {
		if err := inState(d, reset); err != nil {
			return "", fmt.Errorf("our reset in state %d: %w", i, err)
		}
	}
	for state := byte(stateAtOnce); state <= stateWritten; state++ {
		if err := inState(d, func(d *dialer) error { return resetByThem(d, state) }); err != nil {
			return "", fmt.Errorf("their reset in state %d: %w", state, err)
		}
	}
	left, err := fewOpen(d)
	return fmt.Sprintf("\"left\":%d", left), err
}

func caseReply(d *dialer, _ []int) (string, error) {
	const length = 100000
	s, err := start(d, opAbrupt, be64(length)...)
	if err != nil {
		return "", err
	}
	got, err := readGenerated(s, length)
	if err != nil && !(isReset(err) && resetDrops) {
		return "", fmt.Errorf("after %d bytes: %w", got, err)
	}
	if err == nil {
		more, err := drain(s)
		if more > 0 || (err != nil && !isReset(err)) {
			return "", fmt.Errorf("%d bytes too many, %v", more, err)
		}
		if _, err = untilReset(s); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("\"bytes\":%d", got), echo(d, []byte("alive"))
}

func caseGoAwayTheirs(d *dialer) (string, error) {
	if mux == "mplex" {
		return "", errNotHere("mplex has no GO_AWAY")
	}
	payload := generated(10000)
	var open [3]stream
	for i := range open {
		s, err := start(d, opEcho)
		if err == nil {
			err = echoes(s, payload)
		}
		if err != nil {
			return "", err
		}
		open[i] = s
	}
	if _, err := open[2].Write(payload); err != nil {
		return "", err
	}
	if _, err := start(d, opGoAway, 'g'); err != nil {
		return "", err
	}
	begin := time.Now()
	for {
		s, err := d.open()
		if err != nil {
			break
		}
		s.reset()
		if time.Since(begin) > 5*time.Second {
			return "", errors.New("streams can be opened five seconds after the other side's GO_AWAY")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if echoes(open[0], payload) != nil {
		return "\"streams\":\"over\"", nil
	}
	if _, err := io.ReadFull(open[2], make([]byte, len(payload))); err != nil {
		return "", fmt.Errorf("bytes that were under way: %w", err)
	}
	return "\"streams\":\"on\"", nil
}

// caseGoAwayOurs closes while a stream is open whose bytes have left.
func caseGoAwayOurs(d *dialer) (string, error) {
	payload, token := generated(100000), newToken()
	s, err := start(d, opSilent, token...)
	if err == nil {
		_, err = s.Write(payload)
	}
	if err == nil {
		err = echo(d, []byte("left"))
	}
	if err == nil {
		err = d.close()
	}
	if err != nil {
		return "", err
	}
	again, err := connect(d.addr, d.o)
	if err != nil {
		return "", err
	}
	defer again.close()
	o, err := query(again, token)
	if err == nil && o.total != uint64(len(payload)) {
		err = fmt.Errorf("the other side saw %c after %d bytes", o.kind, o.total)
	}
	return fmt.Sprintf("\"bytes\":%d", o.total), err
}

// caseHold waits until the session is over.
func caseHold(d *dialer, n []int) (string, error) {
	var reason error
	streams := make([]stream, n[0])
	for i := range streams {
		s, err := start(d, opEcho)
		if err == nil {
			err = echoes(s, []byte("x"))
		}
		if err != nil {
			return "", err
		}
		streams[i] = s
	}
	fmt.Println("holding")
	<-d.closed()
	for _, s := range streams {
		if _, reason = s.Read(make([]byte, 1)); reason == nil {
			return "", errors.New("a stream outlived its session")
		}
	}
	return fmt.Sprintf("\"reason\":%q", reason.Error()), nil
}

// caseSlow: the server does not read for so many milliseconds, until its library resets that stream; others go on.
func caseSlow(d *dialer, n []int) (string, error) {
	if mux == "yamux" {
		return "", errNotHere("a slow reader of yamux holds up nobody")
	}
	payload := generated(100000)
	other, err := start(d, opEcho)
	if err == nil {
		err = echoes(other, payload[:1000])
	}
	if err != nil {
		return "", err
	}
	token := newToken()
	s, err := start(d, opLazy, append(bytes.Clone(token), be64(uint64(n[0]))...)...)
	if err == nil {
		_, err = io.ReadFull(s, make([]byte, 1))
	}
	begin := time.Now()
	for err == nil {
		_, err = s.Write(payload)
	}
	held := time.Since(begin).Milliseconds()
	if !isReset(err) {
		return "", fmt.Errorf("not a reset: %w", err)
	}
	if held >= int64(n[0]) {
		return "", errors.New("the slow reader was not reset while it was slow")
	}
	if err = echoes(other, payload[:1000]); err != nil {
		return "", fmt.Errorf("beside a slow reader: %w", err)
	}
	other.done()
	if err = echo(d, payload); err != nil {
		return "", err
	}
	o, err := query(d, token)
	if err == nil && o.kind != sawReset {
		err = fmt.Errorf("the slow reader saw %c", o.kind)
	}
	return fmt.Sprintf("\"held_ms\":%d,\"read\":%d", held, o.total), err
}
