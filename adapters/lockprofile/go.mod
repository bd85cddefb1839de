module github.com/zklock-go/zklock/adapters/lockprofile

go 1.25

require (
	github.com/google/pprof v0.0.0-20250820193118-f64d9cf942d6
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/zklock-go/zklock => ../..
