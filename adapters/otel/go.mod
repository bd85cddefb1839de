module github.com/zklock-go/zklock/adapters/otel

go 1.25.0

require (
	github.com/zklock-go/zklock v0.0.0
	go.opentelemetry.io/otel v1.43.0
	go.opentelemetry.io/otel/metric v1.43.0
	go.opentelemetry.io/otel/trace v1.43.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
)

replace github.com/zklock-go/zklock => ../..
