package main

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"
)

// caseOpenRate: streams that are opened, echo a byte, and are closed by both ends.
func caseOpenRate(m session, words []string) (string, error) {
	count, err1 := strconv.Atoi(words[0])
	atOnce, err2 := strconv.Atoi(words[1])
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	if count < 1 || atOnce < 1 {
		return "", errors.New("no stream")
	}
	taken := make([]time.Duration, count)
	next, failed := make(chan int), make(chan error, atOnce)
	var all sync.WaitGroup
	begin := time.Now()
	for i := 0; i < atOnce; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := range next {
				from := time.Now()
				if err := echo(m, []byte{byte(n)}); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
				taken[n] = time.Since(from)
			}
		}()
	}
	for n := 0; n < count; n++ {
		next <- n
	}
	close(next)
	all.Wait()
	took := time.Since(begin)
	select {
	case err := <-failed:
		return "", err
	default:
	}
	sort.Slice(taken, func(i, j int) bool { return taken[i] < taken[j] })
	us := func(q float64) float64 {
		return float64(taken[int(float64(count-1)*q)].Nanoseconds()) / 1e3
	}
	return fmt.Sprintf("\"streams\":%d,\"opens_per_s\":%.0f,\"p50_us\":%.2f,\"p99_us\":%.2f",
		count, float64(count)/took.Seconds(), us(0.5), us(0.99)), nil
}
