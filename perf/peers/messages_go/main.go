// The channels of Go doing what perf/messages does with ours: one turn, a JSON line a figure.
//
// usage: messages-go [--quick]
//
// Channels of uint64: unbuffered, and buffered (1024; round trips 1).  The receiver checks number and sum.
//
// Rows, in nanoseconds per message (round trips: per round trip):
//   - same worker, round trip same worker: two goroutines with GOMAXPROCS 1.
//   - 1 producer, 4 producers, round trip placed: goroutines with GOMAXPROCS 2, placed by the scheduler, which may run
//     both ends on one thread.
//   - round trip, and `two threads` of 1 producer: the same, each end locked to a thread that is bound to a processor.
//   - parked: the receiver, a goroutine with GOMAXPROCS 2, waits and nothing else runs; after half a millisecond of quiet
//     (a sleep in the system) a goroutine that is locked to its thread sends: what that cost it, and when the receiver
//     had the message; p50 and p99 of 200, microseconds.  Unbuffered: the send ends when the receiver has it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const bound = 1024

var (
	messages = uint64(200000)
	trips    = uint64(2000)
	wakes    = uint64(200)
)

func line(row, contender, what, unit string, value float64) {
	fmt.Printf("{\"row\":%q,\"contender\":%q,\"what\":%q,\"unit\":%q,\"value\":%.4f}\n", row, contender, what, unit, value)
}

// check ends the program unless a sum is that of 1 to each, from every producer.
func check(row, contender string, sum, producers, each uint64) {
	if sum != producers*each*(each+1)/2 {
		fmt.Fprintln(os.Stderr, "messages-go: lost:", row, contender)
		os.Exit(1)
	}
}

// bind locks the goroutine to a thread and that to a processor, counted round.  The thread ends with the goroutine.
func bind(n int) {
	runtime.LockOSThread()
	set := [16]uint64{1 << (n % runtime.NumCPU() % 64)}
	syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
}

// stream measures producers that send to one receiver; apart: each end on a processor of its own.
func stream(row, contender string, size int, producers uint64, apart bool) {
	c := make(chan uint64, size)
	start, done := make(chan bool), make(chan uint64)
	each := messages / producers
	if apart && size == 0 {
		each /= 50 // every one of them is two switches of context
	}
	for id := uint64(0); id < producers; id++ {
		go func() {
			if apart {
				bind(int(id) + 1)
			}
			<-start
			for i := uint64(1); i <= each; i++ {
				c <- i
			}
		}()
	}
	go func() {
		if apart {
			bind(0)
		}
		<-start
		sum := uint64(0)
		for i := uint64(0); i < each*producers; i++ {
			sum += <-c
		}
		done <- sum
	}()
	time.Sleep(time.Millisecond)
	began := time.Now()
	close(start)
	sum := <-done
	took := time.Since(began)
	check(row, contender, sum, producers, each)
	line(row, contender, "time", "ns", float64(took.Nanoseconds())/float64(each*producers))
}

// trip measures a message there and back.
func trip(row, contender string, size int, n uint64, apart bool) {
	there, back := make(chan uint64, size), make(chan uint64, size)
	go func() {
		if apart {
			bind(1)
		}
		for i := uint64(0); i <= n; i++ {
			back <- <-there
		}
	}()
	done := make(chan time.Duration)
	sum := uint64(0)
	go func() {
		if apart {
			bind(0)
		}
		there <- 0
		sum = <-back
		began := time.Now()
		for i := uint64(1); i <= n; i++ {
			there <- i
			sum += <-back
		}
		done <- time.Since(began)
	}()
	took := <-done
	check(row, contender, sum, 1, n)
	line(row, contender, "time", "ns", float64(took.Nanoseconds())/float64(n))
}

func pause(us int64) {
	t := syscall.NsecToTimespec(us * 1000)
	syscall.Nanosleep(&t, nil)
}

func quantiles(row, contender string, us []float64) {
	slices.Sort(us)
	line(row, contender, "p50", "us", us[len(us)/2])
	line(row, contender, "p99", "us", us[len(us)*99/100])
}

func wake(contender string, size int) {
	c := make(chan uint64, size)
	begin := time.Now()
	var ran atomic.Int64
	var cost, delay []float64
	go func() {
		for i := uint64(1); i <= wakes; i++ {
			check("parked", contender, <-c, 1, 1)
			ran.Store(time.Since(begin).Nanoseconds())
		}
	}()
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		for i := uint64(1); i <= wakes; i++ {
			pause(500)
			ran.Store(0)
			from := time.Since(begin).Nanoseconds()
			c <- 1
			posted := time.Since(begin).Nanoseconds()
			for ran.Load() == 0 {
				pause(20)
			}
			cost = append(cost, float64(posted-from)/1000)
			delay = append(delay, float64(ran.Load()-from)/1000)
		}
		done <- true
	}()
	<-done
	quantiles("parked, sender", contender, cost)
	quantiles("parked, until it runs", contender, delay)
}

func main() {
	for _, arg := range os.Args[1:] {
		if arg != "--quick" {
			fmt.Fprintln(os.Stderr, "usage: messages-go [--quick]")
			os.Exit(2)
		}
		messages, trips, wakes = 4000, 50, 10
	}
	for _, channel := range []struct {
		name        string
		size, small int
	}{{"go unbuffered", 0, 0}, {"go buffered", bound, 1}} {
		runtime.GOMAXPROCS(1)
		stream("same worker", channel.name, channel.size, 1, false)
		trip("round trip same worker", channel.name, channel.small, trips*10, false)
		runtime.GOMAXPROCS(2)
		stream("1 producer", channel.name, channel.size, 1, false)
		stream("1 producer", channel.name+", two threads", channel.size, 1, true)
		stream("4 producers", channel.name, channel.size, 4, false)
		trip("round trip placed", channel.name, channel.small, trips, false)
		trip("round trip", channel.name, channel.small, trips, true)
		wake(channel.name, channel.size)
	}
}
