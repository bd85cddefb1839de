module github.com/zklock-go/zklock/adapters/gocron

go 1.25

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/zklock-go/zklock v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
)

replace github.com/zklock-go/zklock => ../..
