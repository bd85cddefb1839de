module github.com/zklock-go/zklock/cmd/zklock/kerberos

go 1.25

replace github.com/zklock-go/zklock => ../../..

replace github.com/zklock-go/zklock/adapters/kerberos => ../../../adapters/kerberos

require (
	github.com/stretchr/testify v1.12.1
	github.com/zklock-go/zklock v0.0.0
	github.com/zklock-go/zklock/adapters/kerberos v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
