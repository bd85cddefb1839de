module github.com/zklock-go/zklock/adapters/goose

go 1.25

require (
	github.com/pressly/goose/v3 v3.26.0
	github.com/zklock-go/zklock v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/sethvargo/go-retry v0.3.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
)

replace github.com/zklock-go/zklock => ../..
