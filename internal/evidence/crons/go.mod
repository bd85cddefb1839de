module github.com/zklock-go/zklock/internal/evidence/crons

go 1.25

require (
	github.com/netresearch/go-cron v0.9.1
	github.com/robfig/cron/v3 v3.0.1
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/zklock-go/zklock => ../../..
