package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	besideWrite  = 65536
	besideWarmUp = 100 * time.Millisecond
)

// besideBulk writes at so many bytes a second (0: as fast as it goes); returns what the peer says it read.
func besideBulk(m session, rate float64, stop *atomic.Bool) (uint64, error) {
	s, err := start(m, opDiscard)
	if err != nil {
		return 0, err
	}
	buf := bytes.Repeat([]byte{0x5a}, besideWrite)
	begin, sent := time.Now(), 0.0
	for !stop.Load() {
		if _, err := s.Write(buf); err != nil {
			return 0, err
		}
		sent += besideWrite
		if rate > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(sent / rate * float64(time.Second)))))
		}
	}
	if err := s.end(); err != nil {
		return 0, err
	}
	return number(s)
}

func besideTrips(m session, seconds float64) ([]time.Duration, error) {
	s, err := start(m, opEcho)
	if err != nil {
		return nil, err
	}
	ping, pong := bytes.Repeat([]byte{0x5a}, 64), make([]byte, 64)
	var taken []time.Duration
	begin := time.Now().Add(besideWarmUp)
	end := begin.Add(time.Duration(seconds * float64(time.Second)))
	for {
		from := time.Now()
		if from.After(end) {
			break
		}
		ping[0]++
		if _, err := s.Write(ping); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(s, pong); err != nil {
			return nil, err
		}
		if !bytes.Equal(ping, pong) {
			return nil, errors.New("another answer")
		}
		if from.After(begin) {
			taken = append(taken, time.Since(from))
		}
	}
	return taken, s.end()
}

// caseBeside is a ping-pong of 64 bytes beside bulk on the same connection.
func caseBeside(m session, words []string) (string, error) {
	streams, err1 := strconv.Atoi(words[0])
	rate, err2 := strconv.ParseFloat(words[1], 64)
	seconds, err3 := strconv.ParseFloat(words[2], 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	var stop atomic.Bool
	var total atomic.Uint64
	var all sync.WaitGroup
	failed := make(chan error, streams)
	began := time.Now()
	for i := 0; i < streams; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			n, err := besideBulk(m, rate/float64(streams), &stop)
			if err != nil {
				failed <- err
			}
			total.Add(n)
		}()
	}
	taken, err := besideTrips(m, seconds)
	stop.Store(true)
	all.Wait()
	took := time.Since(began)
	if err != nil {
		return "", err
	}
	select {
	case err := <-failed:
		return "", err
	default:
	}
	if len(taken) == 0 {
		return "", errors.New("no trip was made")
	}
	sort.Slice(taken, func(i, j int) bool { return taken[i] < taken[j] })
	us := func(q float64) float64 {
		return float64(taken[int(float64(len(taken)-1)*q)].Nanoseconds()) / 1e3
	}
	return fmt.Sprintf("\"trips\":%d,\"p50_us\":%.2f,\"p99_us\":%.2f,\"p999_us\":%.2f,\"bytes_per_s\":%.0f",
		len(taken), us(0.5), us(0.99), us(0.999), float64(total.Load())/took.Seconds()), nil
}
