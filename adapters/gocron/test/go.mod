module github.com/zklock-go/zklock/adapters/gocron/test

go 1.25

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/google/uuid v1.6.0
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/zklock-go/zklock/adapters/gocron v0.0.0
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/zklock-go/zklock => ../../..

replace github.com/zklock-go/zklock/adapters/gocron => ..
