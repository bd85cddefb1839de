module github.com/zklock-go/zklock/adapters/migrate

go 1.25

require (
	github.com/golang-migrate/migrate/v4 v4.17.1
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	go.uber.org/atomic v1.7.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/zklock-go/zklock => ../..
