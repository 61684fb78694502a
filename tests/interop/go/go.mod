module reeve.invalid/peer

go 1.23

require (
	github.com/hashicorp/yamux v0.1.2
	github.com/libp2p/go-mplex v0.7.0
	github.com/libp2p/go-yamux/v5 v5.1.0
)

require (
	github.com/ipfs/go-log/v2 v2.5.0 // indirect
	github.com/libp2p/go-buffer-pool v0.0.2 // indirect
	github.com/mattn/go-isatty v0.0.14 // indirect
	github.com/multiformats/go-varint v0.0.6 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	go.uber.org/multierr v1.6.0 // indirect
	go.uber.org/zap v1.19.1 // indirect
	golang.org/x/sys v0.0.0-20210630005230-0f9fa26af87c // indirect
)
