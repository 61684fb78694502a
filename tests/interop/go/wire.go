//go:build hashicorp

package main

import "encoding/binary"

// The first byte of a stream selects what the serving side does with it.
const (
	opEcho     = 'E'
	opSink     = 'S'
	opDiscard  = 'B'
	opGenerate = 'G'
	opReset    = 'R'
	opWatch    = 'W'
	opHalf     = 'H'
	opQuery    = 'Q'
)

// How a watched stream ended.
const (
	sawEnd     = 'E'
	sawReset   = 'R'
	sawNothing = 'T'
)

// generator makes the generated stream: xorshift64 words, little-endian.
type generator struct {
	state uint64
	word  [8]byte
	used  int
}

func newGenerator() *generator {
	return &generator{state: 0x9e3779b97f4a7c15, used: 8}
}

func (g *generator) fill(out []byte) {
	for i := range out {
		if g.used == 8 {
			g.state ^= g.state << 13
			g.state ^= g.state >> 7
			g.state ^= g.state << 17
			binary.LittleEndian.PutUint64(g.word[:], g.state)
			g.used = 0
		}
		out[i] = g.word[g.used]
		g.used++
	}
}

func be64(n uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, n)
}
