module github.com/zklock-go/zklock/adapters/sqlfence

go 1.25

require github.com/zklock-go/zklock v0.0.0

require github.com/go-zookeeper/zk v1.0.4 // indirect

replace github.com/zklock-go/zklock => ../..
