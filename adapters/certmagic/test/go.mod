module github.com/zklock-go/zklock/adapters/certmagic/test

go 1.25.0

require (
	github.com/caddyserver/certmagic v0.25.3
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
	go.uber.org/zap v1.27.1
)

require (
	github.com/caddyserver/zerossl v0.1.5 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/libdns/libdns v1.1.1 // indirect
	github.com/mholt/acmez/v3 v3.1.6 // indirect
	github.com/miekg/dns v1.1.72 // indirect
	github.com/zeebo/blake3 v0.2.4 // indirect
	github.com/zklock-go/zklock/adapters/certmagic v0.0.0
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap/exp v0.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.50.0 // indirect
	golang.org/x/mod v0.35.0 // indirect
	golang.org/x/net v0.53.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.43.0 // indirect
	golang.org/x/text v0.36.0 // indirect
	golang.org/x/tools v0.44.0 // indirect
)

replace github.com/zklock-go/zklock => ../../..

replace github.com/zklock-go/zklock/adapters/certmagic => ..
