module github.com/zklock-go/zklock/adapters/otel/test

go 1.25.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
	go.opentelemetry.io/otel v1.43.0
	go.opentelemetry.io/otel/sdk v1.43.0
	go.opentelemetry.io/otel/sdk/metric v1.43.0
	go.opentelemetry.io/otel/trace v1.43.0
)

require go.opentelemetry.io/otel/metric v1.43.0 // indirect

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/zklock-go/zklock/adapters/otel v0.0.0
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.42.0 // indirect
)

replace github.com/zklock-go/zklock => ../../..

replace github.com/zklock-go/zklock/adapters/otel => ..
