module reeve.invalid/peer

go 1.23

require (
	github.com/hashicorp/yamux v0.1.2
	github.com/libp2p/go-yamux/v5 v5.1.0
)

require github.com/libp2p/go-buffer-pool v0.0.2 // indirect
